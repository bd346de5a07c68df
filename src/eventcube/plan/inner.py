"""What of a nested part stands by itself, and what ties it to the events around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from eventcube.language.syntax import Attribute, Comparison, Qual, Value
from eventcube.plan.kinds import attributes, value_kind
from eventcube.plan.logical import LogicalQuery, Predicate
from eventcube.plan.order import Test
from eventcube.plan.physical import Bind, Limit, Link, Program, Step, Term, Union
from eventcube.schema import Kind

_INSIDE = (Term.AFTER_LAST, Term.AFTER_FIRST, Term.BEFORE_FIRST, Term.BEFORE_LAST)


def stands_alone(
    test: Predicate | Test,
    own: frozenset[int],
    inside: frozenset[int],
    logical: LogicalQuery,
    needed: Callable[[Test], frozenset[int]],
) -> bool:
    """Whether a test of a part with these slots asks for nothing but their events."""
    guard = test.guard if isinstance(test, Predicate) else test.negation.guard
    if guard is not None and guard not in inside and not logical.alternatives[guard] <= own:
        return False
    if isinstance(test, Predicate):
        return test.slots <= own
    return test.lower.term in _INSIDE and test.upper.term in _INSIDE and needed(test) <= own


def link_of(
    tied: Sequence[Predicate],
    alone: Iterable[Predicate | Test],
    own: frozenset[int],
    last: Sequence[int],
    logical: LogicalQuery,
) -> tuple[Link | None, Predicate | None]:
    """The equality that views are split by, best one that every last event tells, and the predicate it stands for."""
    same = [p.qual for p in alone if isinstance(p, Predicate) and _always(p, logical)]
    found = [(link, p) for p in tied if (link := _link(p, same, own, last, logical)) is not None]
    return min(found, key=lambda f: f[0].end is None, default=(None, None))


def _always(predicate: Predicate, logical: LogicalQuery) -> bool:
    return predicate.guard is None and not any(logical.slots[s].alternatives for s in predicate.slots)


def _link(
    predicate: Predicate, same: Sequence[Qual], own: frozenset[int], last: Sequence[int], logical: LogicalQuery
) -> Link | None:
    match predicate.qual:
        case Comparison("=", left, right) if _always(predicate, logical):
            kinds = {value_kind(v, logical.kind, lambda _: None) for v in (left, right)}
            for inner, outer in ((left, right), (right, left)):
                inside, outside = _slots(inner, logical), _slots(outer, logical)
                if len(inside) == 1 and inside <= own and outside and not outside & own and len(kinds - {Kind.FLOAT}):
                    return (
                        Link(min(inside), inner, outer, _end(inner, same, last, logical)) if len(kinds) == 1 else None
                    )
    return None


def _slots(value: Value, logical: LogicalQuery) -> frozenset[int]:
    return frozenset(logical.slot(a.var).index for a in attributes(value))


def _end(inner: Value, same: Sequence[Qual], last: Sequence[int], logical: LogicalQuery) -> Value | None:
    """A value of the last event, whichever slot that is of, that equals the value."""
    equal: list[Value] = [inner]
    for value in equal:
        for qual in same:
            match qual:
                case Comparison("=", Attribute() as left, Attribute() as right):
                    other = right if left == value else left if right == value else None
                    if other is not None and other not in equal:
                        equal.append(other)
    if len(last) == 1:
        return next((v for v in equal if _slots(v, logical) == {last[0]}), None)
    for name in dict.fromkeys(v.name for v in equal if isinstance(v, Attribute)):
        own = {logical.slot(v.var).index for v in equal if isinstance(v, Attribute) and v.name == name}
        if own.issuperset(last):
            return Attribute(logical.slots[last[0]].name, name)
    return None


def nearest(program: Program, logical: LogicalQuery) -> Program:
    """The program such that, of all results with one last event, it finds one whose first event is the latest."""
    steps: list[Step] = []
    for i, step in enumerate(program):
        rest = program[i + 1 :]
        match step:
            case Union(programs) if not rest:
                steps.append(Union(tuple(nearest(p, logical) for p in programs)))
            case Bind(filters=()) if all(_only_bounds(later, step.slot, logical) for later in rest):
                steps.append(replace(step, latest=True))
            case _:
                steps.append(step)
    return tuple(steps)


def _only_bounds(step: Step, slot: int, logical: LogicalQuery) -> bool:
    """Whether all that a later step asks of the slot's event is that its own comes before it: the later, the better."""
    if not isinstance(step, Bind) or slot in step.distinct or any(_mentions(f.limit, slot) for f in step.fences):
        return False
    if _mentions(step.lower, slot) or (_mentions(step.upper, slot) and not _before(step.upper)):
        return False
    compared = [c.bound for c in (*step.compare, *([step.key] if step.key else []))]
    asked = frozenset().union(*(_slots(v, logical) for v in compared), *(p.slots for p in step.filters))
    return slot not in asked


def _mentions(limit: Limit | None, slot: int) -> bool:
    return limit is not None and slot in limit.slots


def _before(limit: Limit | None) -> bool:
    return limit is not None and limit.term is Term.BEFORE_FIRST
