"""The schema of a query's result, known before it runs."""

from __future__ import annotations

import pyarrow as pa

from eventcube.plan.bind_expressions import zone_of
from eventcube.plan.dictionary import dictionary_of
from eventcube.plan.expressions import ColumnRef, Expression
from eventcube.plan.logical import Computed, EventColumn, LogicalQuery, Results
from eventcube.schema import Kind, TypedColumns, plain_type

_TYPES = {
    Kind.INTEGER: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.DURATION: pa.duration("us"),
    Kind.NULL: pa.null(),
}


def result_schema(logical: LogicalQuery) -> pa.Schema:
    """The columns of the result: of the matches, or of the groups if the query has AGG."""
    if logical.results.agg:
        return group_schema(logical.results)
    time = logical.schema.time_type
    fields = [pa.field("start", time, nullable=False), pa.field("end", time, nullable=False)]
    for column in logical.results.returns:
        optional = not isinstance(column, EventColumn) or bool(logical.slots[column.slot].alternatives)
        type_ = column.type if isinstance(column, EventColumn) else column.value.type
        fields.append(pa.field(column.name, type_, optional))
    return pa.schema(fields)


def group_schema(results: Results) -> pa.Schema:
    """The columns of the groups: the keys, or the event that each row is for, then the aggregates.

    Beside a key that is rolled up stands its level.
    """
    types, aggregates = group_columns(results), results.agg[: results.listed]
    event = [] if results.per is None else [pa.field(results.per.name, results.per.type, nullable=False)]
    levels = {key.number: [pa.field(key.name, pa.int64())] for key in results.levels}
    keys = [
        field
        for i, key in enumerate(results.group_by)
        for field in (types.field(f"k{i}").with_name(key.name), *levels.get(i, ()))
    ]
    columns = [types.field(f"a{i}").with_name(aggregate.name) for i, aggregate in enumerate(aggregates)]
    return pa.schema([*event, *keys, *columns])


def group_columns(results: Results) -> pa.Schema:
    """The columns of the groups by their names in HAVING (k0, …, a0, …), hidden aggregates included."""
    keys = [pa.field(f"k{i}", plain_type(key.value.type)) for i, key in enumerate(results.group_by)]
    return pa.schema([*keys, *(pa.field(f"a{i}", a.type, a.function != "COUNT") for i, a in enumerate(results.agg))])


def aggregate_type(function: str, argument: Computed | None) -> pa.DataType:
    """The type of an aggregate's column."""
    if function == "COUNT" or argument is None:
        return pa.int64()
    if function in ("MIN", "MAX"):
        return plain_type(argument.type)
    if argument.expression.kind is Kind.DURATION:
        return pa.duration("us")
    return pa.int64() if argument.expression.kind is Kind.INTEGER and function == "SUM" else pa.float64()


def computed(value: Expression, columns: TypedColumns) -> Computed:
    """The value with the type of its result column and its dictionary."""
    return Computed(value, value_type(value, columns), dictionary_of([value]))


def value_type(value: Expression, columns: TypedColumns) -> pa.DataType:
    """The type of a computed column; a column of the events keeps its type."""
    if isinstance(value, ColumnRef):
        return columns.columns.field(value.column).type
    if value.kind is Kind.TIME:
        return pa.timestamp("us", zone_of(value, columns))
    return _TYPES[value.kind]
