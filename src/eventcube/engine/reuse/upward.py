"""What the specific-to-general cases share: take over matches of the finer query, and find those that it has not.

The finer query, the source, is the coarser one with narrower types in some slots, one run of single events more, or
both. Every match of the source is one of the target without its run, but several can be the same: only the one with the
latest run counts. The target's other matches are found by deltas: those without a run, and for each slot with narrower
types those with an event of another type there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from eventcube.cube.refinement import Refinement
from eventcube.engine.reuse.case import Member
from eventcube.engine.reuse.conditions import in_slots, normal
from eventcube.options import AUTO
from eventcube.plan.build import program_of, unrestricted_program
from eventcube.plan.logical import (
    Leaf,
    LogicalQuery,
    Negation,
    Node,
    Predicate,
    Region,
    Seq,
    regions,
)
from eventcube.plan.predicates import with_predicates
from eventcube.plan.program import ProgramBuilder
from eventcube.plan.progress import NOTHING_BOUND
from eventcube.plan.rules.rewrite import rewrite_steps
from eventcube.plan.steps import FilterByState, KeepLatest, Program, State, Step
from eventcube.plan.workload import Delta, Derivation, StackKey

_DUE = frozenset({State.DUE})


@dataclass(frozen=True, slots=True)
class Difference:
    """In what the source differs from the target: its run of slots, and the target's slots with narrower types."""

    run: tuple[int, ...]
    narrowed: tuple[int, ...]
    # The source's slot for each slot of the target.
    slots: Mapping[int, int]


def difference(source: Member, target: Member, refinement: Refinement) -> Difference | None:
    """In what two queries differ; None if it is more than a run and types."""
    # Each case asks, and goes on for its own kind of difference.
    return source.known.get((source.name, target.name), refinement, lambda: _difference(source, target, refinement))


def _difference(source: Member, target: Member, refinement: Refinement) -> Difference | None:
    coarse, fine = target.logical, source.logical
    slots = {slot: own for slot, own in enumerate(refinement.slots) if own is not None}
    others = tuple(sorted(set(range(len(fine.slots))) - set(slots.values())))
    same_slots = len(slots) == len(coarse.slots) == len(fine.slots) - len(others)
    alike = (
        source.query.arrangement == target.query.arrangement
        # With other keys, other events are of no use because a column is null.
        and source.query.plan.scan.key == target.query.plan.scan.key
        and {slots.get(slot) for slot in target.query.triggers} == set(source.query.triggers)
        and not (source.query.plan.optional or target.query.plan.optional)
    )
    if not (same_slots and alike and _same_node(coarse.region.node, fine.region.node, slots, frozenset(others))):
        return None
    negated = [s for s in coarse.slots if s.region != coarse.region.index]
    if any(s.types != fine.slots[slots[s.index]].types for s in negated):
        return None
    if _conditions(coarse, slots, frozenset()) != _conditions(fine, None, frozenset(others)):
        return None
    stacks = target.query.stacks, source.query.stacks
    positive = target.query.plan.positive
    narrowed = tuple(slot for slot in positive if stacks[0][slot] != stacks[1][slots[slot]])
    return Difference(others, narrowed, slots)


def generalized(case: str, source: Member, target: Member, change: Difference) -> Derivation | None:
    """The target's matches from those of the finer source; None if its run has conditions that cannot be told apart."""
    steps = _latest_run(source, change.run)
    if steps is None:
        return None
    deltas = [_without_run(source, target, change)] if change.run else []
    deltas += _of_other_types(source, target, change)
    query = target.query
    due = FilterByState(query.triggers, query.plan.forward, _DUE)
    slots = tuple((change.slots[slot], slot) for slot in query.plan.positive)
    return Derivation(case, source.name, target.name, slots, steps, (), (due,), True, tuple(deltas), downward=False)


def _same_node(coarse: Node | Negation, fine: Node | Negation, slots: Mapping[int, int], run: frozenset[int]) -> bool:
    """Whether two nodes are the same, but for a run of single events that one SEQ has more."""
    match coarse, fine:
        case Leaf(slot), Leaf(own):
            return slots[slot] == own
        case Negation(inner, None), Negation(other, None):
            return _same_node(inner.node, other.node, slots, frozenset())
        case (Leaf() | Negation(), _) | (_, Leaf() | Negation()):
            return False
    assert not isinstance(coarse, Leaf | Negation)
    assert not isinstance(fine, Leaf | Negation)
    parts = fine.parts
    if run and isinstance(fine, Seq):
        places = [i for i, part in enumerate(parts) if isinstance(part, Leaf) and part.slot in run]
        if not places or len(places) != len(run) or places[-1] - places[0] + 1 != len(places):
            return False
        parts = tuple(part for i, part in enumerate(parts) if i not in places)
    elif run:
        return False
    return (
        type(coarse) is type(fine)
        and len(coarse.parts) == len(parts)
        and all(_same_node(one, other, slots, frozenset()) for one, other in zip(coarse.parts, parts, strict=True))
    )


