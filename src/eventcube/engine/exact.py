"""Plans in which long numbers are compared by their places in order, so that no two different ones are equal."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

import pyarrow.types as pat

from eventcube.engine.ranks import RANKED, is_long
from eventcube.errors import Span
from eventcube.language.syntax import AllOf, AnyOf, Attribute, Between, Comparison, In, Literal, Minus, Value
from eventcube.plan.physical import Compare, Link, PhysicalQuery
from eventcube.schema import EventSchema, Kind, plain_type


def exactly(plan: PhysicalQuery) -> PhysicalQuery:
    """The plan with places in order for the numbers that are compared with long ones.

    A comparison with a float, or with a result of arithmetic, stays one of floats.
    """
    logical = plan.logical
    if not any(is_long(f.type) for f in logical.schema.columns):
        return plan
    change = _Change(logical.schema)
    region, implied = change(logical.region), change(logical.implied)
    logical = replace(logical, region=region, implied=implied)
    return replace(plan, program=change(plan.program), flat=change(plan.flat), logical=logical)


class _Change:
    """Rewrites the comparisons in a part of a plan."""

    def __init__(self, schema: EventSchema) -> None:
        self._schema = schema

    def __call__(self, node: Any) -> Any:
        match node:
            case Comparison(left=left, right=right):
                left, right = self._ranked(left, right)
                return replace(node, left=left, right=right)
            case Compare(new=new, bound=bound):
                new, bound = self._ranked(new, bound)
                return replace(node, new=new, bound=bound)
            case Link(inner=inner, outer=outer, end=end):
                inner, outer = self._ranked(inner, outer)
                ranked = end is not None and inner is not node.inner
                return replace(node, inner=inner, outer=outer, end=_place(end) if ranked and end is not None else end)
            case In(value, options, span) if any(map(self._is_long, (value, *options))):
                return AnyOf(tuple(self(Comparison("=", value, option, span)) for option in options), span)
            case Between(value, low, high, span) if any(map(self._is_long, (value, low, high))):
                bounds = Comparison(">=", value, low, span), Comparison("<=", value, high, span)
                return AllOf((self(bounds[0]), self(bounds[1])), span)
            case tuple() | frozenset():
                return type(node)(self(part) for part in node)
            case Enum():
                return node
        if not is_dataclass(node) or isinstance(node, type):
            return node
        return replace(node, **{f.name: self(getattr(node, f.name)) for f in fields(node)})

    def _ranked(self, one: Value, other: Value) -> tuple[Value, Value]:
        both = (one, other)
        if not all(map(self._is_exact, both)) or not any(map(self._is_long, both)):
            return both
        return _place(one), _place(other)

    def _is_exact(self, value: Value) -> bool:
        match value:
            case Attribute(name=name):
                type_ = plain_type(self._schema.columns.field(name).type)
                return self._schema.kind(name) is Kind.INTEGER or pat.is_decimal(type_) or pat.is_uint64(type_)
            case Minus(Literal(constant)) | Literal(constant):
                return constant is None or (isinstance(constant, int | float) and not isinstance(constant, bool))
        return False

    def _is_long(self, value: Value) -> bool:
        return isinstance(value, Attribute) and is_long(self._schema.columns.field(value.name).type)


def _place(value: Value) -> Value:
    match value:
        case Attribute(var, name, span):
            return Attribute(var, RANKED + name, span)
        case Minus(Literal(int() | float() as number), span):
            return _constant(-number, span)
        case Literal(int() | float() as number, span):
            return _constant(number, span)
    return value


def _constant(number: int | float, span: Span) -> Literal:
    """The number as it is written, so that 0.1 is a tenth."""
    return Literal(f"{RANKED}{int(number) if number == int(number) else number!r}", span)
