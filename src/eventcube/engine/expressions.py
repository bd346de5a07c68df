"""Values and conditions over columns, for many rows at once.

Logic is three-valued: a comparison with null neither holds nor fails. A condition gives two arrays, where it holds and
where it fails; NOT swaps them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Protocol

import numpy as np

from eventcube.engine.columns import Column
from eventcube.engine.functions import absolute, bucket_starts, clock_part, coalesced, rounded
from eventcube.engine.kernels import Array, Bools, Ints
from eventcube.engine.text_codes import TextCodes
from eventcube.plan.dictionary import TextFunction
from eventcube.plan.expressions import (
    AllOf,
    AnyOf,
    Arithmetic,
    Between,
    Call,
    ColumnRef,
    Comparison,
    Condition,
    Constant,
    Every,
    Expression,
    In,
    IsNull,
    IsTrue,
    Like,
    Negative,
    Not,
    Translate,
)

Look = Callable[[ColumnRef], Column]


class CodeLookup(Protocol):
    """The codes of the text and long numbers in a set of columns."""

    def code(self, constant: str | Decimal) -> int:
        """The code of a constant."""

    def text_codes(self) -> TextCodes:
        """The codes of all text."""


_LARGEST = float(2**63)


def evaluate(value: Expression, rows: int, lookup: Look, codes: CodeLookup) -> Column:
    """A value for each row. Text is its code."""
    match value:
        case ColumnRef():
            return lookup(value)
        case Constant(None):
            return Column(np.zeros(rows, np.int64), np.zeros(rows, np.bool_))
        case Constant(str() | Decimal() as coded):
            return Column(np.full(rows, codes.code(coded), np.int64))
        case Constant(float() as number):
            return Column(np.full(rows, number, np.float64))
        case Constant(int() as number) if not -(2**63) <= number < 2**63:
            return Column(np.full(rows, float(number), np.float64))
        case Constant(int() as number):
            return Column(np.full(rows, int(number), np.int64))
        case Negative(inner):
            return _arithmetic("-", Column(np.zeros(rows, np.int64)), evaluate(inner, rows, lookup, codes))
        case Arithmetic(op, left, right):
            return _arithmetic(op, evaluate(left, rows, lookup, codes), evaluate(right, rows, lookup, codes))
        case Call(_, arguments):
            return _call(value, [evaluate(a, rows, lookup, codes) for a in arguments], codes)
        case Translate(inner, table):
            return _text_function(table, evaluate(inner, rows, lookup, codes), codes)
        case Every(inner, length, clock):
            return bucket_starts(evaluate(inner, rows, lookup, codes), length, clock)
    raise AssertionError(value)


def _call(call: Call, columns: list[Column], codes: CodeLookup) -> Column:
    first = columns[0]
    match call.function:
        case "COALESCE":
            return coalesced(columns)
        case "ABS":
            return absolute(first)
        case "ROUND":
            digits = call.arguments[1] if len(call.arguments) > 1 else None
            number = digits.value if isinstance(digits, Constant) else 0
            assert isinstance(number, int)
            return rounded(first, number)
        case "LENGTH":
            return Column(codes.text_codes().lengths()[first.values], first.valid)
        case "LOWER" | "UPPER":
            return _text_function(call.function, first, codes)
        case _:
            assert call.clock is not None
            return clock_part(call.function, first, call.clock)


def _text_function(function: TextFunction, column: Column, codes: CodeLookup) -> Column:
    return Column(codes.text_codes().results(function)[column.values], column.valid)


def _arithmetic(op: str, left: Column, right: Column) -> Column:
    """Whole numbers are computed in 64 bits, with null on overflow; everything else as floats."""
    x, y = left.values, right.values
    valid = both(left.valid, right.valid)
    if op == "/" or x.dtype != y.dtype or x.dtype == np.float64:
        x, y = x.astype(np.float64), y.astype(np.float64)
        with np.errstate(all="ignore"):
            values = _OPERATIONS[op](x, np.where(y == 0, np.nan, y) if op in "/%" else y)
        return Column(values if valid is None else np.where(valid, values, np.nan))
    if op == "%":
        return Column(np.fmod(x, np.where(y == 0, 1, y)), both(valid, y != 0))
    with np.errstate(all="ignore"):
        values = _OPERATIONS[op](x, y)
    return Column(values, both(valid, _fits(op, x, y)))


_OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
}


def _fits(op: str, x: Array, y: Array) -> Bools | None:
    """Where the result fits 64 bits; None if all do, which mostly follows from the largest values."""
    if not x.size:
        return None
    most_x, most_y = _magnitude(x), _magnitude(y)
    if (most_x * most_y if op == "*" else most_x + most_y) < _LARGEST / 2:
        return None
    exact = _OPERATIONS[op](x.astype(object), y.astype(object))
    return np.asarray((exact < 2**63) & (exact >= -(2**63)), np.bool_)


def _magnitude(x: Array) -> float:
    return max(abs(float(x.max())), abs(float(x.min())))


def both(one: Bools | None, other: Bools | None) -> Bools | None:
    """Where both are valid."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def holds(condition: Condition, rows: int, lookup: Look, codes: CodeLookup) -> Bools:
    """Where the condition holds."""
    return _truth(condition, rows, lookup, codes)[0]


