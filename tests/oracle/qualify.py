"""What values and qualifications come to for given events: three-valued logic, None standing for unknown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, assert_never

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
    Like,
    Literal,
    Minus,
    NotQual,
    Qual,
    Timestamp,
    Truth,
    Value,
)
from tests.oracle.event import Event, Nanoseconds, Seconds
from tests.oracle.functions import called, fits, zone_of
from tests.oracle.zones import beside

Bound = Mapping[str, Event]


def satisfied(quals: Iterable[Qual], bound: Bound) -> bool:
    """Whether every top-level conjunct holds, leaving out those that mention a variable that is not bound.

    In a valid query a visible variable is unbound only if it belongs to an alternative of an OR that was not taken.
    """
    return all(truth(q, bound) is True for q in conjuncts(quals) if variables(q) <= bound.keys())


def conjuncts(quals: Iterable[Qual]) -> Iterator[Qual]:
    """The quals with every AND and chain at the top taken apart."""
    for qual in quals:
        if isinstance(qual, AllOf):
            yield from conjuncts(qual.quals)
        else:
            yield qual


def variables(node: Qual | Value) -> set[str]:
    """The variables a qual or a value mentions."""
    match node:
        case Attribute(var=var):
            return {var}
        case Literal() | Duration() | Timestamp():
            return set()
        case Arithmetic(left=left, right=right) | Comparison(left=left, right=right):
            return variables(left) | variables(right)
        case Minus(value=value) | IsNull(value=value) | Truth(value=value) | Like(value=value):
            return variables(value)
        case Call(arguments=arguments):
            return set[str]().union(*map(variables, arguments))
        case In(value=value, options=options):
            return variables(value).union(*map(variables, options))
        case Between(value=value, low=low, high=high):
            return variables(value) | variables(low) | variables(high)
        case AllOf(quals=quals) | AnyOf(quals=quals):
            return set[str]().union(*map(variables, quals))
        case NotQual(qual=qual):
            return variables(qual)
        case _:
            raise TypeError(f"no value of events: {node!r}")


def truth(qual: Qual, bound: Bound) -> bool | None:
    """True, False, or None where a null, a NaN or a missing attribute leaves it unknown."""
    match qual:
        case Comparison(op=op, left=left, right=right):
            return _compare(op, *_values([left, right], bound))
        case In(value=value, options=options):
            wanted, *given = _values([value, *options], bound)
            return _any([_compare("=", wanted, option) for option in given])
        case Between(value=value, low=low, high=high):
            middle, least, most = _values([value, low, high], bound)
            return _all([_compare("<=", least, middle), _compare("<=", middle, most)])
        case Like(value=value, pattern=pattern, escape=escape):
            text = value_of(value, bound)
            return None if text is None else fits(text, pattern, escape)
        case IsNull(value=value):
            return _values([value], bound)[0] is None
        case Truth(value=value):
            held = value_of(value, bound)
            if held is not None and not isinstance(held, bool):
                raise TypeError(f"not a boolean: {held!r}")
            return held
        case AllOf(quals=quals):
            return _all([truth(q, bound) for q in quals])
        case AnyOf(quals=quals):
            return _any([truth(q, bound) for q in quals])
        case NotQual(qual=inner):
            known = truth(inner, bound)
            return None if known is None else not known
    assert_never(qual)


def value_of(value: Value, bound: Bound) -> Any:
    """The value, None standing for null, NaN and missing attributes alike."""
    return _values([value], bound)[0]


def _values(values: Sequence[Value], bound: Bound) -> list[Any]:
    """The values, their moments read in the zones of the times beside them."""
    return [_value_of(value, bound) for value in beside(values, bound)]


def _value_of(value: Value, bound: Bound) -> Any:
    match value:
        case Attribute(var=var) if var not in bound:
            # Of an alternative that was not taken.
            return None
        case Attribute(var=var, name="ts"):
            return bound[var].ts
        case Attribute(var=var, name="type"):
            return bound[var].type
        case Attribute(var=var, name=name):
            return _known(bound[var].attrs.get(name))
        case Literal(value=constant):
            return _known(constant)
        case Duration(microseconds=us) | Timestamp(microseconds=us):
            return us
        case Minus(value=inner):
            negated = _value_of(inner, bound)
            return None if negated is None else _known(-computed(negated))
        case Arithmetic(op=op, left=left, right=right):
            a, b = _value_of(left, bound), _value_of(right, bound)
            return None if a is None or b is None else _known(_calculate(op, computed(a), computed(b)))
        case Call(function=function, arguments=arguments):
            zone = zone_of(arguments[0], next(iter(bound.values())).zones) if bound else None
            return _known(called(function, [computed(_value_of(a, bound)) for a in arguments], zone))
        case _:
            raise TypeError(f"no value of events: {value!r}")


def _known(value: Any) -> Any:
    """None for NaN and for whole numbers that 64 bits do not hold; a time is microseconds."""
    if isinstance(value, Nanoseconds):
        return value // 1000
    if isinstance(value, Seconds):
        return value * 1_000_000 if abs(value) < 2**62 // 1_000_000 else None
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else None
    return None if isinstance(value, float) and math.isnan(value) else value


def computed(value: Any) -> Any:
    """What arithmetic and sums make of a value: decimals become floats."""
    return float(value) if isinstance(value, Decimal) else value


def _calculate(op: str, a: Any, b: Any) -> Any:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return None if b == 0 else float(a) / float(b)
        case "%" if b == 0:
            return None
        case "%" if isinstance(a, int) and isinstance(b, int):
            # The sign of the dividend, exactly.
            return abs(a) % abs(b) * (-1 if a < 0 else 1)
        case "%":
            return math.nan if math.isinf(a) else math.fmod(a, b)
    raise ValueError(f"unknown arithmetic operator {op!r}")


def _compare(op: str, a: Any, b: Any) -> bool | None:
    if a is None or b is None:
        return None
    if _kind(a) != _kind(b):
        raise TypeError(f"cannot compare {a!r} with {b!r}")
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
    holds: bool
    match op:
        case "=":
            holds = a == b
        case "!=":
            holds = a != b
        case "<":
            holds = a < b
        case "<=":
            holds = a <= b
        case ">":
            holds = a > b
        case ">=":
            holds = a >= b
        case _:
            raise ValueError(f"unknown comparison {op!r}")
    return holds


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "text" if isinstance(value, str) else "number"


def _all(truths: list[bool | None]) -> bool | None:
    if False in truths:
        return False
    return None if None in truths else True


def _any(truths: list[bool | None]) -> bool | None:
    if True in truths:
        return True
    return None if None in truths else False
