"""What the general-to-specific cases share: complete each match of the coarser query, or drop it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations

from eventcube.cube.refinement import Refinement
from eventcube.engine.reuse.case import Member
from eventcube.engine.reuse.conditions import in_slots, normal
from eventcube.plan.completion import PartlyBoundError, Settled, completion
from eventcube.plan.logical import Predicate
from eventcube.plan.order import PlacedNegation
from eventcube.plan.progress import Due
from eventcube.plan.steps import FilterByState, InOrder, Narrow, Program, State, Step, WithinWindow
from eventcube.plan.workload import Derivation

_DUE = frozenset({State.DUE})


def completed(case: str, source: Member, target: Member, refinement: Refinement) -> Derivation | None:
    """The target's matches from those of the coarser source; None if no steps can complete them.

    Events must fit the target's own stacks, then the tests that only the target has are done, and its other components
    are bound.
    """
    slots = _positive_slots(source, refinement)
    coarse, fine = source.query, target.query
    if slots is None or coarse.arrangement.due_alike != fine.arrangement.due_alike:
        return None
    first: list[Step] = [
        Narrow(own, fine.stacks[own]) for slot, own in slots.items() if fine.stacks[own] != coarse.stacks[slot]
    ]
    if fine.arrangement.width != coarse.arrangement.width and len(slots) > 1:
        first.append(WithinWindow(tuple(sorted(slots.values()))))
    unordered = _unordered(source, target, slots)
    if unordered is None:
        return None
    first += [InOrder(unordered)] if unordered else []
    bound, optional = frozenset(slots.values()), frozenset(slots[slot] for slot in coarse.plan.optional)
    same_trigger = {slots[slot] for slot in coarse.triggers} == set(fine.triggers)
    programs = _completions(target, bound, optional, _settled(source, refinement), same_trigger=same_trigger)
    if programs is None:
        return None
    program: Program = (*first, *programs[0])
    if same_trigger:
        due_program: Program = (FilterByState(fine.triggers, fine.plan.forward, _DUE), *program)
    else:
        due_program = (*first, *programs[1])
    return Derivation(case, source.name, target.name, tuple(slots.items()), (), program, due_program, same_trigger)


def _completions(
    target: Member, bound: frozenset[int], optional: frozenset[int], settled: Settled, *, same_trigger: bool
) -> tuple[Program, Program] | None:
    """The steps that complete matches, all and those that are due; None if there are no such steps.

    They are the same for all sources that bind the same slots, and leave the same tests.
    """
    region, order = target.logical.region, target.order
    tests: list[Predicate | PlacedNegation] = [*(p for p in region.predicates if p.is_tested), *order.tests]

    def steps(due: Due | None) -> Program:
        return completion(target.logical, order, bound, optional, settled, (), due)

    def both() -> tuple[Program, Program] | None:
        try:
            return steps(None), () if same_trigger else steps(Due(target.query.plan.forward, _DUE))
        except PartlyBoundError:
            return None

    return target.known.get(target.outline, (bound, optional, same_trigger, tuple(map(settled, tests))), both)


def _positive_slots(source: Member, refinement: Refinement) -> dict[int, int] | None:
    """The target's slot for each positive slot of the source; None if one has none."""
    slots: dict[int, int] = {}
    for slot in source.query.plan.positive:
        own = refinement.slots[slot]
        if own is None:
            return None
        slots[slot] = own
    return slots


def _unordered(source: Member, target: Member, slots: Mapping[int, int]) -> tuple[tuple[int, int], ...] | None:
    """The pairs of target slots whose events come in order in its matches, but need not in those of the source.

    None if a slot of such a pair may not be taken.
    """
    if source.in_line:
        return ()
    coarse, fine = source.order, target.order
    pairs = [
        (slots[one], slots[other])
        for one, other in permutations(slots, 2)
        if fine.precedes(slots[one], slots[other]) and not coarse.precedes(one, other)
    ]
    optional = {slots[slot] for slot in source.query.plan.optional}
    return None if any(optional.intersection(pair) for pair in pairs) else tuple(pairs)


def _settled(source: Member, refinement: Refinement) -> Settled:
    """Which tests of the target a match of the source has passed."""
    slots = {slot: own for slot, own in enumerate(refinement.slots) if own is not None}
    passed = {in_slots(p.condition, slots) for p in source.logical.region.predicates if p.guard is None}

    def settled(test: Predicate | PlacedNegation) -> bool:
        if isinstance(test, PlacedNegation):
            return test.negation.region.index in refinement.kept
        return test.guard is None and normal(test.condition) in passed

    return settled
