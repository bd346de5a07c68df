"""Predicates as steps test them: by index look-up, by comparing candidates, or as residual predicates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eventcube.language.printer import print_qual
from eventcube.plan.expressions import FLIPPED, Comparison, slots_in
from eventcube.plan.logical import LogicalQuery, Predicate
from eventcube.plan.steps import Bind, Compare, Residual
from eventcube.schema import Kind


def with_predicates(
    bind: Bind, predicates: Iterable[Predicate], optional: frozenset[int], logical: LogicalQuery
) -> Bind:
    """The join step with predicates on its event.

    The first equality becomes the look-up key, other comparisons with the event on one side test each candidate, and
    the rest is residual; so is a predicate with a guard, or over one of the `optional` slots.
    """
    key: Compare | None = None
    compare: list[Compare] = []
    filters: list[Residual] = []
    for predicate in predicates:
        undecided = optional & predicate.slots or predicate.guard is not None
        comparison = None if undecided else comparison_for(bind.slot, predicate)
        if comparison is None:
            filters.append(residual(predicate, logical))
        elif comparison.op == "=" and key is None and Kind.FLOAT not in (comparison.new.kind, comparison.bound.kind):
            key = comparison
        else:
            compare.append(comparison)
    return replace(bind, key=key, compare=tuple(compare), filters=tuple(filters))


def comparison_for(slot: int, predicate: Predicate) -> Compare | None:
    """The predicate as `new op bound`, if the new event stands on one side only."""
    match predicate.condition:
        case Comparison(op, left, right):
            first, second = slots_in(left), slots_in(right)
            if first == {slot} and slot not in second:
                return Compare(left, op, right)
            if second == {slot} and slot not in first:
                return Compare(right, FLIPPED[op], left)
    return None


def residual(predicate: Predicate, logical: LogicalQuery) -> Residual:
    """The predicate as a residual, tested on partial matches."""
    optional = tuple(sorted(s for s in predicate.slots if logical.slots[s].alternatives))
    guard = () if predicate.guard is None else tuple(sorted(logical.alternatives[predicate.guard]))
    return Residual(predicate.condition, predicate.slots, optional, guard, print_qual(predicate.qual))
