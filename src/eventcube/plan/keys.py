"""Find the columns that all events of a match, and of every negated part, agree on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eventcube.plan.expressions import ColumnRef, Comparison, Condition
from eventcube.plan.logical import Predicate, PredicateClass, Region, Slot, negations, regions


@dataclass(frozen=True, slots=True)
class _Edge:
    """Two slots that agree on a column wherever the region holds in which that is written."""

    first: int
    second: int
    region: int
    condition: Condition


def infer_key(region: Region, slots: Sequence[Slot]) -> tuple[tuple[str, ...], frozenset[Condition]]:
    """Columns whose equality over all components follows from the predicates, and the conditions that then hold anyway.

    A column counts if every slot is tied to an anchor by equalities `x.c = y.c` that are in force whenever the slot
    is bound: over slots of its own or an enclosing region that are not in an OR alternative it is not in itself.
    """
    predicates = [(r.index, p) for r in regions(region) for p in r.predicates if p.kind is PredicateClass.EQUALITY]
    enclosing = _enclosing(region)
    anchors = [s.index for s in slots if s.region == region.index and not s.alternatives]
    start = anchors[0] if anchors else min(s.index for s in slots if s.region == region.index)
    # What is in force is the same for all slots of one region and alternative.
    groups: dict[tuple[int, tuple[int, ...]], list[Slot]] = {}
    for slot in slots:
        groups.setdefault((slot.region, slot.alternatives), []).append(slot)
    key: list[str] = []
    implied: set[Condition] = set()
    by_column: dict[str, list[_Edge]] = {}
    for index, predicate in predicates:
        column = _column(predicate)
        if column is not None:
            edge = _Edge(min(predicate.slots), max(predicate.slots), index, predicate.condition)
            by_column.setdefault(column, []).append(edge)
    for column, edges in by_column.items():
        if all(_reached(start, own, edges, slots, enclosing) for own in groups.values()):
            key.append(column)
            implied |= {edge.condition for edge in edges}
    return tuple(key), frozenset(implied)


def _column(predicate: Predicate) -> str | None:
    match predicate.condition:
        case Comparison("=", ColumnRef(column=left), ColumnRef(column=right)) if left == right:
            return left
    return None


def _enclosing(region: Region) -> dict[int, frozenset[int]]:
    """For each region, itself and the regions around it."""
    found: dict[int, frozenset[int]] = {}

    def visit(inner: Region, around: frozenset[int]) -> None:
        found[inner.index] = around | {inner.index}
        for negation in negations(inner.node):
            visit(negation.region, found[inner.index])

    visit(region, frozenset())
    return found


def _reached(
    start: int,
    goals: Sequence[Slot],
    edges: Sequence[_Edge],
    slots: Sequence[Slot],
    enclosing: dict[int, frozenset[int]],
) -> bool:
    """Whether the edges that are in force for the goals, of one region and alternative, tie them all to the start."""
    goal = goals[0]

    def in_force(slot: Slot) -> bool:
        if slot.region not in enclosing[goal.region]:
            return False
        if slot.region == goal.region:
            return set(slot.alternatives) <= set(goal.alternatives)
        # Seen from an inner region, an alternative outside of it may or may not be taken.
        return not slot.alternatives

    allowed = {slot.index for slot in slots if in_force(slot)}
    tied: dict[int, list[int]] = {}
    for edge in edges:
        if edge.region in enclosing[goal.region] and edge.first in allowed and edge.second in allowed:
            tied.setdefault(edge.first, []).append(edge.second)
            tied.setdefault(edge.second, []).append(edge.first)
    reached, todo = {start} & allowed, [start] if start in allowed else []
    while todo:
        fresh = [slot for slot in tied.get(todo.pop(), ()) if slot not in reached]
        reached.update(fresh)
        todo += fresh
    return reached.issuperset(slot.index for slot in goals)
