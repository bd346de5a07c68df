"""What every flat strategy promises: the oracle's matches, under any cut, and nothing kept that matters."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from random import Random
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from tests.differential.compare import check, check_count, draw_cut, engine_batches, oracle_matches
from tests.differential.flat import draw_flat
from tests.differential.knobs import any_of
from tests.oracle.generate import PLAIN, Case, Options
from tests.oracle.shorthand import stream

import eventcube as ec
from eventcube.engine.flat.clusters import ClusterJoins
from eventcube.engine.flat.prc import KeptPrefixes
from eventcube.engine.flat.strategy import _registered, flat_strategies, register
from eventcube.engine.table import Table, width_column
from eventcube.engine.views import sliding, view
from eventcube.engine.views.result_store import QueryIntervals
from eventcube.engine.views.view import AttachedView
from eventcube.errors import OptionError
from eventcube.language.parse import parse
from eventcube.optimizer import choose
from eventcube.optimizer.program import ProgramEstimate
from eventcube.plan.steps import BindClusters, Program

EVERY = sorted(flat_strategies())
SEQUENCES = [
    "SEQ(A a, B b, C c) WITHIN 9 ms",
    "SEQ(A a, B b, C c) WITHIN 7 events",
    "SEQ(A a, B b, C c, D d) WITHIN 12 ms",
    "SEQ(A a, B b, A c, B d) WITHIN 9 events",
    "SEQ(A a, A b, A c) WITHIN 9 ms",
    "SEQ(A a, B b, C c, a.x < b.x) WITHIN 9 ms",
    "SEQ(A a, B b, C c, a.x < b.x, b.x + a.x = c.x + 1) WITHIN 9 events",
    "SEQ(A a, B b, C c, D d, a.x < c.x, b.x != d.x) WITHIN 14 ms",
    "SEQ(A a, B b, C c, a.x = b.x = c.x) WITHIN 14 ms",
    "SEQ(A a, B b, C c, D d, a.x = d.x) WITHIN 14 ms",
    "SEQ(A a, !C n, B b, C c) WITHIN 9 ms",
    "SEQ(A a, B b, !A n, C c, !D m) WITHIN 7 ms",
    "SEQ(!B n, A a, B b, !(A m, m.x = b.x), C c) WITHIN 9 events",
    "SEQ(A a, !SEQ(B n, C m), B b, C c, D d) WITHIN 14 ms",
    "SEQ(A a, SEQ(B b, C c, A e), D d) WITHIN 14 ms",
    "SEQ(A a, AND(B b, C c), D d) WITHIN 9 ms",
    "SEQ(A a, OR(B b, C c), D d, A e) WITHIN 14 ms",
    "AND(SEQ(A a, B b, C c), D d) WITHIN 9 ms",
    "OR(SEQ(A a, B b, C c), SEQ(B e, C f, D d, e.x = f.x)) WITHIN 9 ms",
]
STREAM = (
    "A1:x=1 A1b:x=2 B2:x=1 B3:x=2 C3:x=1 A4:x=2 A4b:x=3 B5:x=3 D6:x=1 C6:x=2 C7:x=3 A7:x=1 A8:x=2 B8:x=1 B9:x=2 "
    "B9b:x=4 C10:x=1 D10:x=2 C11:x=4 C11b:x=2 D12:x=3 A13:x=3 B13:x=3 B14:x=1 D14:x=1 C15:x=3 D16:x=3 D17:x=1"
)


@pytest.fixture(params=["at once", "in small steps", "more than can be kept"])
def steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Partial matches that are extended and purged after every few events, as they are in long streams."""
    if request.param == "in small steps":
        monkeypatch.setattr(sliding, "STRIDE", 2)
        monkeypatch.setattr(view.View, "purge_threshold", 1)
    if request.param == "more than can be kept":
        monkeypatch.setattr(view.View, "max_results", 2)


