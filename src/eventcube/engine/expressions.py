"""Values and quals over columns, for many rows at once.

Logic is three-valued: a comparison with null neither holds nor fails. A qual gives two arrays, where it holds and
where it fails; NOT swaps them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from eventcube.engine.columns import Column, Texts
from eventcube.engine.kernels import Array, Bools, Ints
from eventcube.engine.ranks import RANKED
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
from eventcube.plan.kinds import attributes, value_kind
from eventcube.plan.logical import LogicalQuery
from eventcube.schema import Kind

Look = Callable[[Attribute], Column]
Code = Callable[[str], int]

_LARGEST = float(2**63)


def evaluate(value: Value, rows: int, look: Look, code: Code) -> Column:
    """A value for each row. Text is its code."""
    match value:
        case Attribute():
            return look(value)
        case Literal(None):
            return Column(np.zeros(rows, np.int64), np.zeros(rows, np.bool_))
        case Literal(str() as text):
            return Column(np.full(rows, code(text), np.int64))
        case Literal(float() as number):
            return Column(np.full(rows, number, np.float64))
        case Literal(int() as number) if abs(number) >= 2**63:
            return Column(np.full(rows, float(number), np.float64))
        case Literal(int() as number) | Duration(number) | Timestamp(number):
            return Column(np.full(rows, int(number), np.int64))
        case Minus(inner):
            return _arithmetic("-", Column(np.zeros(rows, np.int64)), evaluate(inner, rows, look, code))
        case Arithmetic(op, left, right):
            return _arithmetic(op, evaluate(left, rows, look, code), evaluate(right, rows, look, code))
    raise AssertionError(value)


def _arithmetic(op: str, left: Column, right: Column) -> Column:
    """Each value computed by itself: whole numbers in 64 bits, null where that is too few, else as floats."""
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
    """Where the result fits 64 bits; None if all do, which the largest values mostly show."""
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


def holds(qual: Qual, rows: int, look: Look, code: Code) -> Bools:
    """Where the qual holds."""
    return _truth(qual, rows, look, code)[0]


def _truth(qual: Qual, rows: int, look: Look, code: Code) -> tuple[Bools, Bools]:
    match qual:
        case Comparison(op, left, right):
            return _compare(op, evaluate(left, rows, look, code), evaluate(right, rows, look, code))
        case In(value, options):
            first = evaluate(value, rows, look, code)
            return _any([_compare("=", first, evaluate(o, rows, look, code)) for o in options])
        case Between(value, low, high):
            first = evaluate(value, rows, look, code)
            return _all(
                [
                    _compare(">=", first, evaluate(low, rows, look, code)),
                    _compare("<=", first, evaluate(high, rows, look, code)),
                ]
            )
        case IsNull(value):
            null = ~valid_mask(evaluate(value, rows, look, code))
            return null, ~null
        case Truth(value):
            column = evaluate(value, rows, look, code)
            valid = valid_mask(column)
            return valid & (column.values != 0), valid & (column.values == 0)
        case AllOf(quals):
            return _all([_truth(q, rows, look, code) for q in quals])
        case AnyOf(quals):
            return _any([_truth(q, rows, look, code) for q in quals])
        case NotQual(inner):
            true, false = _truth(inner, rows, look, code)
            return false, true


def valid_mask(column: Column) -> Bools:
    """Where a column is not null."""
    if column.values.dtype == np.float64:
        known: Bools = ~np.isnan(column.values)
        return known if column.valid is None else known & column.valid
    return np.ones(column.values.size, np.bool_) if column.valid is None else column.valid


def place_among(values: Array, column: Column) -> Ints:
    """The place of each value of the column among sorted values, -1 for one that is not there or is null."""
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


def texts_of(quals: Sequence[Qual], logical: LogicalQuery) -> Texts:
    """What text, and what numbers that are compared by their places, a set of quals looks at."""

    def kind(attribute: Attribute) -> Kind:
        return Kind.INTEGER if attribute.name.startswith(RANKED) else logical.kind(attribute)

    mentioned = [(q, a) for q in quals for a in attributes(q)]
    columns = dict.fromkeys(a.name for q, a in mentioned if kind(a) is Kind.TEXT and not _only_null_test(q, a))
    numbers = dict.fromkeys(a.name.removeprefix(RANKED) for _, a in mentioned if a.name.startswith(RANKED))
    constants: dict[str, None] = {}
    ordered = False
    for qual in quals:
        for part in _parts(qual):
            if isinstance(part, Literal) and isinstance(part.value, str):
                constants[part.value] = None
            if isinstance(part, Between) or (isinstance(part, Comparison) and part.op not in ("=", "!=")):
                value = part.value if isinstance(part, Between) else part.left
                ordered |= value_kind(value, kind, lambda _: None) is Kind.TEXT
    places = tuple(c for c in constants if c.startswith(RANKED))
    return Texts(
        tuple(columns),
        tuple(c for c in constants if c not in places),
        ordered,
        tuple(numbers),
        places,
        logical.schema.time if logical.schema.time_is_text else None,
    )


def _only_null_test(qual: Qual, attribute: Attribute) -> bool:
    return isinstance(qual, IsNull) and qual.value == attribute


def _parts(node: Qual | Value) -> list[Qual | Value]:
    """The node and everything below it."""
    match node:
        case Comparison(_, left, right) | Arithmetic(_, left, right):
            below: tuple[Qual | Value, ...] = (left, right)
        case In(value, options):
            below = (value, *options)
        case Between(value, low, high):
            below = (value, low, high)
        case IsNull(value) | Truth(value) | Minus(value):
            below = (value,)
        case AllOf(quals) | AnyOf(quals):
            below = quals
        case NotQual(inner):
            below = (inner,)
        case _:
            below = ()
    return [node, *(p for b in below for p in _parts(b))]
