"""What every strategy for nested parts promises: the oracle's matches, under any cut, and nothing kept that matters."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.differential.compare import check, draw_cut, oracle_matches
from tests.differential.modes import draw_nested
from tests.oracle.generate import PLAIN, Case
from tests.oracle.shorthand import stream

import eventcube as ec
from eventcube.engine.views import sliding, view
from eventcube.engine.views.auto import Auto
from eventcube.engine.views.strategy import strategies
from eventcube.errors import OptionError
from eventcube.language.parse import parse
from eventcube.options import StrategyChoice
from eventcube.plan.parts import check_strategies

EVERY = sorted(strategies())
VIEWS = [name for name, strategy in strategies().items() if strategy.keeps_results and strategy is not Auto]
NESTED = [
    "SEQ(A a, SEQ(B b, C c), D d) WITHIN 9 ms",
    "SEQ(SEQ(A a, B b), SEQ(C c, D d)) WITHIN 9 ms",
    "SEQ(A a, AND(B b, C c, b.x = a.x), D d) WITHIN 7 events",
    "SEQ(A a, SEQ(B b, SEQ(A e, C c, e.x = a.x), b.x < c.x + a.x), D d) WITHIN 14 ms",
    "SEQ(A a, !SEQ(B b, C c), D d) WITHIN 9 ms",
    "SEQ(A a, !OR(SEQ(B b, C c), SEQ(C e, B f)), D d) WITHIN 4 ms",
    "SEQ(A a, !AND(B b, C c, b.x = c.x = a.x), D d) WITHIN 9 ms",
    "SEQ(A a, !SEQ(B b, C c, b.x > a.x), D d, !AND(A e, B f)) WITHIN 6 ms",
    "SEQ(A a, !SEQ(B b, !C c, B e), D d) WITHIN 9 ms",
    "SEQ(A a, !SEQ(B b, !SEQ(C c, !A e, C f), B g), D d) WITHIN 9 ms",
    "SEQ(!SEQ(B b, C c), A a, D d) WITHIN 9 ms",
    "SEQ(A a, D d, !SEQ(B b, C c, b.x = d.x)) WITHIN 6 ms",
    "SEQ(A a, OR(SEQ(B b, !D n), C c), D d) WITHIN 9 ms",
    "AND(SEQ(A a, B b), SEQ(C c, D d), !SEQ(B m, C n)) WITHIN 9 ms",
    "SEQ(A a, SEQ(B b, C c), SEQ(B e, C f), D d, a.x = d.x) WITHIN 14 ms",
    "SEQ(A a, !SEQ(B b, C c, b.x = c.x, b.x = a.x), D d, a.x = d.x) WITHIN 14 ms",
]
STREAM = (
    "A1:x=1 B2:x=1 C3:x=1 A3:x=2 D4:x=1 B4:x=2 B5:x=1 C6:x=2 D6:x=2 A7:x=1 C7:x=1 B8:x=1 D9:x=1 C9:x=1 A10:x=3 "
    "B11:x=3 B12:x=3 C13:x=3 D14:x=3 D15:x=1"
)
EXAMPLE = "PATTERN SEQ(Recycle r, SEQ(Wash w, Dry dr, Sharpen s), Disinfect d, Operate o) WITHIN 29 us"
TOOLS = "r1 w2 dr3 w5 dr6 s7 d8 w10 dr11 s12 o14 d15 o26 o30"
NAMES = {"r": "Recycle", "w": "Wash", "dr": "Dry", "s": "Sharpen", "d": "Disinfect", "o": "Operate"}


def agrees(name: str, case: Case, cut: Sequence[int]) -> bool:
    """Whether the strategy can do it; if so it has the oracle's matches."""
    try:
        check(*case, cut, strategy=name)
    except OptionError as error:
        if name != "rewrite" or error.code != "EC418":
            raise
        return False
    return True


