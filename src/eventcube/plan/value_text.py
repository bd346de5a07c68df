"""Bound values as the text of a query."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import assert_never

from eventcube.language import syntax
from eventcube.language.printer import print_value
from eventcube.plan.expressions import (
    Arithmetic,
    Call,
    ColumnRef,
    Constant,
    Every,
    Expression,
    Negative,
    Translate,
)
from eventcube.plan.logical import Slot
from eventcube.schema import Kind


def value_text(value: Expression, slots: Sequence[Slot]) -> str:
    """A value as text.

    >>> from eventcube.plan.expressions import Encoding
    >>> price = ColumnRef(0, "price", Kind.FLOAT, Encoding.NUMBER)
    >>> slots = [Slot(0, "bid", "Bid", None, 0, ())]
    >>> value_text(Arithmetic("*", Constant(1.1, Kind.FLOAT), price, Kind.FLOAT), slots)
    '1.1 * bid.price'
    """
    return print_value(_syntax(value, slots))


def _syntax(value: Expression, slots: Sequence[Slot]) -> syntax.Value:
    match value:
        case ColumnRef(slot, column):
            return syntax.Attribute(slots[slot].name, column)
        case Constant(int(number), Kind.DURATION):
            return syntax.Duration(number)
        case Constant(int(number), Kind.TIME):
            return syntax.Timestamp(number, value.zoned)
        case Constant(constant):
            if isinstance(constant, Decimal):
                constant = int(constant) if constant == int(constant) else float(constant)
            return syntax.Literal(constant)
        case Negative(inner):
            return syntax.Minus(_syntax(inner, slots))
        case Arithmetic(op, left, right):
            return syntax.Arithmetic(op, _syntax(left, slots), _syntax(right, slots))
        case Call(function, arguments):
            return syntax.Call(function, tuple(_syntax(a, slots) for a in arguments))
        case Translate(inner) | Every(inner):
            return _syntax(inner, slots)
        case _:
            assert_never(value)