@pytest.mark.parametrize("query", SEQUENCES)
def test_there_is_something_to_find(query: str) -> None:
    assert oracle_matches(parse(f"PATTERN {query}"), stream(STREAM), PLAIN)


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("query", SEQUENCES)
def test_sequences_have_the_oracles_matches(name: str, query: str) -> None:
    events = stream(STREAM)
    case = Case(parse(f"PATTERN {query}", "q"), events, PLAIN)
    for cut in ([], [1] * len(events), [7, 3, 5]):
        check(*case, cut, flat_strategy=name)
        check_count(case, cut, flat_strategy=name)


@pytest.mark.parametrize("name", EVERY)
def test_random_sequences_have_the_oracles_matches(name: str) -> None:
    for seed in range(60):
        case = draw_flat(Random(seed))
        check(*case, draw_cut(Random(seed), len(case.events)), flat_strategy=name)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("other", [*EVERY, "auto"])
def test_a_run_can_go_on_under_another_flat_strategy(name: str, other: str) -> None:
    """A state says nothing of it: what one keeps is only a help."""
    query = "PATTERN SEQ(A a, B b, C c, D d, a.x < b.x) WITHIN 20 ms RETURN a.ts, b.ts, c.ts, d.ts"
    events = runs(300, 3)
    whole = ec.Runtime(query, type="type", flat_strategy="sase")
    expected = sorted(_pushed(whole, events) + _finished(whole))
    assert expected
    for point in (0, 40, 41, 150, 299):
        first, second = (ec.Runtime(query, type="type", flat_strategy=s) for s in (name, other))
        found = _pushed(first, events.slice(0, point))
        second.restore(first.snapshot())
        found += _pushed(second, events.slice(point)) + _finished(second)
        assert sorted(found) == expected


def _pushed(runtime: ec.Runtime, events: pa.Table) -> list[str]:
    pieces = [events.slice(start, 20) for start in range(0, events.num_rows, 20)]
    return [repr(row) for piece in pieces for batch in runtime.push(piece) for row in batch.to_pylist()]


def _finished(runtime: ec.Runtime) -> list[str]:
    return [repr(row) for batch in runtime.finish() for row in batch.to_pylist()]


