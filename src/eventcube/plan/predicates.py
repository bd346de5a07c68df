"""Predicates as steps test them: by index look-up, by comparing candidates, or as residual predicates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eventcube.language.printer import print_qual
from eventcube.plan.expressions import FLIPPED, Between, Comparison, Expression, slots_in
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
        comparisons = () if undecided else comparisons_for(bind.slot, predicate)
        if not comparisons:
            filters.append(residual(predicate, logical))
        elif key is None and _can_be_key(comparisons[0]):
            (key,) = comparisons
        else:
            compare += comparisons
    return replace(bind, key=key, compare=tuple(compare), filters=tuple(filters))


def comparisons_for(slot: int, predicate: Predicate) -> tuple[Compare, ...]:
    """The predicate as one or two of `new op bound`, none if the new event does not stand on one side only."""
    text = print_qual(predicate.qual)
    match predicate.condition:
        case Comparison(op, left, right):
            return _compared(slot, [(left, op, right)], text)
        case Between(value, low, high):
            return _compared(slot, [(value, ">=", low), (value, "<=", high)], text)
    return ()


def _compared(slot: int, sides: Iterable[tuple[Expression, str, Expression]], text: str) -> tuple[Compare, ...]:
    compared = []
    for left, op, right in sides:
        first, second = slots_in(left), slots_in(right)
        if first == {slot} and slot not in second:
            compared.append(Compare(left, op, right, text))
        elif second == {slot} and slot not in first:
            compared.append(Compare(right, FLIPPED[op], left, text))
        else:
            return ()
    return tuple(compared)


def _can_be_key(compare: Compare) -> bool:
    """Whether candidates can be looked up by the comparison."""
    return compare.op == "=" and Kind.FLOAT not in (compare.new.kind, compare.bound.kind)


def residual(predicate: Predicate, logical: LogicalQuery) -> Residual:
    """The predicate as a residual, tested on partial matches."""
    optional = tuple(sorted(s for s in predicate.slots if logical.slots[s].alternatives))
    guard = () if predicate.guard is None else tuple(sorted(logical.alternatives[predicate.guard]))
    return Residual(predicate.condition, predicate.slots, optional, guard, print_qual(predicate.qual))
