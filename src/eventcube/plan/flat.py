"""Flat equivalents of negated parts: exclusive sequences in which only single events are negated.

No match of SEQ(B1, …, Bn) lies in an interval if there is no Bn, or no Bn-1 before the last Bn, and so on; none of
AND(B1, …, Bn) if there is no B1, or a B1 but no B2, and so on. Of each such case at most one holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from eventcube.language.printer import print_qual
from eventcube.options import ITERATIVE
from eventcube.plan.logical import And, Leaf, LogicalQuery, Negation, Node, Or, Predicate, Seq, slots_of
from eventcube.plan.order import PlacedNegation, may_share
from eventcube.plan.steps import Absent, Bind, Bound, Program, Recompute, Reject, Step, Term, Union

Fuse = Callable[[Bind, list[Predicate]], Bind]

_START, _END = Bound(Term.REGION_START), Bound(Term.REGION_END)


class NoFlatFormError(Exception):
    """Why a negated part has no flat equivalent."""


def flat_program(
    test: PlacedNegation, tests: Iterable[Predicate | PlacedNegation], logical: LogicalQuery, fuse: Fuse
) -> Program:
    """Steps that keep the partial matches without a match of the negated part between START and END."""
    node = test.negation.region.node
    own = slots_of(node)
    if test.negation.guard is not None:
        raise NoFlatFormError("it stands in an alternative of an OR")
    for inner in tests:
        if isinstance(inner, PlacedNegation):
            raise NoFlatFormError("it has a negation inside")
        if not inner.slots & own:
            raise NoFlatFormError(f"{print_qual(inner.qual)} speaks of none of its events")
        if len(inner.slots & own) > 1:
            raise NoFlatFormError(f"{print_qual(inner.qual)} ties its events to each other")
    predicates = [p for p in tests if isinstance(p, Predicate)]
    slots = _leaves(node, type(node))
    shared = [(a, b) for a in slots for b in (*test.distinct, *(slots if isinstance(node, And) else ())) if a != b]
    if any(may_share(logical.slots[a], logical.slots[b]) for a, b in shared):
        raise NoFlatFormError("one event could serve two of its components")

    def bind(slot: int, upper: Bound) -> Bind:
        return fuse(Bind(slot, _START, upper), [p for p in predicates if slot in p.slots])

    def present(slot: int, upper: Bound = _END) -> Bind:
        found = bind(slot, upper)
        if found.filters:
            raise NoFlatFormError(f"{found.filters[0].text} cannot be asked of the last event alone")
        return replace(found, latest=True)

    def absent(slot: int, upper: Bound = _END) -> Reject:
        asked = {s for p in predicates if slot in p.slots for s in p.slots - own}
        inner = bind(slot, _END)
        return Reject(
            logical.slots[slot].name,
            logical.slots[slot].region,
            _START,
            upper,
            (),
            tuple(sorted(asked)),
            ITERATIVE,
            (Recompute((inner,)),),
        )

    cases: list[list[Step]] = []
    match node:
        case Seq():
            for first in reversed(range(len(slots))):
                limits = [*(Bound(Term.BEFORE_FIRST, (s,)) for s in slots[1:]), _END]
                later = [present(slots[i], limits[i]) for i in reversed(range(first + 1, len(slots)))]
                cases.append([*later, absent(slots[first], limits[first])])
        case And():
            cases = [[*(present(s) for s in slots[:i]), absent(slots[i])] for i in range(len(slots))]
        case _:
            return tuple(absent(s) for s in slots)
    return (Union(tuple((*steps, Absent(slots)) for steps in cases)),)


def _leaves(node: Node, kind: type) -> tuple[int, ...]:
    """The slots of a part without nesting, or nested in its own kind only."""
    if isinstance(node, Leaf):
        return (node.slot,)
    if not isinstance(node, kind):
        raise NoFlatFormError(f"it has {_NAMES[type(node)]} inside {_NAMES[kind]}")
    return tuple(s for p in node.parts if not isinstance(p, Negation) for s in _leaves(p, kind))


_NAMES: dict[type, str] = {Seq: "SEQ", And: "AND", Or: "OR"}
