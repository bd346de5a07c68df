"""AGG … PER: a row for each event that begins or ends a match, once, with all of its matches."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.engine import aggregate
from eventcube.engine.sinks import per_event
from eventcube.runtime import Runtime

EVENTS = pa.table(
    {
        "ts": pa.array([1, 2, 3, 4, 4, 5, 9, 20], pa.timestamp("us")),
        "kind": ["A", "A", "B", "B", "B", "A", "B", "B"],
        "x": [1, 2, 3, 4, 4, 5, 6, 7],
    }
)


def rows(result: pa.Table) -> list[tuple[Any, ...]]:
    """The rows, an event by its x, in order."""
    return sorted(tuple(v["x"] if isinstance(v, dict) else v for v in row.values()) for row in result.to_pylist())


def counted(query: str, **settings: Any) -> list[tuple[Any, ...]]:
    return rows(ec.match(EVENTS, f"PATTERN {query}", type="kind", **settings))


def test_a_row_for_each_last_event() -> None:
    # Two events are equal in all columns, and have a row each.
    found = counted("SEQ(A a, B b) WITHIN 5 us AGG COUNT(*) AS n, SUM(a.x) AS s, MIN(a.x) AS m PER b")
    assert found == [(3, 2, 3, 1), (4, 2, 3, 1), (4, 2, 3, 1), (6, 1, 5, 5)]


def test_a_row_for_each_first_event() -> None:
    found = counted("SEQ(A a, B b) WITHIN 5 us AGG COUNT(*) AS n, COUNT(DISTINCT b.x) AS d, AVG(b.x) AS m PER a")
    assert found == [(1, 3, 2, 11 / 3), (2, 3, 2, 11 / 3), (5, 1, 1, 6.0)]


def test_a_pattern_of_one_event_has_a_row_for_each_match() -> None:
    assert counted("B b WHERE b.x > 3 WITHIN 5 us AGG COUNT(*) PER b") == [(4, 1), (4, 1), (6, 1), (7, 1)]
    assert counted("SEQ(B b, !A a) WITHIN 5 us AGG COUNT(*) PER b") == [(6, 1), (7, 1)]


def test_having_keeps_rows() -> None:
    query = "SEQ(A a, B b) WITHIN 5 us AGG COUNT(*) AS n PER b HAVING {}"
    assert counted(query.format("n > 1 AND MAX(a.x) = 2")) == [(3, 2), (4, 2), (4, 2)]
    assert counted(query.format("n > 2")) == []


def test_the_event_is_a_struct_or_flat_columns() -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 5 us AGG COUNT(*) AS n PER b"
    found = ec.match(EVENTS, query, type="kind")
    assert found.schema == pa.schema(
        [pa.field("b", pa.struct(list(EVENTS.schema)), False), pa.field("n", pa.int64(), False)]
    )
    flat = ec.match(EVENTS, query, type="kind", flat=True)
    assert flat.column_names == ["b_ts", "b_kind", "b_x", "n"]
    assert sorted(flat.column("b_x").to_pylist()) == [3, 4, 4, 6]


def test_without_a_match_there_is_no_row() -> None:
    assert counted("SEQ(A a, B b) WHERE a.x > b.x WITHIN 5 us AGG COUNT(*) PER b") == []


@pytest.mark.parametrize("event", ["a", "b"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_batches_and_restored_states_change_no_row(event: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(per_event, "OUTPUT_ROWS", 2)
    monkeypatch.setattr(aggregate, "_FOLD_ROWS", 1)
    query = f"PATTERN SEQ(A a, B b) WITHIN 5 us AGG COUNT(*) AS n, COUNT(DISTINCT a.x) PER {event}"
    found: list[pa.RecordBatch] = []
    runtime = Runtime(query, type="kind", advise=False)
    for at in range(0, EVENTS.num_rows, size):
        found += runtime.push(EVENTS.slice(at, size))
        state, runtime = runtime.snapshot(), Runtime(query, type="kind", advise=False)
        runtime.restore(state)
    found += runtime.finish()
    assert rows(pa.Table.from_batches(found)) == rows(ec.match(EVENTS, query, type="kind"))


def test_a_row_comes_as_soon_as_it_is_final() -> None:
    last = Runtime("PATTERN SEQ(A a, B b) WITHIN 5 us AGG COUNT(*) AS n PER b", type="kind", advise=False)
    first = Runtime("PATTERN SEQ(A a, B b) WITHIN 5 us AGG COUNT(*) AS n PER a", type="kind", advise=False)
    for runtime in (last, first):
        assert list(runtime.push(EVENTS.slice(0, 3))) == []
    assert rows(pa.Table.from_batches(last.advance(4))) == [(3, 2)]
    # All that comes up to 6 can be in a match with the event at 1.
    assert list(first.advance(6)) == []
    assert rows(pa.Table.from_batches(first.advance(7))) == [(1, 1)]


def test_many_matches_of_few_events_are_counted() -> None:
    count = 1500
    events = pa.table({"ts": range(2 * count), "kind": ["A"] * count + ["B"] * count})
    query = "PATTERN SEQ(A a, B b) WITHIN 1 h AGG COUNT(*) AS n PER b"
    found = ec.match(events, query, type="kind")
    assert found.num_rows == count
    assert set(found.column("n").to_pylist()) == {count}


def test_in_several_queries_each_has_its_rows() -> None:
    pattern = "PATTERN SEQ(A a, B b) WITHIN 5 us"
    queries = {
        "last": f"{pattern} AGG COUNT(*) AS n PER b",
        "first": f"{pattern} AGG COUNT(*) AS n PER a",
        "all": pattern,
    }
    found = ec.match_all(EVENTS, queries, type="kind")
    assert rows(found["last"]) == [(3, 2), (4, 2), (4, 2), (6, 1)]
    assert rows(found["first"]) == [(1, 3), (2, 3), (5, 1)]
    assert found["all"].num_rows == 7
    counts = ec.match_all(EVENTS, {name: f"{query}" for name, query in queries.items()}, type="kind", sharing="chase")
    assert rows(counts["last"]) == rows(found["last"])
