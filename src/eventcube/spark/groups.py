"""AGG over many tasks: each returns partial groups, which are merged after a shuffle by their keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa

from eventcube.cube.levels import in_columns
from eventcube.engine.aggregate import ESTIMATE, Groups
from eventcube.engine.counters import MOST_COUNTED, within_limit
from eventcube.engine.levels import group_rows
from eventcube.plan.logical import Computed, Results
from eventcube.plan.planned import Planned
from eventcube.plan.result import group_columns
from eventcube.schema import Kind, plain_type

# How many matches each query has.
COUNTED = pa.schema([("query", pa.string()), ("matches", pa.int64())])
# Partial groups of several queries, as an Arrow stream in each row, or none.
GROUPS = pa.schema([("query", pa.string()), ("groups", pa.binary())])
# A stream has no more groups than this.
_STREAM_ROWS = 1 << 16


def in_tasks(planned: Planned) -> Planned:
    """The plan with groups that no task gives, or rolls up, before they are merged with those of others."""
    sink = planned.physical.sink
    sink = replace(sink, closing=(), results=replace(sink.results, levels=()))
    return replace(planned, physical=replace(planned.physical, sink=sink))


def partial_schema(results: Results) -> pa.Schema:
    """The columns of partial groups: keys with their result types, sums as numbers."""
    groups = Groups(results)
    keys = [group_columns(results).field(name) for name in groups.keys]
    fields = [pa.field(name, _counted_type(value)) for name, value in groups.distinct.items()]
    for name, function, argument in groups.parts:
        if function == "COUNT" or argument is None:
            type_ = pa.int64()
        elif function == "SUM":
            type_ = pa.int64() if name in groups.whole else pa.float64()
        else:
            type_ = argument.type
        fields.append(pa.field(name, type_))
    estimates = [pa.field(ESTIMATE + name, pa.float64()) for name, *_ in groups.parts if name in groups.whole]
    return pa.schema([*keys, *fields, *estimates])


def _counted_type(value: Computed) -> pa.DataType:
    """The type of the values of COUNT(DISTINCT …): times as integers."""
    temporal = value.expression.kind in (Kind.TIME, Kind.DURATION)
    type_ = plain_type(value.type)
    return pa.int64() if temporal and not pa.types.is_string(type_) else type_


def partial_batches(groups: Groups, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The partial groups of a task."""
    partial = groups.partial
    if partial is not None:
        yield from partial.select(schema.names).cast(schema, safe=False).to_batches()


def streamed_groups(name: str, groups: Groups) -> Iterator[pa.RecordBatch]:
    """The partial groups of a task for one of several queries."""
    for batch in partial_batches(groups, partial_schema(groups.results)):
        for at in range(0, batch.num_rows, _STREAM_ROWS):
            stream = pa.BufferOutputStream()
            with pa.ipc.new_stream(stream, batch.schema) as writer:
                writer.write_batch(batch.slice(at, _STREAM_ROWS))
            content = pa.array([stream.getvalue().to_pybytes()], pa.binary())
            yield pa.RecordBatch.from_arrays([pa.array([name]), content], schema=GROUPS)


class Merge:
    """The function of the last stage: merges partial groups into final ones."""

    def __init__(self, results: Results, result: pa.Schema) -> None:
        self.results, self.result = results, result

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        groups: Groups | None = None
        for batch in batches:
            table = pa.Table.from_batches([batch])
            merged = None if groups is None else groups.partial
            if merged is not None:
                table = pa.concat_tables([merged, table], promote_options="permissive")
            groups = Groups(self.results, table)
            assert groups.partial is not None
        if groups is not None:
            yield groups.result().cast(self.result)


class MergeCounts:
    """The function of the last stage for counts of several queries: a row for each, in order, up to its limit."""

    def __init__(self, names: tuple[str, ...], limits: Mapping[str, int]) -> None:
        self.names, self.limits = names, dict(limits)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total: Counter[str] = Counter()
        for batch in batches:
            for name, matches in zip(*batch.to_pydict().values(), strict=True):
                total[name] += MOST_COUNTED if matches is None else matches
        numbers = {name: total[name] if total[name] < MOST_COUNTED else None for name in self.names}
        counts = [within_limit(numbers[name], self.limits.get(name)) for name in self.names]
        yield pa.RecordBatch.from_arrays([pa.array(self.names), pa.array(counts, pa.int64())], schema=COUNTED)


class MergeLevels:
    """The function of the last stage for counts at every level: merges the groups of queries, and rolls them up."""

    def __init__(self, results: Mapping[str, Results], schema: pa.Schema, limits: Mapping[str, int]) -> None:
        self.results, self.schema, self.limits = dict(results), schema, dict(limits)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        merged: dict[str, Groups] = {}
        for batch in batches:
            for name, content in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                groups = merged.setdefault(name, Groups(self.results[name]))
                if content.is_valid:
                    groups.add_partial(pa.ipc.open_stream(content.as_buffer()).read_all())
        for name in self.results:
            if name in merged:
                yield in_columns(name, group_rows(merged[name]), self.schema, self.limits.get(name))
