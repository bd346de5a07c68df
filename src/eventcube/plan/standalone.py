"""Standalone parts: which tests need no outer event, and which equality is the correlation key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from eventcube.plan.expressions import ColumnRef, Comparison, Condition, Expression, slots_in
from eventcube.plan.logical import LogicalQuery, Predicate
from eventcube.plan.order import PlacedNegation
from eventcube.plan.steps import CorrelationKey, Term
from eventcube.schema import Kind

# Bounds that depend on the part's own events only.
_OWN_TERMS = (Term.AFTER_LAST, Term.AFTER_FIRST, Term.BEFORE_FIRST, Term.BEFORE_LAST)


def stands_alone(
    test: Predicate | PlacedNegation,
    part_slots: frozenset[int],
    taken: frozenset[int],
    logical: LogicalQuery,
    needed: Callable[[PlacedNegation], frozenset[int]],
) -> bool:
    """Whether a test needs no events but those of the part; `taken` are alternatives known to be taken."""
    guard = test.guard if isinstance(test, Predicate) else test.negation.guard
    if guard is not None and guard not in taken and not logical.alternatives[guard] <= part_slots:
        return False
    if isinstance(test, Predicate):
        return test.slots <= part_slots
    return test.lower.term in _OWN_TERMS and test.upper.term in _OWN_TERMS and needed(test) <= part_slots


def correlation_key(
    correlated: Sequence[Predicate],
    standalone: Iterable[Predicate | PlacedNegation],
    part_slots: frozenset[int],
    last: Sequence[int],
    logical: LogicalQuery,
) -> tuple[CorrelationKey | None, Predicate | None]:
    """The equality that views are partitioned by, preferably one on the last event, and its predicate."""
    equalities = [p.condition for p in standalone if isinstance(p, Predicate) and _is_unconditional(p, logical)]
    keys = [(key, p) for p in correlated if (key := _key(p, equalities, part_slots, last, logical)) is not None]
    return min(keys, key=lambda candidate: candidate[0].end is None, default=(None, None))


def _is_unconditional(predicate: Predicate, logical: LogicalQuery) -> bool:
    return predicate.guard is None and not any(logical.slots[s].alternatives for s in predicate.slots)


def _key(
    predicate: Predicate,
    equalities: Sequence[Condition],
    part_slots: frozenset[int],
    last: Sequence[int],
    logical: LogicalQuery,
) -> CorrelationKey | None:
    match predicate.condition:
        case Comparison("=", left, right) if _is_unconditional(predicate, logical):
            kinds = {left.kind, right.kind}
            for inner, outer in ((left, right), (right, left)):
                inner_slots, outer_slots = slots_in(inner), slots_in(outer)
                if (
                    len(inner_slots) == 1
                    and inner_slots <= part_slots
                    and outer_slots
                    and not outer_slots & part_slots
                    and len(kinds - {Kind.FLOAT})
                ):
                    return (
                        CorrelationKey(min(inner_slots), inner, outer, _last_event_value(inner, equalities, last))
                        if len(kinds) == 1
                        else None
                    )
    return None


def _last_event_value(inner: Expression, equalities: Sequence[Condition], last: Sequence[int]) -> Expression | None:
    """A value of the last event, whichever slot holds it, that equals the inner value."""
    equal: list[Expression] = [inner]
    for value in equal:
        for condition in equalities:
            match condition:
                case Comparison("=", ColumnRef() as left, ColumnRef() as right):
                    other = right if left == value else left if right == value else None
                    if other is not None and other not in equal:
                        equal.append(other)
    if len(last) == 1:
        return next((v for v in equal if slots_in(v) == {last[0]}), None)
    columns = [v for v in equal if isinstance(v, ColumnRef)]
    for column in columns:
        if {c.slot for c in columns if c.column == column.column}.issuperset(last):
            return replace(column, slot=last[0])
    return None
