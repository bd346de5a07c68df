"""Equal nested parts of different queries share one view: what one of them has computed, the others look up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.differential.compare import oracle_matches
from tests.differential.workload import compare_each
from tests.oracle.generate import PLAIN, Workload, to_arrow
from tests.oracle.shorthand import stream

import eventcube as ec
from eventcube.engine.views import sliding, view
from eventcube.engine.views.auto import Auto
from eventcube.engine.views.strategy import strategies
from eventcube.language.parse import parse

VIEWS = sorted(name for name, strategy in strategies().items() if strategy.keeps_results and strategy is not Auto)
# Nested parts that are equal in all but their names, positive and negated, with a key, with conditions of their own.
EQUAL = {
    "positive": ("SEQ(A a, SEQ(B b, C c, b.y < c.y), D d)", "SEQ(E e, SEQ(B p, C q, p.y < q.y), F f)"),
    "negated": ("SEQ(A a, !SEQ(B b, C c, b.y < c.y), D d)", "SEQ(E e, !SEQ(B p, C q, p.y < q.y), F f)"),
    "positive, key": (
        "SEQ(A a, SEQ(B b, C c, b.x = c.x, b.x = a.x), D d)",
        "SEQ(E e, SEQ(B p, C q, p.x = q.x, p.x = e.x), F f)",
    ),
    "negated, key": (
        "SEQ(A a, !SEQ(B b, C c, b.x = c.x, b.x = a.x), D d)",
        "SEQ(E e, !SEQ(B p, C q, p.x = q.x, p.x = f.x), F f)",
    ),
    "tied by other conditions": (
        "SEQ(A a, SEQ(B b, C c, b.y < a.y), D d)",
        "SEQ(E e, !SEQ(B p, C q, q.y > e.y), F f)",
    ),
    "AND": ("SEQ(A a, AND(B b, C c), D d)", "SEQ(AND(B p, C q), E e, F f)"),
}
WINDOWS = ["30 ms", "30 events"]


def trades(count: int, *, ties: bool) -> pa.Table:
    rng = np.random.default_rng(5)
    times = np.arange(count) // (2 if ties else 1) * 1000
    numbers = {"x": rng.integers(0, 3, count), "y": rng.integers(0, 100, count)}
    return pa.table({"ts": times, "type": rng.choice(list("ABCDEF"), count), **numbers})


def run(
    queries: Mapping[str, str], events: pa.Table, size: int, strategy: Any, sharing: str = "auto"
) -> tuple[list[str], dict[str, int]]:
    """The matches, and what was counted, for pushes of a size."""
    runtime = ec.Runtime(queries, type="type", strategy=strategy, sharing=sharing)
    batches = [b for start in range(0, events.num_rows, size) for b in runtime.push(events.slice(start, size))]
    batches += runtime.finish()
    return sorted(repr(row) for batch in batches for row in batch.to_pylist()), runtime.counters


def both(kind: str, window: str) -> dict[str, str]:
    return {f"q{i}": f"PATTERN {text} WITHIN {window}" for i, text in enumerate(EQUAL[kind], 1)}


@pytest.mark.parametrize("size", [40, 400])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("kind", EQUAL)
@pytest.mark.parametrize("name", VIEWS)
def test_a_second_query_computes_only_what_it_asks_for_beyond_the_first(
    name: str, kind: str, window: str, size: int
) -> None:
    queries, events = both(kind, window), trades(400, ties=False)
    found, shared = run(queries, events, size, name)
    expected, alone = run(queries, events, size, name, "independent")
    assert found == expected != []
    assert shared["inner_computed"] < alone["inner_computed"]


@pytest.mark.parametrize("size", [40, 400])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("kind", EQUAL)
@pytest.mark.parametrize("name", VIEWS)
def test_a_query_that_asks_for_the_same_computes_nothing(
    name: str, kind: str, window: str, ties: bool, size: int
) -> None:
    """The second query has other last events, at the same places, so that its intervals are those of the first."""
    text, events = EQUAL[kind][0], trades(400, ties=ties)
    queries = {"q1": f"PATTERN {text} WITHIN {window}", "q2": f"PATTERN {text} WITHIN {window} WHERE d.y >= 0"}
    _, one = run({"q1": queries["q1"]}, events, size, name)
    found, two = run(queries, events, size, name)
    expected, apart = run(queries, events, size, name, "independent")
    assert found == expected
    assert two["inner_computed"] == one["inner_computed"] > 0
    assert two["view_bytes"] == one["view_bytes"], "counted once"
    assert apart["inner_computed"] == 2 * one["inner_computed"]


@pytest.mark.parametrize("name", [*VIEWS, "auto"])
def test_windows_may_differ(name: str) -> None:
    one, other = EQUAL["positive"]
    queries = {"q1": f"PATTERN {one} WITHIN 30 ms", "q2": f"PATTERN {other} WITHIN 20 ms"}
    events = trades(400, ties=False)
    found, shared = run(queries, events, 40, name)
    expected, alone = run(queries, events, 40, name, "independent")
    assert found == expected != []
    assert shared["inner_computed"] < alone["inner_computed"] or name == "auto"


@pytest.mark.parametrize(
    "other",
    [
        "SEQ(A a, SEQ(B b, C c, b.y > c.y), D d)",
        "SEQ(A a, SEQ(B b, E c, b.y < c.y), D d)",
        "SEQ(A a, SEQ(C c, B b, b.y < c.y), D d)",
        "SEQ(A a, SEQ(B b, C c, b.y < c.y, b.x = 1), D d)",
        "SEQ(A a, SEQ(B b, C c, b.y < c.y, b.x = a.x), D d)",
    ],
)
def test_parts_that_differ_share_nothing(other: str) -> None:
    events = trades(600, ties=False)
    queries = {"q1": f"PATTERN {EQUAL['positive'][0]} WITHIN 30 ms", "q2": f"PATTERN {other} WITHIN 30 ms"}
    found, shared = run(queries, events, 40, "balanced")
    expected, alone = run(queries, events, 40, "balanced", "independent")
    assert found == expected
    assert shared["inner_computed"] == alone["inner_computed"]
    assert "views" not in str(ec.explain(queries, events, type="type", strategy="balanced"))


STREAM = (
    "A1:x=1 E1:x=1 B2:x=1 C3:x=1 A3:x=2 D4:x=1 F4:x=1 B4:x=2 B5:x=1 C6:x=2 D6:x=2 A7:x=1 F7:x=1 C7:x=1 B8:x=1 D9:x=1 "
    "F9:x=1 C9:x=1 E10:x=3 A10:x=3 B11:x=3 B12:x=3 C13:x=3 D14:x=3 F15:x=1 "
    "A30:x=1 D31:x=1 E32:x=1 F33:x=1"
)
RELATED = (
    "SEQ(A a, SEQ(B b, C c, b.x = c.x), D d) WITHIN 9 ms",
    "SEQ(E e, SEQ(B p, C q, p.x = q.x), F f) WITHIN 9 ms",
    "SEQ(A a, SEQ(B b, C c, b.x = c.x), D d, F f) WITHIN 9 ms",
    "SEQ(E e, !SEQ(B p, C q, p.x = q.x), F f) WITHIN 7 ms",
    "SEQ(A a, SEQ(B b, C c, b.x = c.x), SEQ(B p, C q, p.x = q.x), D d) WITHIN 14 ms",
    "SEQ(A a, !SEQ(B b, C c, b.x = c.x), D d, !SEQ(B p, C q, p.x = q.x)) WITHIN 9 ms",
    "SEQ(A a, SEQ(B b, C c, b.x = c.x), D d) WITHIN 9 ms LIMIT 2",
)


@pytest.mark.parametrize("steps", ["at once", "in small steps", "more than can be kept"])
@pytest.mark.parametrize("name", [*VIEWS, "auto"])
def test_each_query_has_the_oracles_matches(name: str, steps: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if steps == "in small steps":
        monkeypatch.setattr(sliding, "STRIDE", 2)
        monkeypatch.setattr(view.View, "purge_threshold", 1)
        monkeypatch.setattr(view, "_MORE_IF_SHARED", 1)
        monkeypatch.setattr(view, "REQUESTS", 3)
    if steps == "more than can be kept":
        monkeypatch.setattr(view.View, "max_results", 2)
    events = stream(STREAM)
    case = Workload(tuple(parse(f"PATTERN {text}") for text in RELATED), events, PLAIN)
    assert all(oracle_matches(query, events, PLAIN) for query in case.queries)
    table = to_arrow(events)
    for size in (1, 4, len(events)):
        runtime = ec.Runtime(
            {f"q{i}": query for i, query in enumerate(case.queries, 1)},
            type="type",
            strategy=name,
            separate=True,
            schema=table.schema,
        )
        found: dict[str, list[pa.RecordBatch]] = {}
        pushed = [r for start in range(0, len(events), size) for r in runtime.push(table.slice(start, size))]
        for query, batch in (*pushed, *runtime.finish()):
            found.setdefault(query, []).append(batch)
        compare_each(case, found, f"pushes of {size}")


def test_strategies_of_equal_parts_may_differ() -> None:
    queries, events = both("positive", "30 ms"), trades(400, ties=False)
    expected, _ = run(queries, events, 40, "iterative")
    found, _ = run(queries, events, 40, {"b": "balanced", "p": "semantic"})
    assert found == expected
    found, _ = run(queries, events, 40, {"b": "balanced", "p": "auto"})
    assert found == expected


def test_a_shared_view_is_kept_until_the_last_query_has_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one large batch a query goes over all events before the next one begins."""
    monkeypatch.setattr(view.View, "purge_threshold", 64)
    monkeypatch.setattr(sliding, "STRIDE", 64)
    text, events = EQUAL["positive"][0], trades(1200, ties=False)
    queries = {"q1": f"PATTERN {text} WITHIN 30 ms", "q2": f"PATTERN {text} WITHIN 30 ms WHERE d.y >= 0"}
    _, one = run({"q1": queries["q1"]}, events, 1200, "balanced")
    _, two = run(queries, events, 1200, "balanced")
    assert two["inner_computed"] == one["inner_computed"]


def test_explain_says_which_parts_share_a_view() -> None:
    queries, events = both("negated", "30 ms"), trades(100, ties=False)
    queries["q3"] = "PATTERN SEQ(A a, B b) WITHIN 30 ms"
    text = str(ec.explain(queries, events.schema, type="type"))
    assert (
        "views       shared by equal nested parts, if their strategies keep results\n  q1 (b, c), q2 (p, q)\n" in text
    )
    for settings in ({"sharing": "independent"}, {"strategy": "iterative"}):
        assert "views " not in str(ec.explain(queries, events.schema, type="type", **settings))