def _conditions(query: LogicalQuery, slots: Mapping[int, int] | None, run: frozenset[int]) -> object:
    """All conditions of a query but those of a run; None, which is like no other, if one applies now and then only."""
    predicates = [p for region in regions(query.region) for p in region.predicates if not p.slots & run]
    if any(p.guard is not None for p in predicates):
        return object()
    return frozenset(normal(p.condition) if slots is None else in_slots(p.condition, slots) for p in predicates)


def _latest_run(source: Member, run: tuple[int, ...]) -> Program | None:
    """Steps that keep, of matches that differ in the run only, the one with the latest; from the run's end on.

    None for a condition between events of the run: then the latest last event may have none before it.
    """
    return source.known.get(source.outline, ("latest", run), lambda: _keeps_latest(source, run))


def _keeps_latest(source: Member, run: tuple[int, ...]) -> Program | None:
    fine = source.logical
    builder = ProgramBuilder(fine, fine.region, source.order)
    steps: list[Step] = []
    for place in reversed(range(len(run))):
        slot, unbound = run[place], set(run[: place + 1])
        predicates = [p for p in fine.region.predicates if p.is_tested and slot in p.slots]
        at = replace(NOTHING_BOUND, bound=frozenset(builder.order.all - unbound))
        bind = with_predicates(builder.bind(slot, None, at), predicates, frozenset(), fine)
        if bind.filters or any(p.slots & set(run) != {slot} for p in predicates):
            return None
        steps.append(KeepLatest(bind))
    return tuple(steps)


def _without_run(source: Member, target: Member, change: Difference) -> Delta:
    """Matches of the target whose events fit the source, but that have no run: it is a negated part of these."""
    coarse, fine = target.logical, source.logical
    first = len(coarse.slots)
    places = {slot: first + i for i, slot in enumerate(change.run)}
    back = {own: slot for slot, own in change.slots.items()} | places
    index = 1 + max(region.index for region in regions(coarse.region))
    moved = tuple(_moved(p, back) for p in fine.region.predicates if p.slots & set(change.run))
    leaves = tuple(Leaf(places[slot]) for slot in change.run)
    node = leaves[0] if len(leaves) == 1 else Seq(leaves, AUTO)
    negation = Negation(Region(index, node, moved), None, strategy=AUTO)
    slots = tuple(replace(fine.slots[s], index=places[s], region=index, name=f"{fine.slots[s].name}'") for s in places)
    assert isinstance(fine.region.node, Seq)
    assert isinstance(coarse.region.node, Seq)
    parts = list(coarse.region.node.parts)
    parts.insert(next(i for i, part in enumerate(fine.region.node.parts) if part == Leaf(change.run[0])), negation)
    region = replace(coarse.region, node=replace(coarse.region.node, parts=tuple(parts)))
    narrow = {slot: source.query.stacks[own] for slot, own in change.slots.items()}
    stacks = (*(narrow[slot] for slot in range(first)), *(source.query.stacks[slot] for slot in change.run))
    logical = replace(coarse, slots=(*coarse.slots, *slots), region=region)
    return Delta(*target.known.get(target.known.outline(logical), "both", lambda: _programs(logical)), stacks)


def _programs(logical: LogicalQuery) -> tuple[Program, Program]:
    """The programs that find the matches of a query: those that are due, and all of them."""
    (program,), _ = rewrite_steps((program_of(logical)[0],))
    return program, unrestricted_program(logical)


def _moved(predicate: Predicate, slots: Mapping[int, int]) -> Predicate:
    condition = in_slots(predicate.condition, slots)
    return replace(predicate, condition=condition, slots=frozenset(slots[slot] for slot in predicate.slots))


def _of_other_types(source: Member, target: Member, change: Difference) -> Iterator[Delta]:
    """Matches with an event of another type in a narrowed slot, and of the narrower ones in those before it."""
    stacks: list[StackKey] = [*target.query.stacks]
    for slot in change.narrowed:
        general, specific = target.query.stacks[slot], source.query.stacks[change.slots[slot]]
        stacks[slot] = (general, specific)
        yield Delta(target.query.plan.program, target.unrestricted, tuple(stacks))
        stacks[slot] = specific
