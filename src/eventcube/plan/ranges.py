"""Ranges of values that hold for all events: hours are 0 to 23, an event has its component's type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eventcube.language.identifiers import write_name
from eventcube.language.syntax import Attribute, Call, Comparison, Literal, Qual, Value
from eventcube.plan.logical import LogicalQuery, Slot
from eventcube.plan.terms import MICROSECONDS, NUMBER, TEXT, Term
from eventcube.plan.values import Values, satisfying

# The least and the greatest value of each part of a time; years have no range.
_PARTS = {"MONTH": (1, 12), "DAY": (1, 31), "WEEKDAY": (1, 7), "HOUR": (0, 23), "MINUTE": (0, 59)}
_NEVER_NEGATIVE = ("ABS", "LENGTH")
# Hints on the first and last value.
_HINTS = {
    "MONTH": "January is 1, December 12",
    "WEEKDAY": "Monday is 1, Sunday 7",
    "HOUR": "midnight is 0, noon 12",
    "MINUTE": "the first minute of an hour is 0, the last 59",
}


def is_ranged(call: Call, unit: str) -> bool:
    """Whether the values of a function have a known range."""
    if call.function in _PARTS:
        return unit == NUMBER
    return call.function in _NEVER_NEGATIVE and unit in (NUMBER, MICROSECONDS)


def value_range(term: Term, query: LogicalQuery) -> tuple[str, Values] | None:
    """The range of an attribute or a function, with the reason; None if it may have any value."""
    match term.value:
        case Call(function) if function in _PARTS:
            low, high = _PARTS[function]
            return f"{function} gives {low} to {high}", _exactly(range(low, high + 1))
        case Call(function):
            return f"{function} is never negative", satisfying(">=", 0)
        case Attribute(var) if is_type(term.value, query) and term.unit == TEXT:
            slot = query.slot(var)
            return None if slot.types is None else (_type_phrase(slot), _exactly(slot.types))
    return None


def range_hint(qual: Qual, term: Term, query: LogicalQuery) -> str | None:
    """The hint for a comparison with a value out of range."""
    match qual, term.value:
        case _, Call(function):
            return _HINTS.get(function)
        case Comparison("=", Attribute(var) as one, Literal(str() as type_)), _ if is_type(one, query):
            return f"write the type in the pattern: {write_name(type_)} {write_name(var)}"
    return None


def is_type(value: Value, query: LogicalQuery) -> bool:
    """Whether the value is the type of an event."""
    return isinstance(value, Attribute) and value.name == query.schema.type


def disjoint_types(left: Value, right: Value, query: LogicalQuery) -> str:
    """Why the types of two events are never the same; empty if they may be, or if the values are not types."""
    if not (isinstance(left, Attribute) and isinstance(right, Attribute)):
        return ""
    if not (is_type(left, query) and is_type(right, query)):
        return ""
    one, other = query.slot(left.var), query.slot(right.var)
    if one.types is None or other.types is None or one.types & other.types:
        return ""
    return f"{_type_phrase(one)}, and {_type_phrase(other)}"


def _type_phrase(slot: Slot) -> str:
    below = " or one below it" if slot.types is not None and slot.types - {slot.type} else ""
    return f"{slot.name} is of type {slot.type}{below}"


def _exactly(values: Iterable[Any]) -> Values:
    return tuple(((0, value, False), (0, value, True)) for value in sorted(values))
