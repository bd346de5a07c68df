"""Split the work by columns that all events of a match agree on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eventcube.plan.expressions import ColumnRef, Comparison, Condition, Encoding
from eventcube.plan.logical import (
    LogicalQuery,
    Predicate,
    PredicateClass,
    Region,
    Slot,
    map_regions,
    negations,
    regions,
)


def infer_key(query: LogicalQuery) -> LogicalQuery:
    """Make a column the key if equalities connect it in all components, negated ones too; those need no test then.

    Every slot must be connected to one anchor by equalities `x.c = y.c` that apply whenever the slot is bound: over
    slots of its own or an enclosing region that are in no OR alternative but those around it. A time that is text is no
    key.

    >>> from eventcube.plan.rule_examples import show
    >>> show(infer_key, "SEQ(A a, !(B b, b.k = a.k), C c) WHERE a.k = c.k, a.x = c.x, b.x > 0")
    SEQ(A a, !(B b, b.k = a.k, b.x > 0), C c) WHERE a.k = c.k AND a.x = c.x
    →
    SEQ(A a, !(B b, b.x > 0), C c) WHERE a.x = c.x
      key: k
    """
    key, implied = _key(query.region, query.slots)
    if not key:
        return query

    def reclass(region: Region) -> Region:
        predicates = (replace(p, kind=PredicateClass.KEY) if p.condition in implied else p for p in region.predicates)
        return replace(region, predicates=tuple(predicates))

    return replace(query, key=key, region=map_regions(query.region, reclass))


@dataclass(frozen=True, slots=True)
class _Edge:
    """An equality of one column in two slots, written in a region."""

    first: int
    second: int
    region: int
    condition: Condition


def _key(region: Region, slots: Sequence[Slot]) -> tuple[tuple[str, ...], frozenset[Condition]]:
    """The columns of the key, and the conditions that it implies."""
    predicates = [(r.index, p) for r in regions(region) for p in r.predicates if p.kind is PredicateClass.EQUALITY]
    enclosing = _enclosing(region)
    unconditional = [s.index for s in slots if s.region == region.index and not s.alternatives]
    anchor = unconditional[0] if unconditional else min(s.index for s in slots if s.region == region.index)
    # The same equalities apply to all slots of one region and alternative.
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
        if all(_all_connected(anchor, goals, edges, slots, enclosing) for goals in groups.values()):
            key.append(column)
            implied |= {edge.condition for edge in edges}
    return tuple(key), frozenset(implied)


def _column(predicate: Predicate) -> str | None:
    match predicate.condition:
        case Comparison("=", ColumnRef(column=left, encoding=encoding), ColumnRef(column=right)) if left == right:
            # A key is compared as it is stored, and two texts can be one time.
            return None if encoding is Encoding.TIME_TEXT else left
    return None


def _enclosing(region: Region) -> dict[int, frozenset[int]]:
    """For each region, itself and the regions around it."""
    enclosing: dict[int, frozenset[int]] = {}

    def visit(inner: Region, around: frozenset[int]) -> None:
        enclosing[inner.index] = around | {inner.index}
        for negation in negations(inner.node):
            visit(negation.region, enclosing[inner.index])

    visit(region, frozenset())
    return enclosing


def _all_connected(
    anchor: int,
    goals: Sequence[Slot],
    edges: Sequence[_Edge],
    slots: Sequence[Slot],
    enclosing: dict[int, frozenset[int]],
) -> bool:
    """Whether the edges that apply to the goals, all of one region and alternative, connect them to the anchor."""
    goal = goals[0]

    def applies(slot: Slot) -> bool:
        if slot.region not in enclosing[goal.region]:
            return False
        if slot.region == goal.region:
            return set(slot.alternatives) <= set(goal.alternatives)
        # For an inner region, an alternative outside of it may or may not be taken.
        return not slot.alternatives

    allowed = {slot.index for slot in slots if applies(slot)}
    neighbours: dict[int, list[int]] = {}
    for edge in edges:
        if edge.region in enclosing[goal.region] and edge.first in allowed and edge.second in allowed:
            neighbours.setdefault(edge.first, []).append(edge.second)
            neighbours.setdefault(edge.second, []).append(edge.first)
    reached, todo = {anchor} & allowed, [anchor] if anchor in allowed else []
    while todo:
        unseen = [slot for slot in neighbours.get(todo.pop(), ()) if slot not in reached]
        reached.update(unseen)
        todo += unseen
    return reached.issuperset(slot.index for slot in goals)