def _truth(condition: Condition, rows: int, lookup: Look, codes: CodeLookup) -> tuple[Bools, Bools]:
    match condition:
        case Comparison(op, left, right):
            return _compare(op, evaluate(left, rows, lookup, codes), evaluate(right, rows, lookup, codes))
        case In(value, options):
            first = evaluate(value, rows, lookup, codes)
            return _any([_compare("=", first, evaluate(o, rows, lookup, codes)) for o in options])
        case Between(value, low, high):
            first = evaluate(value, rows, lookup, codes)
            return _all(
                [
                    _compare(">=", first, evaluate(low, rows, lookup, codes)),
                    _compare("<=", first, evaluate(high, rows, lookup, codes)),
                ]
            )
        case Like(value, pattern, escape):
            text = evaluate(value, rows, lookup, codes)
            fits, valid = codes.text_codes().like(pattern, escape)[text.values], valid_mask(text)
            return valid & fits, valid & ~fits
        case IsNull(value):
            null = ~valid_mask(evaluate(value, rows, lookup, codes))
            return null, ~null
        case IsTrue(value):
            column = evaluate(value, rows, lookup, codes)
            valid = valid_mask(column)
            return valid & (column.values != 0), valid & (column.values == 0)
        case AllOf(conditions):
            return _all([_truth(c, rows, lookup, codes) for c in conditions])
        case AnyOf(conditions):
            return _any([_truth(c, rows, lookup, codes) for c in conditions])
        case Not(inner):
            true, false = _truth(inner, rows, lookup, codes)
            return false, true


def valid_mask(column: Column) -> Bools:
    """Where a column is not null."""
    if column.values.dtype == np.float64:
        known: Bools = ~np.isnan(column.values)
        return known if column.valid is None else known & column.valid
    return np.ones(column.values.size, np.bool_) if column.valid is None else column.valid


def place_among(values: Array, column: Column) -> Ints:
    """The position of each value of the column in sorted values, -1 for null and for missing ones."""
    if not len(values):
        return np.full(len(column.values), -1, np.int64)
    at = np.minimum(np.searchsorted(values, column.values), len(values) - 1)
    return np.where((values[at] == column.values) & valid_mask(column), at, -1)


def _compare(op: str, left: Column, right: Column) -> tuple[Bools, Bools]:
    x, y = left.values, right.values
    match op:
        case "=":
            true = x == y
        case "!=":
            true = x != y
        case "<":
            true = x < y
        case "<=":
            true = x <= y
        case ">":
            true = x > y
        case _:
            true = x >= y
    if x.dtype == np.float64 or y.dtype == np.float64 or left.valid is not None or right.valid is not None:
        known = valid_mask(left) & valid_mask(right)
        return true & known, ~true & known
    return true, ~true


def _all(parts: Sequence[tuple[Bools, Bools]]) -> tuple[Bools, Bools]:
    true, false = parts[0]
    for more_true, more_false in parts[1:]:
        true, false = true & more_true, false | more_false
    return true, false


def _any(parts: Sequence[tuple[Bools, Bools]]) -> tuple[Bools, Bools]:
    false, true = _all([(f, t) for t, f in parts])
    return true, false