@pytest.mark.parametrize("name", [*EVERY, "auto"])
def test_queries_together_find_what_each_finds_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequences that begin, or end, with the same events, and those that are computed from others."""
    monkeypatch.setattr(choose, "HOLD_PAIRS", 0)
    queries = {
        "abc": "PATTERN SEQ(A a, B b, C c) WITHIN 12 ms",
        "abcd": "PATTERN SEQ(A a, B b, C c, D d) WITHIN 12 ms",
        "tested": "PATTERN SEQ(A a, B b, C c, a.x < b.x) WITHIN 12 ms",
        "bcd": "PATTERN SEQ(B b, C c, D d) WITHIN 12 ms",
        "count": "PATTERN SEQ(A a, B b, D d) WITHIN 12 ms AGG COUNT(*)",
    }
    events = runs(200, 3)
    found = ec.match_all(events, queries, type="type", flat_strategy=name)
    for query, text in queries.items():
        expected = ec.match(events, text, type="type", flat_strategy="sase")
        assert expected.num_rows
        assert _rows(found[query]) == _rows(expected)


@pytest.mark.parametrize("name", [*EVERY, "auto"])
def test_cubes_take_a_flat_strategy(name: str) -> None:
    text = "PATTERN SEQ({} p, C c, D d, p.x < c.x) WITHIN 9 ms"
    queries = {"coarse": text.format("P"), "fine": text.format("A")}
    cube = ec.Cube(queries, type="type", concepts={"P": ["A", "B"]})
    events = runs(200, 2)
    found, expected = (cube.match_all(events, flat_strategy=flat) for flat in (name, "sase"))
    assert all(_rows(found[query]) == _rows(expected[query]) != [] for query in ("coarse", "fine"))


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(OptionError) as caught:
        ec.Runtime("PATTERN SEQ(A a, B b) WITHIN 9 ms", type="type", flat_strategy="sasse")
    assert caught.value.code == "EC404"
    assert all(name in str(caught.value) for name in EVERY)
    assert "did you mean 'sase'?" in str(caught.value)


# The paper's example.

PAPER = "a1 c2 b3 a4 d5 b6 d7 a8 d9 b10 d11 d12 b13"
FIRST_WINDOW = ["a1b3d5", "a1b3d7", "a1b6d7", "a4b6d7", "a1b3d9", "a1b6d9", "a4b6d9"]
FROM_THE_CACHE = ["a4b6d11", "a4b6d12"]
AGGREGATED = ["a8b10d11", "a8b10d12", "a4b10d11", "a4b10d12"]


def words(text: str) -> pa.Table:
    named = text.split()
    return pa.table({"ts": [int(w[1:]) for w in named], "type": [w[0].upper() for w in named]})


def example(name: str, size: int, end: str = "") -> tuple[list[dict[str, str]], dict[str, int]]:
    """The matches of the example, and what was counted, in batches of some size."""
    events = words(PAPER)
    query = f"PATTERN SEQ(A a, B b, D d) WITHIN 9 events {end}"
    runtime = ec.Runtime(query, type="type", flat_strategy=name, schema=events.schema, aggregates="enumerate")
    batches = [b for i in range(0, len(events), size) for b in runtime.push(events.slice(i, size))]
    return [row for b in (*batches, *runtime.finish()) for row in b.to_pylist()], runtime.counters


def labels(rows: list[dict[str, dict[str, int]]]) -> list[str]:
    return ["".join(f"{v}{row[v]['ts']}" for v in "abd") for row in rows]


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("size", [1, 2, 13])
def test_the_papers_example_has_13_matches(name: str, size: int) -> None:
    rows, counted = example(name, size)
    assert sorted(labels(rows)) == sorted([*FIRST_WINDOW, *FROM_THE_CACHE, *AGGREGATED])
    assert counted["matches"] == 13
    assert example(name, size, "AGG COUNT(*)")[0] == [{"COUNT(*)": 13}]


@pytest.mark.parametrize("size", [1, 13])
@pytest.mark.parametrize("end", ["", "AGG COUNT(*)"])
def test_links_of_the_papers_example(size: int, end: str) -> None:
    """The docstring of `Counters` defines links; docs/flat.md says how they relate to the paper's 11 and 5."""
    counted = {name: example(name, size, end)[1] for name in ("sase", "fla", "prc")}
    assert {name: c["links"] for name, c in counted.items()} == {"sase": 23, "fla": 19, "prc": 3}
    assert {name: c["partials_kept"] for name, c in counted.items()} == {"sase": 0, "fla": 0, "prc": 5}


def test_links_from_the_second_window_on() -> None:
    """From d11 on, for which the paper counts 11 links by FLA and 5 by PRC."""
    events = words(PAPER)
    since = {}
    for name in ("sase", "fla", "prc"):
        runtime = ec.Runtime("PATTERN SEQ(A a, B b, D d) WITHIN 9 events", type="type", flat_strategy=name)
        before = 0
        for i in range(len(events)):
            # An event is searched for once the next one has come.
            before = runtime.counters["links"] if i == 11 else before
            list(runtime.push(events.slice(i, 1)))
        list(runtime.finish())
        since[name] = runtime.counters["links"] - before
    assert since == {"sase": 11, "fla": 9, "prc": 1}


