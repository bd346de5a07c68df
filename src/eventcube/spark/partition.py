"""What runs inside a Spark task: the events of a partition in, the matches of its queries out.

Nothing here needs Spark, so it can be tested without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventcube.language.syntax import CountWindow, Query
from eventcube.plan.logical import LogicalQuery
from eventcube.runtime.many import long_form, long_schema
from eventcube.runtime.runtime import Runtime
from eventcube.schema import HALO
from eventcube.spark.counted import Count
from eventcube.spark.earliest import OrderKeys, tie_breakers, with_order
from eventcube.spark.groups import partial_batches
from eventcube.spark.runs import Budget, Sorter, in_order

# Spark turns batches of this size into rows at the least cost: smaller ones are too many, larger ones leave its caches.
OUTPUT_ROWS = 1 << 13


@dataclass(frozen=True, slots=True)
class Share:
    """Queries that run together in a task.

    `forward` ones look ahead, and only they see events borrowed from the slice after theirs. With `limit` there is one
    query, and its matches carry a key that sorts them.
    """

    queries: Mapping[str, Query]
    forward: bool
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """All that a task needs to know. `single`: the result has the columns of the one query there is.

    `types` are the names that numbers in the type column stand for, counted from 1; `counted` takes the counters in.
    """

    shares: tuple[Share, ...]
    settings: Mapping[str, Any]
    single: bool
    result: pa.Schema
    budget: Budget = field(default_factory=Budget)
    types: tuple[str, ...] = ()
    counted: Count | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The matches over a partition, as they are found."""
        if self.types:
            batches = map(self._named, batches)
        first = next(batches, None)
        if first is None:
            return
        runners = [_Runner(share, self, first.schema) for share in self.shares]
        ties = set().union(*(r.ties for r in runners))
        schema = runners[0].runtime.options.schema(first.schema)
        sorter = Sorter(schema, tuple(n for n in first.schema.names if n in ties))

        def every() -> Iterator[pa.RecordBatch]:
            nonlocal first
            if first is not None:
                head, first = first, None
                yield head
            yield from batches

        for piece in in_order(every(), sorter, self.budget, lambda: max(r.runtime.kept for r in runners)):
            for runner in runners:
                yield from self._fitted(runner.push(piece))
        for runner in runners:
            yield from self._fitted(runner.finish())
            if self.counted is not None:
                self.counted(runner.runtime.counters)

    def _named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with type names, as a dictionary, in place of their numbers."""
        place = batch.schema.get_field_index(self.settings["type"])
        codes = pc.subtract(batch.column(place), pa.scalar(1, pa.int16()))
        names = pa.DictionaryArray.from_arrays(codes, pa.array(self.types, pa.string()))
        return batch.set_column(place, self.settings["type"], names)

    def _fitted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            fitted = batch if batch.schema.equals(self.result) else batch.cast(self.result)
            for at in range(0, fitted.num_rows, OUTPUT_ROWS):
                yield fitted.slice(at, OUTPUT_ROWS)


class _Runner:
    """One share at work."""

    def __init__(self, share: Share, work: Work, columns: pa.Schema) -> None:
        self.work, self.share = work, share
        self.drops_ahead = HALO in columns.names and not share.forward
        self.name, query = next(iter(share.queries.items()))
        self.keys: OrderKeys | None = None
        if share.limit is not None:
            bound = logical_of(Runtime(query, schema=columns, **work.settings))
            self.keys = OrderKeys(bound)
            self.runtime = Runtime(with_order(bound), schema=columns, limit=share.limit, **work.settings)
        else:
            self.runtime = Runtime(query if work.single else share.queries, schema=columns, **work.settings)
        self.logical = logical_of(self.runtime)

    @property
    def ties(self) -> set[str]:
        """Columns by which events of equal rank are told apart, where it matters which of them comes first."""
        plans = [engine.logical for engine in engines(self.runtime)]
        matters = [p for p in plans if self.share.limit is not None or isinstance(p.window, CountWindow)]
        return {name for plan in matters for name in tie_breakers(plan)}

    def push(self, events: pa.Table) -> Iterator[pa.RecordBatch]:
        if self.drops_ahead:
            events = events.filter(pc.less_equal(events.column(HALO), 0))
        return self._shaped(self.runtime.push(events))

    def finish(self) -> Iterator[pa.RecordBatch]:
        if not self.logical.query.agg:
            yield from self._shaped(self.runtime.finish())
            return
        for _ in self.runtime.finish():
            pass
        groups = engines(self.runtime)[0].groups
        assert groups is not None
        yield from partial_batches(groups, self.work.result)

    def _shaped(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if self.keys is None:
            yield from batches
            return
        for batch in batches:
            shown, keys = self.keys.strip(batch)
            if not self.work.single:
                shown = long_form(self.name, shown, long_schema(self.logical.schema))
            fields = [*shown.schema, self.work.result.field(shown.num_columns)]
            yield pa.RecordBatch.from_arrays([*shown.columns, keys], schema=pa.schema(fields))


def engines(runtime: Runtime) -> list[Any]:
    """The engines of a runtime, one for each query."""
    return list(runtime._engines.values())


def logical_of(runtime: Runtime) -> LogicalQuery:
    """The plan of a runtime's first query."""
    logical: LogicalQuery = engines(runtime)[0].logical
    return logical