@pytest.fixture(params=["at once", "in small steps", "more than can be kept"])
def steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views that are extended and purged after every few events, as they are in long streams."""
    if request.param == "in small steps":
        monkeypatch.setattr(sliding, "STRIDE", 2)
        monkeypatch.setattr(view.View, "purge_threshold", 1)
        monkeypatch.setattr(view, "REQUESTS", 3)
    if request.param == "more than can be kept":
        monkeypatch.setattr(view.View, "max_results", 2)


@pytest.mark.parametrize("query", NESTED)
def test_there_is_something_to_find(query: str) -> None:
    assert oracle_matches(parse(f"PATTERN {query}"), stream(STREAM), PLAIN)


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("query", NESTED)
def test_nested_parts_have_the_oracles_matches(name: str, query: str) -> None:
    events = stream(STREAM)
    case = Case(parse(f"PATTERN {query}"), events, PLAIN)
    for cut in ([], [1] * len(events), [7, 3, 5]):
        agrees(name, case, cut)


@pytest.mark.parametrize("name", EVERY)
def test_random_nested_queries_have_the_oracles_matches(name: str) -> None:
    done = 0
    for seed in range(60):
        case = draw_nested(Random(seed))
        done += agrees(name, case, draw_cut(Random(seed), len(case.events)))
        agrees(name, case, [1] * len(case.events))
    assert done > 20


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("other", EVERY)
def test_a_run_can_go_on_under_another_strategy(name: str, other: str) -> None:
    """A state says nothing of the strategy: what one keeps is only a help."""
    query = "PATTERN SEQ(A a, SEQ(B b, C c), !SEQ(A m, B n), D d) WITHIN 20 ms RETURN a.ts, b.ts, c.ts, d.ts"
    events = trades(300)
    whole = ec.Runtime(query, type="type", strategy="iterative")
    expected = sorted(_pushed(whole, events) + _finished(whole))
    assert expected
    for point in (0, 40, 41, 150, 299):
        first, second = (ec.Runtime(query, type="type", strategy=s) for s in (name, other))
        found = _pushed(first, events.slice(0, point))
        second.restore(first.snapshot())
        found += _pushed(second, events.slice(point)) + _finished(second)
        assert sorted(found) == expected


def _pushed(runtime: ec.Runtime, events: pa.Table) -> list[str]:
    return [repr(row) for piece in _pieces(events) for batch in runtime.push(piece) for row in batch.to_pylist()]


def _finished(runtime: ec.Runtime) -> list[str]:
    return [repr(row) for batch in runtime.finish() for row in batch.to_pylist()]


def _pieces(events: pa.Table) -> list[pa.Table]:
    return [events.slice(start, 20) for start in range(0, events.num_rows, 20)]


@pytest.mark.parametrize("name", EVERY)
def test_a_part_can_have_a_strategy_of_its_own(name: str) -> None:
    query = parse("PATTERN SEQ(A a, SEQ(B b, C c), !SEQ(A m, B n), D d) WITHIN 9 ms")
    assert check(query, stream(STREAM), PLAIN, [3, 4], strategy={"c": name, "n": "passive"})


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(OptionError) as caught:
        check_strategies(StrategyChoice("iteratif"), [], EVERY)
    assert caught.value.code == "EC404"
    assert all(name in str(caught.value) for name in EVERY)
    assert "did you mean 'iterative'?" in str(caught.value)


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ({"z": "passive"}, "'z', which names no nested part\nhint: name each part by one of its own: (b, c), (n)"),
        ({"a": "passive"}, "'a', which names no nested part"),
        ({"b": "passive", "c": "balanced"}, "two strategies for one part: b=passive and c=balanced"),
        ({"b": None}, "strategy cannot be {'b': None}"),
        ({1: "passive"}, "strategy cannot be {1: 'passive'}"),
    ],
)
def test_strategies_for_parts_that_are_not_there_are_refused_at_once(strategy: Any, message: str) -> None:
    query = "PATTERN SEQ(A a, SEQ(B b, C c, !AND(N n)), D d) WITHIN 9 ms"
    with pytest.raises(OptionError) as caught:
        ec.Runtime(query, type="type", strategy=strategy)
    assert message in str(caught.value)


def test_a_part_without_a_variable_directly_in_it_goes_by_the_first_and_the_last_inside() -> None:
    query = "PATTERN SEQ(A a, SEQ(AND(B b, C c), OR(D d, A e)), D f) WITHIN 9 ms"
    assert check(parse(query), stream(STREAM), PLAIN, [3, 4], strategy={"b..e": "passive", "d": "balanced"})
    events = pa.schema({"ts": pa.int64(), "type": pa.string()})
    plan = ec.explain(query, events, type="type", strategy={"b..e": "semantic", "c": "passive"})
    assert "nested part (b..e: b, c, d, e) after a, before f, by semantic" in plan
    assert "nested part (b, c) after a, before the first of d, e, by passive inside the view" in plan
    with pytest.raises(OptionError, match=r"name each part by one of its own: \(b..e\), \(b, c\), \(d, e\)"):
        ec.Runtime(query, type="type", strategy={"f": "passive"})


def test_a_negated_event_names_no_part() -> None:
    query = "PATTERN SEQ(A a, SEQ(B b, !N n, C c), D d) WITHIN 9 ms"
    with pytest.raises(OptionError, match="'n', which names no nested part"):
        ec.Runtime(query, type="type", strategy={"n": "passive"})


def test_a_query_without_a_nested_part_takes_no_strategy_for_one() -> None:
    with pytest.raises(OptionError, match="there is no nested part"):
        ec.Runtime("PATTERN SEQ(A a, !B b) WITHIN 9 ms", type="type", strategy={"b": "passive"})


# The papers' worked examples: what is computed, trigger by trigger.


def tools(text: str) -> pa.Table:
    words = [(w.rstrip("0123456789"), int(w.lstrip("abcdefghijklmnopqrstuvwxyz"))) for w in text.split()]
    return pa.table({"ts": [t for _, t in words], "type": [NAMES[n] for n, _ in words]})


def counted(query: str, text: str, strategy: str) -> tuple[int, dict[str, int]]:
    runtime = ec.Runtime(query, type="type", strategy=strategy, aggregates="enumerate")
    events = tools(text)
    found = [b.num_rows for i in range(events.num_rows) for b in runtime.push(events.slice(i, 1))]
    found += [b.num_rows for b in runtime.finish()]
    return sum(found), runtime.counters


@pytest.mark.parametrize(
    ("name", "computed"),
    [("iterative", 27), ("object", 9), ("aggressive", 9), ("semantic", 9), ("passive", 9), ("balanced", 9)],
)
def test_inner_results_of_the_caching_example(name: str, computed: int) -> None:
    matches, counters = counted(EXAMPLE, TOOLS, name)
    assert matches == 27
    assert counters["inner_computed"] == computed
    assert counters["inner_reused"] == 27 - computed
    assert counters["inner_unused"] == 0


def test_the_semantic_cache_refers_to_what_it_has() -> None:
    """[1, 8] has three results; [1, 15] refers to it and adds six. A trigger is final when the next event has come."""
    runtime = ec.Runtime(EXAMPLE, type="type", strategy="semantic")
    events = tools(TOOLS)
    seen = []
    for i in range(events.num_rows):
        list(runtime.push(events.slice(i, 1)))
        seen.append((runtime.counters["view_intervals"], runtime.counters["inner_computed"]))
    at = {t: seen[i] for i, t in enumerate(events.column("ts").to_pylist())}
    assert at[14] == (0, 0)
    assert at[15] == at[26] == (1, 3)
    assert at[30] == (2, 9)
    list(runtime.finish())
    assert (runtime.counters["view_intervals"], runtime.counters["inner_computed"]) == (2, 9)


@pytest.mark.parametrize("name", EVERY)
def test_a_negated_and(name: str) -> None:
    query = "PATTERN SEQ(Recycle r, Wash w, !AND(Sharpen s, Disinfect d), Operate o) WITHIN 1 ms"
    assert counted(query, "r1 w2 s3 d10 o11 s13 o20", name)[0] == 0
    with pytest.warns(ec.EventCubeWarning, match="no event has it"):
        assert counted(query, "r1 w2 s3 o11 s13 o20", name)[0] == 2


# What views save, and what they keep.


def trades(count: int) -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "ts": np.arange(count) * 1000,
            "type": rng.choice(list("ABCDE"), count),
            "x": rng.integers(0, 50, count),
            "y": rng.random(count),
        }
    )


def run(query: str, events: pa.Table, strategy: str, size: int) -> tuple[int, dict[str, int]]:
    runtime = ec.Runtime(f"PATTERN {query} AGG COUNT(*)", type="type", strategy=strategy, aggregates="enumerate")
    for start in range(0, events.num_rows, size):
        list(runtime.push(events.slice(start, size)))
    (result,) = runtime.finish()
    return result.column(0)[0].as_py(), runtime.counters


POSITIVE = "SEQ(A a, SEQ(B b, C c), D d, E e) WITHIN 60 ms"


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("size", [1, 17, 4000])
def test_views_compute_an_inner_result_once(name: str, size: int) -> None:
    events = trades(1000 if size == 1 else 4000)
    expected, anew = run(POSITIVE, events, "iterative", size)
    matches, counters = run(POSITIVE, events, name, size)
    assert matches == expected
    assert counters["inner_computed"] * 16 < anew["inner_computed"]
    assert counters["inner_reused"] + counters["inner_computed"] - counters["inner_unused"] == anew["inner_computed"]


def test_balanced_computes_nothing_that_is_not_used_and_keeps_least() -> None:
    found = {name: run(POSITIVE, trades(4000), name, 10)[1] for name in VIEWS}
    assert found["balanced"]["inner_unused"] == 0
    assert found["aggressive"]["inner_unused"] > 0
    assert found["balanced"]["inner_computed"] == min(f["inner_computed"] for f in found.values())
    assert found["balanced"]["view_bytes"] == min(f["view_bytes"] for f in found.values())


@pytest.mark.parametrize("size", [500, 40_000])
def test_rare_inner_events_are_bound_first_if_that_costs_less(size: int) -> None:
    query = "SEQ(A a, SEQ(B b, C c), D d) WITHIN 400 ms"
    rng = np.random.default_rng(3)
    types = rng.choice(list("ABCD"), 40_000, p=[0.495, 0.005, 0.005, 0.495])
    events = pa.table({"ts": np.arange(40_000) * 1000, "type": types})
    found, chosen = run(query, events, "auto", size)
    expected, views = run(query, events, "balanced", size)
    assert found == expected > 0
    assert chosen["view_lookups"] * 5 < views["view_lookups"]


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("query", [POSITIVE, "SEQ(A a, !SEQ(B b, C c, b.y < c.y), D d, a.x = d.x) WITHIN 60 ms"])
def test_a_long_stream_leaves_no_more_than_a_short_one(name: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view.View, "purge_threshold", 64)
    _, short = run(query, trades(2000), name, 20)
    _, long = run(query, trades(20_000), name, 20)
    assert long["view_bytes"] < 2 * short["view_bytes"]


@pytest.mark.parametrize("name", ["aggressive", "balanced"])
def test_a_negated_part_keeps_a_number_for_an_event_and_no_tuples(name: str) -> None:
    query = "SEQ(A a, !SEQ(B b, C c), D d) WITHIN 60 ms"
    _, counters = run(query, trades(4000), name, 10)
    assert counters["view_bytes"] <= 8 * 70
    assert counters["inner_computed"] <= 4000 // 5 + 100


@pytest.mark.parametrize("name", ["aggressive", "balanced"])
def test_an_equality_splits_the_view(name: str) -> None:
    """Each value has its own right bound: what no outer event has the value of is not computed."""
    query = "SEQ(A a, SEQ(B b, C c, b.x = c.x = a.x), D d, a.x = d.x) WITHIN 400 ms"
    expected, anew = run(query, trades(4000), "iterative", 50)
    matches, counters = run(query, trades(4000), name, 50)
    assert matches == expected > 0
    assert counters["inner_computed"] <= anew["inner_computed"]
    assert counters["candidates"] < anew["candidates"] * 2


@pytest.mark.parametrize("name", EVERY)
def test_the_same_run_counts_the_same(name: str) -> None:
    assert run(POSITIVE, trades(1500), name, 30) == run(POSITIVE, trades(1500), name, 30)


# What has no flat form.


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        ("SEQ(B b, C c, b.x = c.x)", "b.x = c.x ties its events to each other"),
        ("SEQ(B b, !A e, C c)", "it has a negation inside"),
        ("SEQ(B b, AND(C c, B e))", "it has AND inside SEQ"),
        ("AND(B b, B c)", "one event could serve two of its components"),
    ],
)
def test_rewriting_says_why_it_refuses(inner: str, reason: str) -> None:
    query = f"PATTERN SEQ(A a, !{inner}, D d) WITHIN 9 ms"
    events = pa.table({"ts": [1], "type": ["A"], "x": [1]})
    with pytest.raises(OptionError, match="cannot be rewritten") as caught:
        ec.match(events, query, type="type", strategy="rewrite")
    assert reason in str(caught.value)
    with pytest.warns(ec.EventCubeWarning, match="no event has it"):
        assert ec.match(events, query, type="type").num_rows == 0