@pytest.fixture
def clusters() -> Iterator[list[str]]:
    """The clusters that are bound, each as the first of its events and how many there are."""
    bound: list[str] = []
    bind = ClusterJoins.bind

    def noted(joins: ClusterJoins, step: BindClusters, table: Table, *bounds: np.ndarray) -> Iterator[Table]:
        for out in bind(joins, step, table, *bounds):
            slot, ts = step.bind.slot, joins._executor.store.ts
            bound.extend(
                f"{'abd'[slot]}{ts[row]}+{width - 1}"
                for row, width in zip(out[slot], out[width_column(slot)], strict=True)
            )
            yield out

    with patch.object(ClusterJoins, "bind", noted):
        yield bound


def test_a4_and_a8_are_aggregated_on_b10(clusters: list[str]) -> None:
    """By PRC, as in the paper: what b3 and b6 are joined with stays kept, and b10 finds a4 and a8 as one."""
    example("prc", 1)
    assert clusters == ["a1+0", "a1+1", "a4+1"]


def test_nothing_is_aggregated_on_the_way_to_the_middle_of_the_example(clusters: list[str]) -> None:
    """By FLA, as in the paper: no two events of B that a match has go on to the same event of A."""
    example("fla", 1)
    assert [c for c in clusters if c.startswith("b")] == [
        *("b3+0", "b3+0", "b6+0", "b3+0", "b6+0"),
        *("b3+0", "b6+0", "b10+0", "b6+0", "b10+0"),
    ]


def test_links_lead_forward_where_the_search_does(clusters: list[str]) -> None:
    """Groups by the first event are searched from there: links lead to the earliest later event, as in the paper."""
    rows, counted = example("fla", 13, "AGG COUNT(*) PER a")
    assert [row["COUNT(*)"] for row in rows] == [5, 6, 2]
    assert [c for c in clusters if c.startswith("b")] == ["b3+0", "b6+0", "b6+0", "b10+0", "b10+0", "b13+0"]
    assert counted["links"] == 11


# What is saved.


def runs(count: int, length: int, seed: int = 5, types: str = "ABCD") -> pa.Table:
    """Events one millisecond apart, in runs of one type of some length on average."""
    rng = np.random.default_rng(seed)
    drawn = np.repeat(rng.integers(0, len(types), count), rng.geometric(1 / length, count))[:count]
    return pa.table(
        {
            "ts": np.arange(count) * 1000,
            "type": np.array(list(types))[drawn],
            "x": rng.integers(0, 50, count),
            "y": rng.random(count),
        }
    )


def run(query: str, events: pa.Table, name: str, size: int) -> tuple[list[dict[str, int]], dict[str, int]]:
    runtime = ec.Runtime(f"PATTERN {query}", type="type", flat_strategy=name, aggregates="enumerate")
    batches = [b for i in range(0, len(events), size) for b in runtime.push(events.slice(i, size))]
    return [row for b in (*batches, *runtime.finish()) for row in b.to_pylist()], runtime.counters


@pytest.mark.parametrize("length", [1, 4, 16])
@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("pattern", ["SEQ(A a, B b, C c)", "SEQ(A a, B b, C c, D d)"])
def test_prc_follows_fewer_links_than_fla_and_fla_fewer_than_sase(pattern: str, length: int, size: int) -> None:
    events = runs(1000, length, types="ABCD"[: pattern.count(",") + 1])
    found = {name: run(f"{pattern} WITHIN 50 ms AGG COUNT(*)", events, name, size) for name in ("sase", "fla", "prc")}
    assert found["sase"][0] == found["fla"][0] == found["prc"][0]
    sase, fla, prc = (found[name][1]["links"] for name in ("sase", "fla", "prc"))
    assert prc < fla < sase
    assert fla * min(length, 4) < sase


@pytest.mark.parametrize("size", [1, 50, 2000])
def test_partial_matches_are_computed_once(size: int) -> None:
    query = "SEQ(A a, B b, C c, D d, a.x + b.x = c.x) WITHIN 60 ms AGG COUNT(*)"
    events = runs(1000 if size == 1 else 2000, 1)
    expected, anew = run(query, events, "sase", size)
    found, kept = run(query, events, "prc", size)
    assert found == expected
    assert found[0]["COUNT(*)"]
    assert kept["candidates"] * 4 < anew["candidates"]
    assert 0 < kept["partials_kept"] == kept["inner_computed"]


