"""Hints for two values that cannot be compared or computed with."""

from __future__ import annotations

from fractions import Fraction

from eventcube.errors import Diagnostic
from eventcube.language import syntax
from eventcube.language.literals import timestamp_hint
from eventcube.language.printer import print_value
from eventcube.language.tree import attributes
from eventcube.nodes import walk
from eventcube.options import UNITS_IN_MICROSECONDS
from eventcube.plan.expressions import ColumnRef, Expression
from eventcube.plan.functions import Report
from eventcube.schema import Kind, TypedColumns

_COUNTED = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}
_COMPUTED = "+ and - work on numbers, times and durations; * and / on numbers; % on numbers"

# A value as written, and as bound.
Side = tuple[syntax.Value, Expression]


def no_time(literal: syntax.Literal, report: Report) -> syntax.Value:
    """Report text compared with a time that is not a time."""
    hint = timestamp_hint(str(literal.value)) or "write, say, '2024-01-31 12:00:00'"
    report(Diagnostic("EC214", f"{literal.value!r} is not a time", literal.span, hint))
    return syntax.Literal(None, literal.span)


def compare_hint(one: Side, other: Side, columns: TypedColumns) -> str | None:
    """What to write instead of a comparison of two values of different kinds."""
    for (written, value), (others, beside) in ((one, other), (other, one)):
        if hint := _beside(written, value, others, beside, columns):
            return hint
    return None


def _beside(
    written: syntax.Value, value: Expression, others: syntax.Value, beside: Expression, columns: TypedColumns
) -> str | None:
    """What to write instead of a comparison of a value with another."""
    constant = written.value if isinstance(written, syntax.Literal) else None
    match value.kind, beside.kind:
        case _, Kind.BOOLEAN if value.kind is not Kind.OTHER:
            shown = _shown(others)
            return f"{shown} is true or false by itself: write {shown}, or NOT {shown}"
        case Kind.TEXT, (Kind.INTEGER | Kind.FLOAT) if isinstance(constant, str) and _is_number(constant):
            return f"write the number without quotes: {constant}"
        case Kind.TEXT, (Kind.INTEGER | Kind.FLOAT) if isinstance(constant, str):
            return f"{_shown(others)} holds numbers: compare it with one, or name a column of text"
        case ((Kind.INTEGER | Kind.FLOAT), Kind.TEXT) if constant is not None:
            return f"write the text in quotes: '{constant}'"
        case ((Kind.INTEGER | Kind.FLOAT), Kind.TEXT) if not isinstance(others, syntax.Literal):
            return "convert both columns to numbers, or both to text, beforehand"
        case Kind.DURATION, (Kind.INTEGER | Kind.FLOAT):
            return _length_hint(written, others, beside, columns)
        case Kind.DURATION, Kind.TIME:
            return "compare the time between two events: b.ts - a.ts < 5 minutes"
        case Kind.TIME, (Kind.INTEGER | Kind.FLOAT):
            return "write the timestamp in quotes: '2024-01-31 12:00:00'"
        case Kind.TEXT, Kind.TIME:
            return f"{_shown(written)} is text: convert it to a time column beforehand"
        case Kind.TEXT, Kind.DURATION if isinstance(constant, str):
            return f"write the duration without quotes: {constant}"
        case Kind.OTHER, _:
            return f"{_shown(written)} is a list, a struct or the like: name a column of plain values"
    return None


def compute_hint(op: str, one: Side, other: Side, columns: TypedColumns) -> str:
    """What to write instead of arithmetic on two values."""
    for (written, value), (_, beside) in ((one, other), (other, one)):
        counted = _counted(beside, columns)
        if op in ("+", "-") and value.kind is Kind.DURATION and counted is not None:
            return _in_unit(written, counted, columns)
    if one[1].kind is other[1].kind is Kind.TEXT:
        return "there is no concatenation; return each text"
    return _COMPUTED


def _length_hint(written: syntax.Value, others: syntax.Value, beside: Expression, columns: TypedColumns) -> str:
    """What to write instead of a comparison of a duration with a number."""
    counted = _counted(beside, columns)
    if counted is not None:
        return _in_unit(written, counted, columns)
    if any(True for _ in attributes(others)):
        return f"{_shown(others)} is a plain number: compare it with one, without a unit"
    return "give the duration a unit, as in 5 minutes"


def _counted(value: Expression, columns: TypedColumns) -> str | None:
    """The time column, if a number is computed from it."""
    refs = (node for node in walk(value) if isinstance(node, ColumnRef))
    return next((r.column for r in refs if r.column == columns.time and r.kind is Kind.INTEGER), None)


def _in_unit(length: syntax.Value, column: str, columns: TypedColumns) -> str:
    counts = f"{column!r} counts {_COUNTED[columns.time_unit]}"
    if not isinstance(length, syntax.Duration):
        return f"{counts}: write a number of {_COUNTED[columns.time_unit]}, without a unit"
    number = Fraction(length.microseconds) / UNITS_IN_MICROSECONDS[columns.time_unit]
    shown = number.numerator if number.denominator == 1 else float(number)
    return f"write {shown}: {counts} (see time_unit)"


def _shown(value: syntax.Value) -> str:
    """The value as written; the columns of groups have internal names here."""
    return "the group's value" if any(not a.var for a in attributes(value)) else print_value(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
