"""Find the columns that all events of a match, and of every negated part, agree on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eventcube.language.syntax import Attribute, Comparison, Qual
from eventcube.plan.logical import Predicate, PredicateClass, Region, Slot, negations, regions


@dataclass(frozen=True, slots=True)
class _Edge:
    """Two slots that agree on a column wherever the region holds in which that is written."""

    first: int
    second: int
    region: int
    qual: Qual


def infer_key(region: Region, slots: Sequence[Slot]) -> tuple[tuple[str, ...], frozenset[Qual]]:
    """Columns whose equality over all components follows from the predicates, and the quals that then hold anyway.

    A column counts if every slot is tied to an anchor by equalities `x.c = y.c` that are in force whenever the slot
    is bound: over slots of its own or an enclosing region that are not in an OR alternative it is not in itself.
    """
    predicates = [(r.index, p) for r in regions(region) for p in r.predicates if p.kind is PredicateClass.EQUALITY]
    enclosing = _enclosing(region)
    anchors = [s.index for s in slots if s.region == region.index and not s.alternatives]
    key: list[str] = []
    implied: set[Qual] = set()
    for column in dict.fromkeys(c for _, p in predicates if (c := _column(p)) is not None):
        edges = [_Edge(min(p.slots), max(p.slots), r, p.qual) for r, p in predicates if _column(p) == column]
        start = anchors[0] if anchors else min(s.index for s in slots if s.region == region.index)
        if all(_reaches(start, s, edges, slots, enclosing) for s in slots):
            key.append(column)
            implied |= {edge.qual for edge in edges}
    return tuple(key), frozenset(implied)


def _column(predicate: Predicate) -> str | None:
    match predicate.qual:
        case Comparison("=", Attribute(_, left), Attribute(_, right)) if left == right:
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


def _reaches(
    start: int, goal: Slot, edges: Sequence[_Edge], slots: Sequence[Slot], enclosing: dict[int, frozenset[int]]
) -> bool:
    def in_force(index: int) -> bool:
        slot = slots[index]
        if slot.region not in enclosing[goal.region]:
            return False
        return slot.region != goal.region or set(slot.alternatives) <= set(goal.alternatives)

    def plain(index: int) -> bool:
        # Seen from an inner region, an alternative outside of it may or may not be taken.
        slot = slots[index]
        return slot.region == goal.region or not slot.alternatives

    allowed = {s.index for s in slots if in_force(s.index) and plain(s.index)}
    if start not in allowed or goal.index not in allowed:
        return False
    reached, todo = {start}, [start]
    while todo:
        here = todo.pop()
        for edge in edges:
            if edge.region not in enclosing[goal.region]:
                continue
            for one, other in ((edge.first, edge.second), (edge.second, edge.first)):
                if one == here and other in allowed and other not in reached:
                    reached.add(other)
                    todo.append(other)
    return goal.index in reached
