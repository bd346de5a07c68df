"""Compare long numbers exactly instead of as floats."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pyarrow.types as pat

from eventcube.plan.expressions import (
    AllOf,
    AnyOf,
    Between,
    ColumnRef,
    Comparison,
    Condition,
    Constant,
    Encoding,
    Expression,
    In,
    Not,
)
from eventcube.plan.logical import LogicalQuery, Region, map_regions
from eventcube.plan.result import group_columns
from eventcube.schema import GroupColumns, Kind, TypedColumns, is_long, plain_type


def compare_exactly(query: LogicalQuery) -> LogicalQuery:
    """Compare decimals and unsigned 64-bit numbers with exact numbers by their ranks, as floats would round them.

    >>> from eventcube.plan.rule_examples import show
    >>> show(compare_exactly, "SEQ(A a, B b) WHERE a.amount > b.amount AND a.amount > b.y")
    SEQ(A a, B b) WHERE a.amount > b.amount AND a.amount > b.y
    →
    SEQ(A a, B b) WHERE a.amount > b.amount AND a.amount > b.y
      by rank: a.amount, b.amount
    """
    groups = GroupColumns(group_columns(query.results))
    if not any(is_long(field.type) for columns in (query.schema, groups) for field in columns.columns):
        return query
    region = map_regions(query.region, lambda region: _in_region(region, query.schema))
    having = tuple(_exactly(condition, groups) for condition in query.results.having)
    if region is query.region and having == query.results.having:
        return query
    return replace(query, region=region, results=replace(query.results, having=having))


def _in_region(region: Region, columns: TypedColumns) -> Region:
    predicates = tuple(replace(p, condition=_exactly(p.condition, columns)) for p in region.predicates)
    return region if predicates == region.predicates else replace(region, predicates=predicates)


def _exactly(condition: Condition, columns: TypedColumns) -> Condition:
    match condition:
        case Comparison(op, left, right):
            return _comparison(op, left, right, columns)
        case In(value, options) if options:
            equalities = [_comparison("=", value, option, columns) for option in options]
            values = {equality.left for equality in equalities}
            if len(values) == 1:
                return In(values.pop(), tuple(equality.right for equality in equalities))
            # Some options are compared exactly and some as floats.
            return AnyOf(tuple(equalities))
        case Between(value, low, high):
            least, most = _comparison(">=", value, low, columns), _comparison("<=", value, high, columns)
            return Between(least.left, least.right, most.right) if least.left == most.left else AllOf((least, most))
        case AllOf(conditions) | AnyOf(conditions):
            return type(condition)(tuple(_exactly(inner, columns) for inner in conditions))
        case Not(inner):
            return Not(_exactly(inner, columns))
    return condition


def _comparison(op: str, left: Expression, right: Expression, columns: TypedColumns) -> Comparison:
    """The comparison: by rank if a long number is compared with an exact one, else of floats."""
    both = (left, right)
    if any(_is_long(v, columns) for v in both) and all(_is_exact(v, columns) for v in both):
        left, right = _ranked(left), _ranked(right)
    return Comparison(op, left, right)


def _is_long(value: Expression, columns: TypedColumns) -> bool:
    return isinstance(value, ColumnRef) and is_long(columns.columns.field(value.column).type)


def _is_exact(value: Expression, columns: TypedColumns) -> bool:
    match value:
        case ColumnRef(column=name, kind=kind):
            type_ = plain_type(columns.columns.field(name).type)
            return kind is Kind.INTEGER or pat.is_decimal(type_) or pat.is_uint64(type_)
        case Constant(kind=kind):
            return kind.numeric or kind is Kind.NULL
    return False


def _ranked(value: Expression) -> Expression:
    match value:
        case ColumnRef():
            return replace(value, encoding=Encoding.RANK)
        case Constant(int() | float() as number):
            # The digits as they are written, so that 0.1 is a tenth.
            exact = Decimal(int(number)) if number == int(number) else Decimal(repr(number))
            return replace(value, value=exact, encoding=Encoding.RANK)
    return value
