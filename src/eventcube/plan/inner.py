"""What of a nested part stands by itself, and what ties it to the events around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from eventcube.plan.expressions import ColumnRef, Comparison, Condition, Expression, slots_in
from eventcube.plan.logical import LogicalQuery, Predicate
from eventcube.plan.order import PlacedNegation
from eventcube.plan.steps import CorrelationKey, Term
from eventcube.schema import Kind

_INSIDE = (Term.AFTER_LAST, Term.AFTER_FIRST, Term.BEFORE_FIRST, Term.BEFORE_LAST)


def stands_alone(
    test: Predicate | PlacedNegation,
    own: frozenset[int],
    inside: frozenset[int],
    logical: LogicalQuery,
    needed: Callable[[PlacedNegation], frozenset[int]],
) -> bool:
    """Whether a test of a part with these slots asks for nothing but their events."""
    guard = test.guard if isinstance(test, Predicate) else test.negation.guard
    if guard is not None and guard not in inside and not logical.alternatives[guard] <= own:
        return False
    if isinstance(test, Predicate):
        return test.slots <= own
    return test.lower.term in _INSIDE and test.upper.term in _INSIDE and needed(test) <= own


def correlation_key(
    tied: Sequence[Predicate],
    alone: Iterable[Predicate | PlacedNegation],
    own: frozenset[int],
    last: Sequence[int],
    logical: LogicalQuery,
) -> tuple[CorrelationKey | None, Predicate | None]:
    """The equality that views are split by, best one that every last event tells, and the predicate it stands for."""
    same = [p.condition for p in alone if isinstance(p, Predicate) and _always(p, logical)]
    found = [(key, p) for p in tied if (key := _key(p, same, own, last, logical)) is not None]
    return min(found, key=lambda f: f[0].end is None, default=(None, None))


def _always(predicate: Predicate, logical: LogicalQuery) -> bool:
    return predicate.guard is None and not any(logical.slots[s].alternatives for s in predicate.slots)


def _key(
    predicate: Predicate, same: Sequence[Condition], own: frozenset[int], last: Sequence[int], logical: LogicalQuery
) -> CorrelationKey | None:
    match predicate.condition:
        case Comparison("=", left, right) if _always(predicate, logical):
            kinds = {left.kind, right.kind}
            for inner, outer in ((left, right), (right, left)):
                inside, outside = slots_in(inner), slots_in(outer)
                if len(inside) == 1 and inside <= own and outside and not outside & own and len(kinds - {Kind.FLOAT}):
                    return (
                        CorrelationKey(min(inside), inner, outer, _end(inner, same, last)) if len(kinds) == 1 else None
                    )
    return None


def _end(inner: Expression, same: Sequence[Condition], last: Sequence[int]) -> Expression | None:
    """A value of the last event, whichever slot that is of, that equals the value."""
    equal: list[Expression] = [inner]
    for value in equal:
        for condition in same:
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
