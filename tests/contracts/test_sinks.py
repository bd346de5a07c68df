"""Every sink: what it promises about batches and snapshots; and a sink of one's own, added by registering it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from eventcube.engine.output import Output
from eventcube.engine.sinks import sink as registry
from eventcube.engine.sinks.sink import Sink, register, sinks
from eventcube.engine.table import Table
from eventcube.language.parse import parse
from eventcube.options import options
from eventcube.plan.physical import PhysicalQuery
from eventcube.plan.planned import plan_query
from eventcube.plan.workload import plan_workload
from eventcube.runtime.workload import Workload

EVENTS = pa.table(
    {"ts": pa.array(range(0, 600, 3), pa.int64()), "kind": ["ABCAB"[i % 5] for i in range(200)], "x": list(range(200))}
)
OPTIONS = options(type="kind")
QUERIES = {
    "matches": "PATTERN SEQ(A a, B b) WITHIN 30 us RETURN a.x AS a, b.x AS b",
    "groups": "PATTERN SEQ(A a, B b) WITHIN 30 us GROUPBY a.x AGG COUNT(*) AS n, MAX(b.x) AS m",
    "totals": "PATTERN SEQ(A a, B b) WITHIN 30 us GROUPBY b.x AGG COUNT(*) AS n, SUM(a.x) AS s",
    "per event": "PATTERN SEQ(A a, B b) WITHIN 30 us AGG COUNT(*) AS n, MAX(b.x) AS m PER a HAVING n > 1",
    "totals per event": "PATTERN SEQ(A a, B b) WITHIN 30 us AGG COUNT(*) AS n, MAX(b.x) AS m PER a HAVING n > 1",
    "earliest": "PATTERN SEQ(A a, B b, !C c) WITHIN 30 us RETURN a.x AS a, b.x AS b LIMIT 9",
}


def _plan(query: str, sink: str | None = None) -> PhysicalQuery:
    return plan_query(parse(query), OPTIONS.schema(EVENTS.schema), OPTIONS, sink).physical


def _rows(plan: PhysicalQuery, batch: int) -> tuple[list[dict[str, object]], int]:
    """All rows of the result, and how many matches were counted, with the events in batches of one size."""
    workload = Workload(plan_workload({"q": plan}), plan.schema)
    results: list[pa.RecordBatch] = []
    for at in range(0, EVENTS.num_rows, batch):
        results += (found for _, found in workload.push(EVENTS.slice(at, batch)))
    results += (found for _, found in workload.finish())
    return [row for found in results for row in found.to_pylist()], workload.counters["matches"]


@pytest.mark.parametrize("name", sorted(sinks()))
def test_the_result_does_not_depend_on_batches(name: str) -> None:
    plan = _plan(QUERIES[name], name)
    whole, counted = _rows(plan, EVENTS.num_rows)
    assert whole
    for batch in (1, 7, 64):
        rows, matches = _rows(plan, batch)
        assert sorted(map(str, rows)) == sorted(map(str, whole))
        assert matches == counted


@pytest.mark.parametrize("name", ["matches", "totals", "totals per event", "earliest"])
def test_the_clauses_of_a_query_choose_its_sink(name: str) -> None:
    assert _plan(QUERIES[name]).sink.name == name


def test_groups_are_folded_from_matches_if_asked_for_or_needed() -> None:
    chosen = options(type="kind", aggregates="enumerate")
    assert plan_query(parse(QUERIES["totals"]), chosen.schema(EVENTS.schema), chosen).physical.sink.name == "groups"
    assert _plan("PATTERN SEQ(A a, B b, b.x > a.x) WITHIN 30 us AGG COUNT(*)").sink.name == "groups"


def test_every_sink_has_a_query() -> None:
    assert QUERIES.keys() == sinks().keys()


def test_a_sink_is_added_by_registering_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))

    @register("longest")
    class Longest(Sink):
        """Keeps only how far apart the events of a match are at most."""

        def __init__(self, plan: PhysicalQuery) -> None:
            super().__init__(plan)
            self.longest = -1

        def add(self, table: Table, output: Output) -> Iterator[pa.RecordBatch]:
            ts = output.store.ts
            self.longest = max(self.longest, int((ts[table[1]] - ts[table[0]]).max()))
            return iter(())

        def finish(self) -> Iterator[pa.RecordBatch]:
            yield pa.record_batch({"longest": [self.longest]})

    rows, _ = _rows(_plan(QUERIES["matches"], "longest"), 13)
    found, _ = _rows(_plan(QUERIES["matches"]), 200)
    expected = max(int(row["end"]) - int(row["start"]) for row in found)  # type: ignore[call-overload]
    assert rows == [{"longest": expected}]
