"""What runs inside a Spark task: the events of a partition in, the matches of its queries out.

The driver has planned; a task only runs the plans. Nothing here needs Spark, so it can be tested without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from eventcube.plan.physical import PhysicalQuery
from eventcube.runtime.shared_result import long_form, long_schema
from eventcube.runtime.workload import Result, Workload
from eventcube.schema import HALO, EventSchema
from eventcube.spark.counted import Count
from eventcube.spark.earliest import OrderKeys
from eventcube.spark.groups import partial_batches
from eventcube.spark.runs import Budget, Sorter, in_order

# Spark turns batches of this size into rows at the least cost: smaller ones are too many, larger ones leave its caches.
OUTPUT_ROWS = 1 << 13


@dataclass(frozen=True, slots=True)
class Share:
    """Plans that run together in a task.

    `forward` ones look ahead, and only they see events borrowed from the slice after theirs. With `keys` there is one
    plan, and its matches carry a key that sorts them.
    """

    plans: Mapping[str, PhysicalQuery]
    forward: bool
    keys: OrderKeys | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """All that a task needs to know. `schema` has the columns of its events; `single`: there is one query, and the
    result has its columns.

    `ties` are the columns by which events of equal rank are told apart, where it matters which of them comes first.
    `types` are the names that numbers in the type column stand for, counted from 1; `counted` takes the counters in.
    """

    shares: tuple[Share, ...]
    schema: EventSchema
    single: bool
    result: pa.Schema
    ties: tuple[str, ...] = ()
    budget: Budget = field(default_factory=Budget)
    types: tuple[str, ...] = ()
    counted: Count | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The matches over a partition, as they are found."""
        runners = [_Runner(share, self) for share in self.shares]
        sorter = Sorter(self.schema, self.ties)
        events = map(self._read, batches)
        for piece in in_order(events, sorter, self.budget, lambda: max(r.kept for r in runners)):
            for runner in runners:
                yield from self._fitted(runner.push(piece))
        for runner in runners:
            yield from self._fitted(runner.finish())
            if self.counted is not None:
                self.counted(runner.workload.counters)

    def _read(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the columns that were planned for; type names, as a dictionary, in place of their numbers."""
        if self.types:
            assert self.schema.type is not None
            place = batch.schema.get_field_index(self.schema.type)
            codes = pc.subtract(batch.column(place), pa.scalar(1, pa.int16()))
            names = pa.DictionaryArray.from_arrays(codes, pa.array(self.types, pa.string()))
            batch = batch.set_column(place, self.schema.type, names)
        return batch if batch.schema.types == self.schema.columns.types else batch.cast(self.schema.columns)

    def _fitted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            fitted = batch if batch.schema.equals(self.result) else batch.cast(self.result)
            for at in range(0, fitted.num_rows, OUTPUT_ROWS):
                yield fitted.slice(at, OUTPUT_ROWS)


class _Runner:
    """One share at work."""

    def __init__(self, share: Share, work: Work) -> None:
        self.work, self.share = work, share
        self.workload = Workload(share.plans, work.schema)
        self.drops_ahead = HALO in work.schema.columns.names and not share.forward

    @property
    def kept(self) -> int:
        """How many events are kept for matches to come, at most, by a query."""
        return max(self.workload.kept.values())

    def push(self, events: pa.Table) -> Iterator[pa.RecordBatch]:
        if self.drops_ahead:
            events = events.filter(pc.less_equal(events.column(HALO), 0))
        return self._shaped(self.workload.push(events))

    def finish(self) -> Iterator[pa.RecordBatch]:
        results = self.workload.finish()
        engine = next(iter(self.workload.engines.values()))
        if engine.groups is None:
            yield from self._shaped(results)
            return
        for _ in results:
            pass
        yield from partial_batches(engine.groups, self.work.result)

    def _shaped(self, results: Iterator[Result]) -> Iterator[pa.RecordBatch]:
        for name, batch in results:
            shown, keys = (batch, None) if self.share.keys is None else self.share.keys.strip(batch)
            if not self.work.single:
                shown = long_form(name, shown, long_schema(self.work.schema))
            if keys is not None:
                fields = [*shown.schema, self.work.result.field(shown.num_columns)]
                shown = pa.RecordBatch.from_arrays([*shown.columns, keys], schema=pa.schema(fields))
            yield shown
