"""What the result of a query looks like, known before it runs."""

from __future__ import annotations

import pyarrow as pa

from eventcube.language.printer import column_name
from eventcube.language.syntax import Aggregate, Attribute, Item, Value, Variable
from eventcube.plan.kinds import attributes, value_kind
from eventcube.plan.logical import LogicalQuery
from eventcube.schema import Kind

_TYPES = {
    Kind.INTEGER: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.DURATION: pa.duration("us"),
    Kind.NULL: pa.null(),
}


def returned(logical: LogicalQuery) -> tuple[Item, ...]:
    """What RETURN lists, or else every positive variable."""
    return logical.query.returns or tuple(Item(Variable(s.name)) for s in logical.positive)


def result_schema(logical: LogicalQuery) -> pa.Schema:
    """The columns of the result: of the matches, or of the groups if the query has AGG."""
    if logical.query.agg:
        return group_schema(logical)
    time = logical.schema.time_type
    fields = [pa.field("start", time, nullable=False), pa.field("end", time, nullable=False)]
    return pa.schema(fields + [_field(item, logical) for item in returned(logical)])


def group_schema(logical: LogicalQuery) -> pa.Schema:
    """The columns of the groups: what GROUPBY lists, then the aggregates."""
    fields = []
    for item in logical.query.group_by:
        if isinstance(item.value, Variable):
            assert logical.schema.type is not None
            fields.append(pa.field(column_name(item), _plain(logical.schema.columns.field(logical.schema.type).type)))
        else:
            fields.append(pa.field(column_name(item), _plain(value_type(item.value, logical))))
    fields += [pa.field(column_name(a), aggregate_type(a, logical), a.function != "COUNT") for a in logical.query.agg]
    return pa.schema(fields)


def aggregate_type(aggregate: Aggregate, logical: LogicalQuery) -> pa.DataType:
    """The type of an aggregate's column."""
    if aggregate.function == "COUNT" or aggregate.argument is None:
        return pa.int64()
    kind = value_kind(aggregate.argument, logical.kind, lambda _: None)
    if aggregate.function in ("MIN", "MAX"):
        return _plain(value_type(aggregate.argument, logical))
    if kind is Kind.DURATION:
        return pa.duration("us")
    return pa.int64() if kind is Kind.INTEGER and aggregate.function == "SUM" else pa.float64()


def value_type(value: Value, logical: LogicalQuery) -> pa.DataType:
    """The type of a computed column; an attribute keeps its own."""
    if isinstance(value, Attribute):
        return logical.schema.columns.field(value.name).type
    kind = value_kind(value, logical.kind, lambda _: None)
    if kind is Kind.TIME:
        times = (logical.schema.columns.field(a.name).type for a in attributes(value) if logical.kind(a) is Kind.TIME)
        return pa.timestamp("us", next((t.tz for t in times if pa.types.is_timestamp(t)), None))
    return _TYPES[kind]


def _plain(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _field(item: Item, logical: LogicalQuery) -> pa.Field:
    if isinstance(item.value, Variable):
        optional = bool(logical.slot(item.value.name).alternatives)
        return pa.field(column_name(item), pa.struct(list(logical.schema.visible)), optional)
    return pa.field(column_name(item), value_type(item.value, logical))
