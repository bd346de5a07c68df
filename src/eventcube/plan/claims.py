"""The set of values that a condition allows for one term: an attribute, a time difference, or a part of a time.

Other conditions, and computations not handled here, give no claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from eventcube.language.syntax import (
    AllOf,
    AnyOf,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    Duration,
    In,
    IsNull,
    Literal,
    Minus,
    NotQual,
    Qual,
    Timestamp,
    TimeWindow,
    Truth,
    Value,
)
from eventcube.options import UNITS_IN_MICROSECONDS
from eventcube.plan.expressions import FLIPPED
from eventcube.plan.logical import LogicalQuery
from eventcube.plan.ranges import disjoint_types, is_ranged
from eventcube.plan.terms import MICROSECONDS, NUMBER, SAME, TEXT, TRUTH, Term
from eventcube.plan.values import ALL_VALUES, NO_VALUES, Values, complement, intersect, intersect_all, satisfying, union
from eventcube.schema import Kind

# Floats hold whole numbers below this exactly, so that comparing as float or as int gives the same.
_EXACT_FLOATS = 2**53


@dataclass(frozen=True, slots=True)
class Claim:
    """The condition holds if the term is one of the values, and fails if it is another that is not null.

    Without a term it always holds or always fails; `why` is the reason, if it is not obvious.
    """

    term: Term | None
    values: Values
    why: str = ""


def claim(qual: Qual, query: LogicalQuery) -> Claim | None:
    """The claim of a condition that compares a single term with constants; None for other conditions."""
    match qual:
        case Comparison(op, left, right):
            return _comparison(op, left, right, query)
        case In(value, options):
            return _combined([claim(Comparison("=", value, o), query) for o in options], every=False)
        case Between(value, low, high):
            ends = (Comparison(">=", value, low), Comparison("<=", value, high))
            return _combined([claim(end, query) for end in ends], every=True)
        case AllOf(quals):
            return _combined([claim(q, query) for q in quals], every=True)
        case AnyOf(quals):
            return _combined([claim(q, query) for q in quals], every=False)
        case NotQual(inner):
            found = claim(inner, query)
            return None if found is None else Claim(found.term, complement(found.values), found.why)
        case Truth(Attribute() as attribute):
            return Claim(Term(attribute, TRUTH), satisfying("=", True))
        case Truth(Literal(False)):
            return Claim(None, NO_VALUES)
        case IsNull(Attribute(_, name)) if name in (query.schema.time, query.schema.type):
            return Claim(None, NO_VALUES)
        case _:
            return None


def _combined(claims: list[Claim | None], *, every: bool) -> Claim | None:
    known = [c for c in claims if c is not None]
    terms = {c.term for c in known} - {None}
    if len(known) < len(claims) or len(terms) > 1:
        return None
    return Claim(next(iter(terms), None), (intersect_all if every else union)(c.values for c in known))


def _comparison(op: str, left: Value, right: Value, query: LogicalQuery) -> Claim | None:
    if isinstance(left, Attribute) and left == right:
        values = ALL_VALUES if op in ("=", "<=", ">=") else NO_VALUES
        return Claim(Term(left, SAME), values, "both sides are the same")
    linear = _difference(_linear(left, query), _linear(right, query))
    if linear is not None:
        return _linear_claim(op, linear, query)
    if reason := disjoint_types(left, right, query):
        return Claim(None, {"=": NO_VALUES, "!=": ALL_VALUES}[op], reason) if op in ("=", "!=") else None
    if isinstance(right, Attribute | Call):
        left, right, op = right, left, FLIPPED[op]
    unit, constant = _constant(right)
    if unit is None:
        return None
    if isinstance(left, Attribute):
        known = query.kind(left) is not Kind.NULL
        if isinstance(constant, str) and not known and _may_be_time(constant):
            return None
        return Claim(Term(left, unit), satisfying(op, constant))
    if isinstance(left, Call):
        return Claim(Term(left, unit), satisfying(op, constant)) if is_ranged(left, unit) else None
    other_unit, other = _constant(left)
    if other_unit != unit:
        return None
    return Claim(None, ALL_VALUES if intersect(satisfying(op, constant), satisfying("=", other)) else NO_VALUES)


@dataclass(frozen=True, slots=True)
class _Linear:
    """A sum of event times, with factors, and a constant."""

    times: dict[str, int]
    constant: int
    unit: str | None


def _linear(value: Value, query: LogicalQuery) -> _Linear | None:
    match value:
        case Attribute(var, name) if name == query.schema.time:
            return _Linear({var: 1}, 0, None)
        case Duration(micros) | Timestamp(micros):
            return _Linear({}, micros, MICROSECONDS)
        case Literal(int() as number) if not isinstance(number, bool):
            return _Linear({}, number, NUMBER)
        case Minus(inner):
            return _difference(_Linear({}, 0, None), _linear(inner, query))
        case Arithmetic("+", left, right):
            return _difference(_linear(left, query), _difference(_Linear({}, 0, None), _linear(right, query)))
        case Arithmetic("-", left, right):
            return _difference(_linear(left, query), _linear(right, query))
        case Arithmetic("*", Literal(int() as times), Duration(micros)) | Arithmetic(
            "*", Duration(micros), Literal(int() as times)
        ):
            return _Linear({}, times * micros, MICROSECONDS)
        case _:
            return None


def _difference(one: _Linear | None, other: _Linear | None) -> _Linear | None:
    if one is None or other is None or (one.unit and other.unit and one.unit != other.unit):
        return None
    times = {v: one.times.get(v, 0) - other.times.get(v, 0) for v in (*one.times, *other.times)}
    constant = one.constant - other.constant
    if abs(constant) >= _EXACT_FLOATS << 8:
        # The result may not fit 64 bits.
        return None
    return _Linear({v: n for v, n in times.items() if n}, constant, one.unit or other.unit)


def _linear_claim(op: str, linear: _Linear, query: LogicalQuery) -> Claim | None:
    """The claim of `linear op 0`."""
    unit = linear.unit or (NUMBER if query.schema.kind(query.schema.time) is Kind.INTEGER else MICROSECONDS)

    def time(var: str) -> Attribute:
        return Attribute(var, query.schema.time)

    match sorted(linear.times.items(), key=lambda item: -item[1]):
        case []:
            return Claim(
                None, ALL_VALUES if intersect(satisfying(op, 0), satisfying("=", linear.constant)) else NO_VALUES
            )
        case [(var, 1)]:
            return Claim(Term(time(var), unit), satisfying(op, -linear.constant))
        case [(var, -1)]:
            return Claim(Term(time(var), unit), satisfying(FLIPPED[op], linear.constant))
        case [(one, 1), (other, -1)] if one > other:
            return Claim(Term(time(one), unit, other), satisfying(op, -linear.constant))
        case [(other, 1), (one, -1)]:
            return Claim(Term(time(one), unit, other), satisfying(FLIPPED[op], linear.constant))
        case _:
            return None


def _constant(value: Value) -> tuple[str | None, object]:
    match value:
        case Literal(bool() as truth):
            return TRUTH, truth
        case Literal(int() | float() as number) if abs(number) < _EXACT_FLOATS:
            return NUMBER, number
        case Literal(str() as text):
            return TEXT, text
        case Duration(micros) | Timestamp(micros):
            return MICROSECONDS, micros
        case Minus(inner):
            unit, constant = _constant(inner)
            return (unit, -constant) if isinstance(constant, int | float) and unit != TRUTH else (None, None)
        case _:
            return None, None


def _may_be_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


def order_bounds(query: LogicalQuery, unit: str, order: int) -> Values:
    """Bounds on the time from one event to another that follows it (order 1), precedes it (-1) or either (0)."""
    least = 0 if query.schema.order_by else 1
    if query.schema.order_by and unit == NUMBER:
        # Events are sorted by microsecond, then by the order column: numbers finer than that may decrease.
        least = 1 - math.ceil(1 / UNITS_IN_MICROSECONDS[query.schema.time_unit])
    return {1: satisfying(">=", least), 0: ALL_VALUES, -1: satisfying("<=", -least)}[order]


def window_bounds(query: LogicalQuery, unit: str) -> Values:
    """Bounds on the time from one event to another that follow from the window."""
    if not isinstance(query.window, TimeWindow):
        return ALL_VALUES
    widest = query.window.microseconds
    if unit == NUMBER:
        # Times are rounded down to microseconds.
        widest = math.ceil((widest + 1) / UNITS_IN_MICROSECONDS[query.schema.time_unit]) - 1
    return intersect(satisfying("<=", widest), satisfying(">=", -widest))