def test_partial_matches_leave_with_their_first_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long stream keeps as many as a short one: those that no window holds any more are purged."""
    monkeypatch.setattr(view.View, "purge_threshold", 64)
    query = "SEQ(A a, B b, C c, D d, a.x < b.x) WITHIN 60 ms"
    purge, left = KeptPrefixes.purge, []

    def noted(kept: KeptPrefixes, intervals: QueryIntervals, view: AttachedView) -> int | None:
        row = purge(kept, intervals, view)
        if row is not None and len(kept.store):
            left.append(int(view.addresses.rows(kept.store.firsts).min()) - row)
        return row

    monkeypatch.setattr(KeptPrefixes, "purge", noted)
    short, long = (run(query, runs(count, 1), "prc", 20)[1]["view_bytes"] for count in (2000, 12_000))
    assert long < 1.5 * short
    assert len(left) > 50
    assert min(left) == 0


def test_counts_of_clusters_can_be_greater_than_64_bits() -> None:
    """Eight runs of 1,000 events have 10^24 matches, in one cluster of each."""
    types = np.repeat(list("ABCDEFGH"), 1000)
    events = pa.table({"ts": np.arange(8000) * 1000, "type": types})
    query = "PATTERN SEQ(A a, B b, C c, D d, E e, F f, G g, H h) WITHIN 1 hour AGG COUNT(*)"
    with pytest.warns(ec.EventCubeWarning, match="EC526"):
        found = ec.match(events, query, type="type", flat_strategy="fla", aggregates="enumerate")
    assert found["COUNT(*)"].to_pylist() == [None]


# The choice.


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("query", SEQUENCES)
def test_every_flat_strategy_states_a_finite_cost(name: str, query: str) -> None:
    costs = []
    chosen = choose.ProgramChoice.estimate

    def noted(choice: choose.ProgramChoice, *arguments: object, **keywords: bool) -> choose.Costs:
        costs.append(chosen(choice, *arguments, **keywords))
        return costs[-1]

    with patch.object(choose.ProgramChoice, "estimate", noted), patch.object(choose, "HOLD_PAIRS", 0):
        check(parse(f"PATTERN {query}"), stream(STREAM), PLAIN, [9], flat_strategy="auto")
    assert all(0 <= cost < math.inf for found in costs for cost in found.expected.values())
    plan = ec.explain(f"PATTERN {query}", runs(10, 1).schema, type="type", flat_strategy=name)
    assert ("sequences   by" in plan) != (name == "auto")


@pytest.mark.parametrize("seed", range(3))
def test_programs_can_take_turns(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the choice is, and however often it changes, what is kept fits the events at hand."""
    monkeypatch.setattr(choose, "HOLD_PAIRS", 0)
    monkeypatch.setattr(choose, "cheapest", any_of(Random(seed)))
    events = stream(STREAM)
    for query in SEQUENCES:
        check(parse(f"PATTERN {query}"), events, PLAIN, [1] * len(events))
        check(parse(f"PATTERN {query}"), events, PLAIN, [3] * 9)


