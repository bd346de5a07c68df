"""What kind each value of a query is, and whether what is done with it makes sense."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from eventcube.errors import Diagnostic
from eventcube.language.syntax import (
    AllOf,
    AnyOf,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Duration,
    In,
    IsNull,
    Literal,
    Minus,
    NotQual,
    Qual,
    Timestamp,
    Truth,
    Value,
)
from eventcube.schema import Kind

KindOf = Callable[[Attribute], Kind]

# The operator that says the same with its sides exchanged.
FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def attributes(node: Value | Qual) -> Iterator[Attribute]:
    """Every attribute mentioned, in the order of the text."""
    match node:
        case Attribute():
            yield node
        case Arithmetic(_, left, right) | Comparison(_, left, right):
            yield from attributes(left)
            yield from attributes(right)
        case Minus(value) | IsNull(value) | Truth(value):
            yield from attributes(value)
        case In(value, options):
            for item in (value, *options):
                yield from attributes(item)
        case Between(value, low, high):
            for item in (value, low, high):
                yield from attributes(item)
        case AllOf(quals) | AnyOf(quals):
            for qual in quals:
                yield from attributes(qual)
        case NotQual(qual):
            yield from attributes(qual)
        case Literal() | Duration() | Timestamp():
            return


def value_kind(value: Value, kind_of: KindOf, report: Callable[[Diagnostic], None]) -> Kind:
    """The kind of a value; what cannot be computed is reported, and counts as null from there on."""
    match value:
        case Attribute():
            return kind_of(value)
        case Literal(bool()):
            return Kind.BOOLEAN
        case Literal(int()):
            return Kind.INTEGER
        case Literal(float()):
            return Kind.FLOAT
        case Literal(str()):
            return Kind.TEXT
        case Literal():
            return Kind.NULL
        case Duration():
            return Kind.DURATION
        case Timestamp():
            return Kind.TIME
        case Minus(inner):
            kind = value_kind(inner, kind_of, report)
            if kind.numeric or kind in (Kind.DURATION, Kind.NULL):
                return kind
            report(Diagnostic("EC211", f"cannot negate {_a(kind)}", value.span))
            return Kind.NULL
        case Arithmetic(op, left, right):
            first, second = value_kind(left, kind_of, report), value_kind(right, kind_of, report)
            result = _arithmetic_kind(op, first, second)
            if result is None:
                report(
                    Diagnostic(
                        "EC212",
                        f"cannot compute {_a(first)} {op} {_a(second)}",
                        value.span,
                        "+ and - work on numbers, times and lengths of time; * and / on numbers; % on numbers",
                    )
                )
                return Kind.NULL
            return result


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


def check_qual(qual: Qual, kind_of: KindOf, report: Callable[[Diagnostic], None]) -> Qual:
    """The qual with text constants that stand against times read as times; what does not fit is reported."""
    match qual:
        case Comparison(op, left, right, span):
            left, right = _alike(left, right, kind_of, report)
            return Comparison(op, left, right, span)
        case In(value, options, span):
            pairs = [_alike(value, option, kind_of, report) for option in options]
            return In(pairs[0][0] if pairs else value, tuple(o for _, o in pairs), span)
        case Between(value, low, high, span):
            value, low = _alike(value, low, kind_of, report)
            value, high = _alike(value, high, kind_of, report)
            return Between(value, low, high, span)
        case IsNull(value):
            value_kind(value, kind_of, report)
            return qual
        case Truth(value):
            kind = value_kind(value, kind_of, report)
            if kind not in (Kind.BOOLEAN, Kind.NULL):
                report(Diagnostic("EC213", f"this is {_a(kind)}, not a condition", qual.span, "compare it, say with ="))
            return qual
        case AllOf(quals, span):
            return AllOf(tuple(check_qual(q, kind_of, report) for q in quals), span)
        case AnyOf(quals, span):
            return AnyOf(tuple(check_qual(q, kind_of, report) for q in quals), span)
        case NotQual(inner, span):
            return NotQual(check_qual(inner, kind_of, report), span)


def _alike(left: Value, right: Value, kind_of: KindOf, report: Callable[[Diagnostic], None]) -> tuple[Value, Value]:
    first, second = value_kind(left, kind_of, report), value_kind(right, kind_of, report)
    if first is Kind.TIME and isinstance(right, Literal) and isinstance(right.value, str):
        return left, _as_time(right, report)
    if second is Kind.TIME and isinstance(left, Literal) and isinstance(left.value, str):
        return _as_time(left, report), right
    comparable = (
        Kind.NULL in (first, second)
        or (first is second and first is not Kind.OTHER)
        or (first.numeric and second.numeric)
    )
    if not comparable:
        start, end = min(left.span.start, right.span.start), max(left.span.end, right.span.end)
        report(
            Diagnostic(
                "EC210",
                f"cannot compare {_a(first)} with {_a(second)}",
                type(left.span)(start, end),
                _compare_hint(left, right, first, second),
            )
        )
    return left, right


def _compare_hint(left: Value, right: Value, first: Kind, second: Kind) -> str | None:
    for literal, other in ((left, second), (right, first)):
        if (
            isinstance(literal, Literal)
            and isinstance(literal.value, str)
            and other.numeric
            and _is_number(literal.value)
        ):
            return f"write the number without quotes: {literal.value}"
        if isinstance(literal, Literal) and isinstance(literal.value, int | float) and other is Kind.TEXT:
            return f"write the text in quotes: '{literal.value}'"
    if {first, second} == {Kind.INTEGER, Kind.DURATION} or {first, second} == {Kind.FLOAT, Kind.DURATION}:
        return "give the length of time a unit, as in 5 minutes"
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _as_time(literal: Literal, report: Callable[[Diagnostic], None]) -> Value:
    try:
        moment = datetime.fromisoformat(str(literal.value))
    except ValueError:
        report(
            Diagnostic("EC214", f"{literal.value!r} is not a time", literal.span, "write, say, '2024-01-31 12:00:00'")
        )
        return Literal(None, literal.span)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return Timestamp((delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds, literal.span)


def _a(kind: Kind) -> str:
    return kind.value
