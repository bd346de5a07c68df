"""The work of a Spark task: from the events of a partition to the matches of its queries.

The driver has planned; a task only runs the plans. Nothing here needs Spark, so it can be tested without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from eventcube.engine.counters import MOST_COUNTED
from eventcube.engine.sinks.groups import GroupSink
from eventcube.plan.workload import WorkloadPlan
from eventcube.runtime.read_columns import read_times
from eventcube.runtime.shared_result import long_form, long_schema
from eventcube.runtime.workload import Result, Workload
from eventcube.schema import EventSchema
from eventcube.spark.counters import AddCounters
from eventcube.spark.external_sort import Budget, Sorter, in_order
from eventcube.spark.groups import COUNTED, GROUPS, partial_batches, streamed_groups
from eventcube.spark.limit import OrderKeys

# Spark converts batches of this size to rows fastest: larger ones do not fit its caches.
OUTPUT_ROWS = 1 << 13


@dataclass(frozen=True, slots=True)
class PlanGroup:
    """Plans that run together in a task.

    With `keys` there is one plan, and its matches get a sort key.
    """

    plan: WorkloadPlan
    keys: OrderKeys | None = None


@dataclass(frozen=True, slots=True)
class MatchTask:
    """The function of a task, as data. `schema` has the columns of its events; `single`: there is one query, and the
    result has its columns.

    `ties` are the columns that order events of equal rank, where their order matters. `types` are the names of the
    codes in the type column, which start at 1; `add_counters` collects the counters. Only what a watermark at `until`
    (microseconds) decides is a match, if it is given.
    """

    groups: tuple[PlanGroup, ...]
    schema: EventSchema
    single: bool
    result: pa.Schema
    ties: tuple[str, ...] = ()
    budget: Budget = field(default_factory=Budget)
    types: tuple[str, ...] = ()
    add_counters: AddCounters | None = None
    until: int | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The matches of a partition, as they are found."""
        runners = [_Runner(group, self) for group in self.groups]
        sorter = Sorter(self.schema, self.ties)
        events = map(self._read, batches)
        for piece in in_order(events, sorter, self.budget, lambda: max(r.kept for r in runners)):
            for runner in runners:
                yield from self._output(runner.push(piece))
        for runner in runners:
            yield from self._output(runner.finish())
            if self.add_counters is not None:
                self.add_counters(runner.workload.counters)

    def _read(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the planned column types; type codes become a dictionary of names."""
        if self.types:
            assert self.schema.type is not None
            index = batch.schema.get_field_index(self.schema.type)
            codes = pc.subtract(batch.column(index), pa.scalar(1, pa.int16()))
            names = pa.DictionaryArray.from_arrays(codes, pa.array(self.types, pa.string()))
            batch = batch.set_column(index, self.schema.type, names)
        batch = batch if batch.schema.types == self.schema.columns.types else batch.cast(self.schema.columns)
        if self.until is None:
            return batch
        ts, _ = read_times(pa.chunked_array([batch.column(self.schema.time)]), self.schema)
        return batch.filter(pa.array(ts < self.until))

    def _output(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = batch if batch.schema.equals(self.result) else batch.cast(self.result)
            for at in range(0, rows.num_rows, OUTPUT_ROWS):
                yield rows.slice(at, OUTPUT_ROWS)


class _Runner:
    """A running plan group."""

    def __init__(self, group: PlanGroup, task: MatchTask) -> None:
        self.task, self.group = task, group
        self.workload = Workload(group.plan, task.schema)

    @property
    def kept(self) -> int:
        """The largest number of events that a query retains for later matches."""
        return max(self.workload.kept.values())

    def push(self, events: pa.Table) -> Iterator[pa.RecordBatch]:
        return self._format(self.workload.push(events))

    def finish(self) -> Iterator[pa.RecordBatch]:
        until = self.task.until
        results = self.workload.finish() if until is None else self.workload.advance(until)
        if self.task.result.equals(COUNTED):
            for _ in results:
                pass
            queries = self.workload.engine.queries
            numbers = [query.counters.matches for query in queries.values()]
            matches = pa.array([None if n == MOST_COUNTED else n for n in numbers], pa.int64())
            yield pa.RecordBatch.from_arrays([pa.array(queries, pa.string()), matches], schema=COUNTED)
            return
        if self.task.result.equals(GROUPS):
            for _ in results:
                pass
            for name, query in self.workload.engine.queries.items():
                assert isinstance(query.sink, GroupSink)
                yield from streamed_groups(name, query.sink.groups)
            return
        sink = next(iter(self.workload.engine.queries.values())).sink
        if not isinstance(sink, GroupSink):
            yield from self._format(results)
            return
        for _ in results:
            pass
        yield from partial_batches(sink.groups, self.task.result)

    def _format(self, results: Iterator[Result]) -> Iterator[pa.RecordBatch]:
        for name, batch in results:
            rows, keys = (batch, None) if self.group.keys is None else self.group.keys.strip(batch)
            if not self.task.single:
                rows = long_form(name, rows, long_schema(self.task.schema))
            if keys is not None:
                fields = [*rows.schema, self.task.result.field(rows.num_columns)]
                rows = pa.RecordBatch.from_arrays([*rows.columns, keys], schema=pa.schema(fields))
            yield rows