@pytest.mark.parametrize(
    ("query", "length", "name"),
    [
        ("SEQ(A a, B b, C c) WITHIN 30 ms", 1, "sase"),
        ("SEQ(A a, B b, C c, D d) WITHIN 100 ms AGG COUNT(*)", 8, "fla"),
        ("SEQ(A a, B b, C c, a.x * b.x = 77) WITHIN 400 ms", 1, "prc"),
        ("SEQ(A a, B b, C c, D d, a.x * b.x = 77, b.y < a.y) WITHIN 200 ms AGG COUNT(*)", 1, "prc"),
        ("SEQ(A a, B b, C c, b.y > 0.999 * c.y, a.y > b.y) WITHIN 60 ms", 1, "sase"),
    ],
)
def test_explain_says_which_is_chosen_and_why(query: str, length: int, name: str) -> None:
    events = runs(12_000, length)
    shown = ec.explain(f"PATTERN {query}", events, type="type", aggregates="enumerate")
    line = re.search(r"program: decided for ([^;]+); estimated (.+)", shown)
    assert line is not None
    assert f"{name} (" in line[1]
    assert line[2].startswith(f"{name} ")
    assert "sase " in line[2]


def test_work_is_weighed_as_it_is_done() -> None:
    """Trigger by trigger, a search that looks at many candidates for each event is soon given up for a cheaper one."""
    query = "SEQ(A a, B b, C c, a.x * b.x = 77) WITHIN 1500 ms AGG COUNT(*)"
    events = runs(3000, 1)
    expected, all_anew = run(query, events, "sase", 1)
    found, counted = run(query, events, "auto", 1)
    assert found == expected
    assert counted["partials_kept"]
    assert counted["candidates"] * 8 < all_anew["candidates"]


def test_a_new_flat_strategy_is_weighed_with_no_other_change() -> None:
    before = dict(_registered)

    class Cheap(flat_strategies()["prc"]):  # type: ignore[misc]
        @classmethod
        def cost(cls, program: Program, estimate: ProgramEstimate) -> float:
            return 0.0

    try:
        register("prc")(Cheap)
        query = "PATTERN SEQ(A a, B b, C c, a.x > b.x) WITHIN 10 ms"
        assert "estimated prc 0, " in ec.explain(query, runs(5000, 1), type="type")
    finally:
        _registered.update(before)


# What has nothing to do.


@pytest.mark.parametrize(
    ("name", "query", "reason"),
    [
        ("prc", "SEQ(A a, B b) WITHIN 9 ms", "no sequence has three events"),
        ("fla", "SEQ(A a, B b) WITHIN 9 ms", "no sequence has an event in the middle that is not compared"),
        (
            "fla",
            "SEQ(A a, B b, C c, a.x < b.x) WITHIN 9 ms",
            "no sequence has an event in the middle that is not compared",
        ),
    ],
)
def test_explain_says_why_another_takes_its_place(name: str, query: str, reason: str) -> None:
    plan = ec.explain(f"PATTERN {query}", runs(1, 1).schema, type="type", flat_strategy=name)
    assert f"sequences   by sase, as {name} has nothing to do: {reason}" in " ".join(plan.split("\n"))
    assert f"by {name}" not in ec.explain(f"PATTERN {query}", runs(1, 1).schema, type="type")


def test_partitions_and_keys_of_a_sequence() -> None:
    """Kept partial matches move with a store that is sorted by a key, from which rows leave in the middle."""
    rng = Random(3)
    drawn = [f"{rng.choice('ABC')}{i}:k={rng.choice([1, 2, 3])},x={rng.randint(0, 3)}" for i in range(60)]
    events = stream(" ".join(drawn), key="k")
    query = parse("PATTERN SEQ(A a, B b, C c, a.x < b.x + 2) WITHIN 12 ms PARTITION BY k")
    for name in (*EVERY, "auto"):
        for cut in ([1] * 60, [7] * 8):
            assert check(query, events, Options(partitioned=True), cut, flat_strategy=name)


def test_batches_are_the_same_by_all_of_them() -> None:
    """Matches come when they did: each batch has those that are due."""
    events = stream(STREAM)
    query = parse("PATTERN SEQ(A a, B b, C c) WITHIN 9 ms")
    found = {
        name: [b.num_rows for b in engine_batches(query, events, PLAIN, [4] * 6, flat_strategy=name)] for name in EVERY
    }
    assert found["sase"] == found["fla"] == found["prc"]
