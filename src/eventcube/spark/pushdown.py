"""Predicate pushdown: a filter of events that Spark pushes into the scan.

The filter may pass too many rows (the engine tests again), but never too few. It is written without NOT: a comparison
with null is unknown to the engine and null to Spark, and both drop the row. NaN is null to the engine but larger than
every number to Spark, which only passes more rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, DateType, DecimalType, StringType, StructType, TimestampNTZType, TimestampType

from eventcube.plan.expressions import (
    FLIPPED,
    AllOf,
    AnyOf,
    Between,
    ColumnRef,
    Comparison,
    Condition,
    Constant,
    Expression,
    In,
    IsNull,
    IsTrue,
    Like,
    Not,
)
from eventcube.plan.physical import ComponentScan, PhysicalQuery
from eventcube.schema import Kind
from eventcube.spark.columns import column

_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_EPOCH = datetime(1970, 1, 1)
_LARGEST = 2**63 - 1
# With more types, encoding them takes longer than shuffling their names.
_MAX_CODED_TYPES = 64


def usable(plans: Sequence[PhysicalQuery], frame: StructType) -> list[Column]:
    """Filters that pass every event that a component of the queries can use.

    Where a window counts events, only the time is filtered, as every event counts.
    """
    schema = plans[0].schema
    filters = [column(schema.time).isNotNull()]
    if any(plan.scan.by_count for plan in plans):
        return filters
    components = [component for plan in plans for component in plan.scan.components]
    types = _types(plans)
    if types is not None and schema.type is not None and _has_binary_collation(frame[schema.type].dataType):
        filters.append(column(schema.type).isin(types))
    if all(component.conditions for component in components):
        by_component = [_component_filter(component, schema.type, frame) for component in components]
        if all(found is not None for found in by_component):
            filters.append(reduce(or_, [found for found in by_component if found is not None]))
    return [*filters, *(column(name).isNotNull() for name in _never_null(plans))]


def coded_types(plans: Sequence[PhysicalQuery], frame: StructType) -> tuple[str, ...]:
    """The types that pass `usable`, if they are few enough to be shuffled as codes; else empty."""
    schema = plans[0].schema
    if schema.type is None or not _has_binary_collation(frame[schema.type].dataType):
        return ()
    types = _types(plans)
    if types is None or any(plan.scan.by_count for plan in plans):
        return ()
    return tuple(types) if len(types) <= _MAX_CODED_TYPES else ()


def _types(plans: Sequence[PhysicalQuery]) -> list[str] | None:
    """The types that the queries read, sorted; None for any."""
    types = [plan.scan.types for plan in plans]
    return None if None in types else sorted(frozenset().union(*(t for t in types if t is not None)))


def _never_null(plans: Sequence[PhysicalQuery]) -> Iterable[str]:
    """Key columns of all queries: equal in all events of a match, and so never null."""
    keys = [set(plan.scan.key) if len(plan.positive) > 1 else set() for plan in plans]
    return sorted(set.intersection(*keys))


def _component_filter(component: ComponentScan, type_: str | None, frame: StructType) -> Column | None:
    """A filter that passes the events of a component; None if there is none."""
    filters = [found for local in component.conditions if (found := superset(local, frame)) is not None]
    if not filters:
        return None
    if type_ is not None and component.types is not None and _has_binary_collation(frame[type_].dataType):
        filters.insert(0, column(type_).isin(sorted(component.types)))
    return reduce(and_, filters)


def superset(condition: Condition, frame: StructType, *, negated: bool = False) -> Column | None:
    """A Spark condition that is true wherever the condition holds (or, negated, fails); None if there is none."""
    match condition:
        case AllOf(conditions) | AnyOf(conditions):
            parts = [superset(c, frame, negated=negated) for c in conditions]
            known = [p for p in parts if p is not None]
            if isinstance(condition, AllOf) is not negated:
                return reduce(and_, known) if known else None
            return reduce(or_, known) if len(known) == len(parts) else None
        case Not(inner):
            return superset(inner, frame, negated=not negated)
        case Comparison(op, left, right):
            return _comparison(_OPPOSITE[op] if negated else op, left, right, frame)
        case In(value, options):
            return _in(value, options, frame, negated=negated)
        case Between(value, low, high):
            bounds = (Comparison(">=", value, low), Comparison("<=", value, high))
            return superset(AllOf(bounds), frame, negated=negated)
        case Like(ColumnRef(column=name, kind=kind), pattern, escape):
            if kind is not Kind.TEXT or not _comparable(frame[name].dataType):
                return None
            like = F.like(column(name), F.lit(pattern), F.lit(escape))
            return ~like if negated else like
        case IsNull(ColumnRef(column=name, kind=kind)):
            values = column(name)
            if negated:
                return values.isNotNull()
            # NaN is null.
            return values.isNull() | F.isnan(values.cast("double")) if kind is Kind.FLOAT else values.isNull()
        case IsTrue(ColumnRef(column=name)):
            return column(name) == F.lit(not negated)
        case _:
            return None


def _in(value: Expression, options: tuple[Expression, ...], frame: StructType, *, negated: bool) -> Column | None:
    constants = [o.value for o in options if isinstance(o, Constant) and o.kind in (Kind.TEXT, Kind.INTEGER)]
    types = {type(v) for v in constants}
    if (
        not negated
        and isinstance(value, ColumnRef)
        and len(constants) == len(options)
        and (types == {str} or types == {int})
        and (value.kind, types) in ((Kind.TEXT, {str}), (Kind.INTEGER, {int}))
        and _comparable(frame[value.column].dataType)
        and all(not isinstance(v, int) or abs(v) <= _LARGEST for v in constants)
    ):
        return column(value.column).isin(constants)
    equalities = tuple(Comparison("=", value, o) for o in options)
    return superset(AnyOf(equalities), frame, negated=negated) if equalities else None


def _comparison(op: str, left: Expression, right: Expression, frame: StructType) -> Column | None:
    """A comparison of a column with a constant."""
    if isinstance(right, ColumnRef) and not isinstance(left, ColumnRef):
        left, right, op = right, left, FLIPPED[op]
    if not isinstance(left, ColumnRef):
        return None
    if isinstance(right, Constant) and right.value is None:
        return F.lit(False)
    type_ = frame[left.column].dataType
    constant = _constant(right, left.kind, type_)
    if constant is None:
        return None
    values = column(left.column)
    values = values.cast("timestamp_ntz") if isinstance(type_, DateType) else values
    match op:
        case "=":
            return values == constant
        case "!=":
            return values != constant
        case "<":
            return values < constant
        case "<=":
            return values <= constant
        case ">":
            return values > constant
        case _:
            return values >= constant


def _constant(value: Expression, kind: Kind, type_: DataType) -> Column | None:
    """The constant, if Spark compares it with such a column as the engine does."""
    if not _comparable(type_):
        return None
    match value:
        case Constant(bool() as truth) if kind is Kind.BOOLEAN:
            return F.lit(truth)
        case Constant(str() as text) if kind is Kind.TEXT:
            return F.lit(text)
        case Constant(int() as micros, Kind.TIME) if kind is Kind.TIME:
            return _moment(micros, type_)
        case Constant(int() as number, Kind.INTEGER) if kind.numeric and abs(number) <= _LARGEST:
            return F.lit(number) if kind is Kind.INTEGER else F.lit(float(number))
        case Constant(float() as number) if kind.numeric:
            return F.lit(number)
    return None


def _moment(micros: int, type_: DataType) -> Column | None:
    if isinstance(type_, TimestampType):
        return F.timestamp_micros(F.lit(micros)) if abs(micros) < 2**55 else None
    if not isinstance(type_, TimestampNTZType | DateType):
        return None
    try:
        moment = _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None
    return F.lit(moment.isoformat(sep=" ")).cast("timestamp_ntz")


def _comparable(type_: DataType) -> bool:
    # The engine compares decimals as floats, and text by bytes whatever its collation.
    return not isinstance(type_, DecimalType) and _has_binary_collation(type_)


def _has_binary_collation(type_: DataType) -> bool:
    return not isinstance(type_, StringType) or type_ == StringType()
