"""Expressions whose meaning depends on their place.

`A` is a component inside SEQ, a variable after RETURN and a mistake after WHERE; `5 events` is a window but no
value. These nodes keep the text until its place decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from eventcube.errors import Span
from eventcube.language import syntax as s


@dataclass(frozen=True, slots=True)
class Name:
    """A name by itself; `quoted`: it was written in backticks."""

    text: str
    span: Span
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Amount:
    """A number and its unit, as written."""

    number: str
    unit: str
    span: Span
    unit_span: Span


@dataclass(frozen=True, slots=True)
class Measure:
    """Amounts in a row: `1 hour 30 min`, or in WITHIN `500 events`."""

    amounts: tuple[Amount, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Joined:
    """Conditions joined by AND: several quals where quals are listed, one AllOf elsewhere."""

    quals: tuple[s.Qual, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Parenthesised:
    """An expression in parentheses: `-(5)` is no constant, `(x AND y)` is one qual."""

    inner: Name | Measure | Joined | s.Value | s.Qual
    span: Span


Expression = Name | Measure | Joined | Parenthesised | s.Value | s.Qual


def is_value(node: object) -> TypeGuard[s.Value]:
    """Whether the node is a value of the syntax tree."""
    return isinstance(node, s.Value)


def is_qual(node: object) -> TypeGuard[s.Qual]:
    """Whether the node is a condition of the syntax tree."""
    return isinstance(node, s.Qual)


def without_parentheses(node: Expression) -> Name | Measure | Joined | s.Value | s.Qual:
    """The expression itself, in parentheses or not."""
    return node.inner if isinstance(node, Parenthesised) else node
