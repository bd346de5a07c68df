"""Bind values and conditions: every value gets a kind and an encoding; type errors are reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from eventcube.errors import Diagnostic, Span
from eventcube.language import syntax
from eventcube.language.functions import TIME_PARTS
from eventcube.nodes import walk
from eventcube.options import UNITS_IN_MICROSECONDS
from eventcube.plan.expressions import (
    AllOf,
    AnyOf,
    Arithmetic,
    Between,
    Call,
    Clock,
    ColumnRef,
    Comparison,
    Condition,
    Constant,
    Encoding,
    Every,
    Expression,
    In,
    IsNull,
    IsTrue,
    Like,
    Negative,
    Not,
)
from eventcube.plan.functions import Report, call_kind
from eventcube.plan.hints import compare_hint, compute_hint, no_time
from eventcube.plan.zones import column_zone, known_zone
from eventcube.schema import Kind, TypedColumns

_NULL = Constant(None, Kind.NULL)
_ENCODINGS = {Kind.TEXT: Encoding.TEXT, Kind.OTHER: Encoding.NULLS, Kind.NULL: Encoding.NULLS}


class ExpressionBinder:
    """Binds values and conditions over typed columns; `slots` maps variables to slots."""

    def __init__(self, columns: TypedColumns, slots: Mapping[str, int], report: Report) -> None:
        self._columns, self._slots, self._report = columns, slots, report

    # Values.

    def value(self, value: syntax.Value) -> Expression:
        """Bind a value; one that cannot be computed is reported and bound as null."""
        match value:
            case syntax.Attribute(var, name):
                return self.column(self._slots[var], name)
            case syntax.Literal(constant):
                return _constant(constant)
            case syntax.Duration(microseconds):
                return Constant(microseconds, Kind.DURATION)
            case syntax.Timestamp(microseconds, zoned):
                return Constant(microseconds, Kind.TIME, zoned=zoned)
            case syntax.Minus(inner):
                return self._negative(value, self.value(inner))
            case syntax.Arithmetic(op, left, right):
                return self._arithmetic(value, op, self.value(left), self.value(right))
            case syntax.Call():
                return self._call(value)
            case syntax.Column() | syntax.Aggregate():
                # HAVING's names are replaced by columns of the groups before binding.
                raise AssertionError(value)

    def column(self, slot: int, name: str) -> ColumnRef:
        """A column of a slot's event; a time column of text is still of the kind time."""
        kind = self._columns.kind(name)
        if kind is Kind.TIME and name == self._columns.time and self._columns.time_is_text:
            return ColumnRef(slot, name, kind, Encoding.TIME_TEXT)
        return ColumnRef(slot, name, kind, _ENCODINGS.get(kind, Encoding.NUMBER))

    def bucket(self, node: syntax.Every) -> Expression:
        """Bind a bucket of times; one of something else is reported and bound as null."""
        value = self.value(node.value)
        clock = self._clock(value, node.value.span)
        if value.kind is Kind.TIME or (value.kind is Kind.INTEGER and clock is not None):
            return Every(value, node.microseconds, clock or Clock())
        if value.kind is not Kind.NULL:
            hint = "name a column of times, or make it one beforehand"
            self._problem("EC228", f"EVERY takes a time, and this is {value.kind.value}", node.value.span, hint)
        return _NULL

    def _negative(self, node: syntax.Minus, value: Expression) -> Expression:
        if isinstance(value, Constant) and value.kind.numeric:
            assert isinstance(value.value, int | float)
            return replace(value, value=-value.value)
        if value.kind.numeric or value.kind in (Kind.DURATION, Kind.NULL):
            return Negative(value)
        self._problem("EC211", f"cannot negate {value.kind.value}", node.span)
        return _NULL

    def _arithmetic(self, node: syntax.Arithmetic, op: str, left: Expression, right: Expression) -> Expression:
        kind = _arithmetic_kind(op, left.kind, right.kind)
        if kind is not None:
            return Arithmetic(op, left, right, kind)
        hint = compute_hint(op, (node.left, left), (node.right, right), self._columns)
        self._problem("EC212", f"cannot compute {left.kind.value} {op} {right.kind.value}", node.span, hint)
        return _NULL

    def _call(self, node: syntax.Call) -> Expression:
        arguments = tuple(self.value(a) for a in node.arguments)
        clock = None
        if node.function in (*TIME_PARTS, "DATE") and len(arguments) == 1:
            clock = self._clock(arguments[0], node.arguments[0].span)
        kind = call_kind(node, [a.kind for a in arguments], self._report, timed=clock is not None)
        return Call(node.function, arguments, kind, clock)

    def _clock(self, value: Expression, span: Span) -> Clock | None:
        """How a function reads a time: in the time zone and the unit of its column."""
        if value.kind is Kind.INTEGER:
            is_time = isinstance(value, ColumnRef) and value.column == self._columns.time
            return Clock(None, UNITS_IN_MICROSECONDS[self._columns.time_unit]) if is_time else None
        zone = zone_of(value, self._columns)
        if zone is not None and known_zone(zone) is None:
            self._problem("EC227", f"unknown time zone {zone!r}", span, "cast the column to another")
        return Clock(None if zone is None else known_zone(zone))

    # Conditions.

    def condition(self, qual: syntax.Qual) -> Condition:
        """Bind a condition; type errors are reported."""
        match qual:
            case syntax.Comparison(op, left, right):
                return Comparison(op, *self._compared(left, right))
            case syntax.In(value, options):
                return In(self.value(value), tuple(self._compared(value, option)[1] for option in options))
            case syntax.Between(value, low, high):
                return Between(*self._compared(value, low), self._compared(value, high)[1])
            case syntax.Like(value, pattern, escape):
                text = self.value(value)
                if text.kind not in (Kind.TEXT, Kind.NULL):
                    self._problem("EC226", f"LIKE is for text, and this is {text.kind.value}", value.span)
                return Like(text, pattern, escape)
            case syntax.IsNull(value):
                operand = self.value(value)
                if isinstance(operand, ColumnRef) and operand.encoding is Encoding.TEXT:
                    operand = replace(operand, encoding=Encoding.NULLS)
                return IsNull(operand)
            case syntax.Truth(value):
                operand = self.value(value)
                if operand.kind not in (Kind.BOOLEAN, Kind.NULL):
                    message = f"this is {operand.kind.value}, not a condition"
                    self._problem("EC213", message, qual.span, "compare it, say with =")
                return IsTrue(operand)
            case syntax.AllOf(quals):
                return AllOf(tuple(map(self.condition, quals)))
            case syntax.AnyOf(quals):
                return AnyOf(tuple(map(self.condition, quals)))
            case syntax.NotQual(inner):
                return Not(self.condition(inner))

    def _compared(self, left: syntax.Value, right: syntax.Value) -> tuple[Expression, Expression]:
        """Bind two values that are compared; kinds that cannot be are reported."""
        first, second = self.value(left), self.value(right)
        for literal, bound, opposite in ((right, second, first), (left, first, second)):
            if opposite.kind is Kind.TIME and isinstance(literal, syntax.Literal) and bound.kind is Kind.TEXT:
                no_time(literal, self._report)
                return first, second
        comparable = (
            Kind.NULL in (first.kind, second.kind)
            or (first.kind is second.kind and first.kind is not Kind.OTHER)
            or (first.kind.numeric and second.kind.numeric)
        )
        if not comparable:
            span = Span(min(left.span.start, right.span.start), max(left.span.end, right.span.end))
            hint = compare_hint((left, first), (right, second), self._columns)
            self._problem("EC210", f"cannot compare {first.kind.value} with {second.kind.value}", span, hint)
        return first, second

    def _problem(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        self._report(Diagnostic(code, message, span, hint))


def value_kind(value: syntax.Value, columns: TypedColumns, known: Callable[[str], bool]) -> Kind:
    """The kind of a value whose variables need not be resolved; an unknown column counts as null."""
    ignore: Report = lambda _: None  # noqa: E731 - a name for the type checker
    return _KindBinder(columns, {}, ignore, known).value(value).kind


class _KindBinder(ExpressionBinder):
    def __init__(
        self, columns: TypedColumns, slots: Mapping[str, int], report: Report, known: Callable[[str], bool]
    ) -> None:
        super().__init__(columns, slots, report)
        self._known = known

    def value(self, value: syntax.Value) -> Expression:
        if isinstance(value, syntax.Attribute):
            return self.column(0, value.name) if self._known(value.name) else _NULL
        return super().value(value)


def _constant(value: int | float | str | bool | None) -> Constant:
    match value:
        case None:
            return _NULL
        case bool():
            return Constant(value, Kind.BOOLEAN)
        case int():
            return Constant(value, Kind.INTEGER)
        case float():
            return Constant(value, Kind.FLOAT)
        case str():
            return Constant(value, Kind.TEXT, Encoding.TEXT)


def _arithmetic_kind(op: str, first: Kind, second: Kind) -> Kind | None:
    if Kind.NULL in (first, second):
        return Kind.NULL
    if first.numeric and second.numeric:
        return Kind.FLOAT if op == "/" or Kind.FLOAT in (first, second) else Kind.INTEGER
    match op, first, second:
        case "-", Kind.TIME, Kind.TIME:
            return Kind.DURATION
        case "+" | "-", Kind.TIME, Kind.DURATION:
            return Kind.TIME
        case "+", Kind.DURATION, Kind.TIME:
            return Kind.TIME
        case "+" | "-", Kind.DURATION, Kind.DURATION:
            return Kind.DURATION
        case "*", Kind.DURATION, (Kind.INTEGER | Kind.FLOAT):
            return Kind.DURATION
        case "*", (Kind.INTEGER | Kind.FLOAT), Kind.DURATION:
            return Kind.DURATION
        case "/", Kind.DURATION, (Kind.INTEGER | Kind.FLOAT):
            return Kind.DURATION
        case "/", Kind.DURATION, Kind.DURATION:
            return Kind.FLOAT
    return None


def zone_of(value: Expression, columns: TypedColumns) -> str | None:
    """The time zone of a value: that of its first time column, or UTC for a constant written with a zone."""
    nodes = list(walk(value))
    column = next((n.column for n in nodes if isinstance(n, ColumnRef) and n.kind is Kind.TIME), None)
    if column is not None:
        return column_zone(column, columns)
    return "UTC" if any(isinstance(n, Constant) and n.zoned for n in nodes) else None
