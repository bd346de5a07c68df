"""Conditions of one query in terms of another, in a form in which equal ones are equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from eventcube.nodes import transform
from eventcube.plan.expressions import FLIPPED, ColumnRef, Comparison, Condition


def in_slots(condition: Condition, slots: Mapping[int, int]) -> Condition:
    """A condition in other slots; a slot that is none of these becomes one like no other."""

    def change(node: object) -> object:
        return replace(node, slot=slots.get(node.slot, -1 - node.slot)) if isinstance(node, ColumnRef) else node

    return normal(transform(condition, change))


def normal(condition: Condition) -> Condition:
    """The condition, a comparison with its sides in one order."""
    match condition:
        case Comparison(op, left, right) if repr(right) < repr(left):
            return Comparison(FLIPPED[op], right, left)
    return condition
