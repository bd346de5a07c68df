"""AGG over many tasks: each gives its groups unfinished, and they are merged where their keys meet."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from eventcube.engine.aggregate import WHOLE_SUM, Groups
from eventcube.plan.kinds import value_kind
from eventcube.plan.logical import LogicalQuery
from eventcube.plan.result import group_schema, value_type
from eventcube.schema import Kind


def partial_schema(logical: LogicalQuery) -> pa.Schema:
    """The columns of unfinished groups: keys as they are shown, sums as numbers."""
    keys = [pa.field(f"k{i}", group_schema(logical).field(i).type) for i in range(len(logical.query.group_by))]
    fields = []
    for name, function, argument in Groups(logical).parts:
        if function == "COUNT" or argument is None:
            type_ = pa.int64()
        elif function == "SUM":
            kind = value_kind(argument, logical.kind, lambda _: None)
            type_ = WHOLE_SUM if kind in (Kind.INTEGER, Kind.DURATION) else pa.float64()
        else:
            type_ = value_type(argument, logical)
        fields.append(pa.field(name, type_))
    return pa.schema([*keys, *fields])


def partial_batches(groups: Groups, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """A task's groups, unfinished."""
    partial = groups.partial
    if partial is not None:
        yield from partial.select(schema.names).cast(schema, safe=False).to_batches()


class Merge:
    """The function of the last stage: unfinished groups in, finished ones out."""

    def __init__(self, logical: LogicalQuery, result: pa.Schema) -> None:
        self.logical, self.result = logical, result

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        groups: Groups | None = None
        for batch in batches:
            table = pa.Table.from_batches([batch])
            known = None if groups is None else groups.partial
            if known is not None:
                table = pa.concat_tables([known, table], promote_options="permissive")
            groups = Groups(self.logical, table)
            assert groups.partial is not None
        if groups is not None:
            yield groups.result().cast(self.result)
