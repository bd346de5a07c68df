"""Conditions in a normal form, so that those of two queries can be compared, and what follows from known ones.

A condition and the slots in it are kept apart: conditions of two queries are the same if their texts are, and their
slots hold the same events. `a.x = b.x` is `b.x = a.x`, and `a.x > b.x` is `b.x < a.x`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass

import pyarrow as pa
import pyarrow.types as pat

from eventcube.plan.expressions import (
    FLIPPED,
    AllOf,
    AnyOf,
    Between,
    ColumnRef,
    Comparison,
    Condition,
    Constant,
    Expression,
    In,
    Not,
)
from eventcube.schema import plain_type

_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

# A column of a slot's event, or a constant, which has no slot.
Value = tuple[int | None, str]


@dataclass(frozen=True, slots=True)
class Claim:
    """A condition in normal form: its text with gaps, and the slots in the gaps.

    `mirrored` are the slots if the sides of a comparison that reads alike either way are exchanged. `equal` are two
    values that are the same where the condition holds, if values that equal a third one equal each other.
    """

    text: str
    slots: tuple[int, ...]
    mirrored: tuple[int, ...] | None = None
    equal: tuple[Value, Value] | None = None


def condition_to_claims(condition: Condition, columns: pa.Schema) -> tuple[Claim, ...]:
    """The claims that hold together where the condition holds."""
    return tuple(_claim(part, columns) for part in _split(condition))


def _split(condition: Condition) -> Iterator[Condition]:
    """Conditions that together say the same, comparisons where possible; unknown stays unknown."""
    match condition:
        case AllOf(conditions):
            for part in conditions:
                yield from _split(part)
        case Between(value, low, high):
            yield Comparison("<=", low, value)
            yield Comparison("<=", value, high)
        case In(value, (option,)):
            yield Comparison("=", value, option)
        case Not(AnyOf(conditions)):
            for part in conditions:
                yield from _split(Not(part))
        case Not(In(value, options)):
            for option in options:
                yield Comparison("!=", value, option)
        case Not(Comparison(op, left, right)):
            yield Comparison(_OPPOSITE[op], left, right)
        case Not(Not(inner)):
            yield from _split(inner)
        case _:
            yield condition


def _claim(condition: Condition, columns: pa.Schema) -> Claim:
    text, slots = _written(condition)
    if not isinstance(condition, Comparison) or condition.op not in ("=", "!="):
        return Claim(text, slots)
    left, right = _written(condition.left), _written(condition.right)
    mirrored = (*right[1], *left[1]) if left[0] == right[0] else None
    equal = _equal_values(condition, columns) if condition.op == "=" else None
    return Claim(text, (*left[1], *right[1]) if mirrored else slots, mirrored, equal)


def _written(node: object) -> tuple[str, tuple[int, ...]]:
    """The text of a condition or value with a gap for each slot, and the slots; the order of sides is a fixed one."""
    match node:
        case ColumnRef(slot, column, kind, encoding):
            return f"{column!r}/{kind.name}/{encoding.name}", (slot,)
        case Comparison(">" | ">=" as op, left, right):
            return _written(Comparison(FLIPPED[op], right, left))
        case Comparison("=" | "!=" as op, left, right):
            return _joined(op, sorted([_written(left), _written(right)], key=_text))
        case AllOf(conditions) | AnyOf(conditions):
            return _joined(type(node).__name__, sorted(map(_written, conditions), key=_text))
        case tuple():
            return _joined("", [_written(part) for part in node])
        case _ if is_dataclass(node):
            return _joined(type(node).__name__, [_written(getattr(node, field.name)) for field in fields(node)])
        case _:
            return repr(node), ()


def _text(written: tuple[str, tuple[int, ...]]) -> str:
    return written[0]


def _joined(name: str, parts: list[tuple[str, tuple[int, ...]]]) -> tuple[str, tuple[int, ...]]:
    return f"{name}({', '.join(text for text, _ in parts)})", tuple(slot for _, slots in parts for slot in slots)


def _equal_values(comparison: Comparison, columns: pa.Schema) -> tuple[Value, Value] | None:
    """The two sides if equality is transitive there: columns of one type, or a column and a constant of its type.

    It is not between whole numbers and floats, which round.
    """
    left, right = comparison.left, comparison.right
    if isinstance(left, Constant):
        left, right = right, left
    if not isinstance(left, ColumnRef):
        return None
    type_ = plain_type(columns.field(left.column).type)
    match right:
        case ColumnRef(_, column) if plain_type(columns.field(column).type) == type_:
            return _value(left), _value(right)
        case Constant(value) if _is_exact(value, type_):
            return _value(left), (None, _written(right)[0])
        case _:
            return None


def _is_exact(value: object, type_: pa.DataType) -> bool:
    if isinstance(value, bool) or value is None:
        return False
    if pat.is_integer(type_):
        return isinstance(value, int)
    if pat.is_floating(type_):
        return isinstance(value, float)
    return isinstance(value, str) and (pat.is_string(type_) or pat.is_large_string(type_))


def _value(side: Expression) -> Value:
    text, (slot,) = _written(side)
    return slot, text


class Facts:
    """Claims that are known to hold, their slots replaced by terms that two queries have in common."""

    __slots__ = ("_equal", "_known")

    def __init__(self) -> None:
        self._known: set[tuple[str, tuple[int, ...]]] = set()
        # The values that each value equals, itself included; equal values have the same set.
        self._equal: dict[Value, set[Value]] = {}

    def copy(self) -> Facts:
        """Facts that can be added to without a change of these."""
        other = Facts()
        other._known = set(self._known)
        for values in {id(values): values for values in self._equal.values()}.values():
            shared = set(values)
            other._equal.update(dict.fromkeys(shared, shared))
        return other

    def add(self, claim: Claim, terms: Mapping[int, int]) -> None:
        """Add a claim; `terms` has a term for each of its slots."""
        self._known.add((claim.text, tuple(terms[s] for s in claim.slots)))
        if claim.mirrored is not None:
            self._known.add((claim.text, tuple(terms[s] for s in claim.mirrored)))
        if claim.equal is not None:
            one, other = (_in_terms(value, terms) for value in claim.equal)
            joined = self._equal.get(one, {one}) | self._equal.get(other, {other})
            self._equal.update(dict.fromkeys(joined, joined))

    def imply(self, claim: Claim, terms: Mapping[int, int]) -> bool:
        """Whether a claim is known, or follows by equalities: a.k = b.k and b.k = c.k give a.k = c.k."""
        if (claim.text, tuple(terms[s] for s in claim.slots)) in self._known:
            return True
        if claim.equal is None:
            return False
        one, other = (_in_terms(value, terms) for value in claim.equal)
        # A value that nothing is known of may be null, and then equals not even itself.
        return other in self._equal.get(one, ())


def _in_terms(value: Value, terms: Mapping[int, int]) -> Value:
    slot, text = value
    return (None if slot is None else terms[slot]), text
