"""From a logical plan back to syntax, so that it can be printed as a query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from eventcube.language import syntax
from eventcube.plan.logical import (
    And,
    Leaf,
    LogicalQuery,
    Negation,
    Node,
    Or,
    Predicate,
    PredicateClass,
    Region,
    Seq,
    slots_of,
)


class Unbinder:
    """Writes the parts of a bound query as syntax; with `keyed`, the key as equalities with one event."""

    def __init__(self, query: LogicalQuery, *, keyed: bool = True) -> None:
        self.query = query
        self.key = query.key if keyed else ()
        positive = [query.slots[s] for s in sorted(slots_of(query.region.node))]
        self.anchor = next((s for s in positive if not s.alternatives), positive[0])

    def pattern(self) -> syntax.Pattern:
        """The pattern of the query."""
        return self._node(self.query.region.node, self.query.region)

    def where(self) -> tuple[syntax.Qual, ...]:
        """The conditions of the query outside of OR alternatives."""
        region = self.query.region
        return (*self._keys(sorted(slots_of(region.node))), *self._quals(_unguarded(region.predicates)))

    def part(self, part: Node | Negation, region: Region) -> syntax.Part:
        """A part of a region."""
        return self.negation(part) if isinstance(part, Negation) else self._node(part, region)

    def negation(self, negation: Negation) -> syntax.Not:
        """A negated part, with its conditions."""
        region = negation.region
        keys = self._keys(sorted(slots_of(region.node)))
        quals = (*keys, *self._quals(_unguarded(region.predicates)))
        pattern = self._node(region.node, region)
        if isinstance(pattern, syntax.Component):
            return syntax.Not(pattern, quals)
        return syntax.Not(replace(pattern, quals=quals))

    def missing(self, slot: int, predicates: Iterable[Predicate]) -> syntax.Not:
        """A negated event, with conditions on it."""
        return syntax.Not(self.component(slot), (*self._keys([slot]), *self._quals(predicates)))

    def component(self, slot: int) -> syntax.Component:
        """The component of a slot."""
        named = self.query.slots[slot]
        return syntax.Component(named.type, named.name)

    def _node(self, node: Node, region: Region) -> syntax.Pattern:
        match node:
            case Leaf(slot):
                return self.component(slot)
            case Seq(parts):
                return syntax.Seq(tuple(self.part(part, region) for part in parts))
            case And(parts):
                return syntax.And(tuple(self.part(part, region) for part in parts))
            case Or(parts, numbers):
                taken = zip(parts, numbers, strict=True)
                return syntax.Or(tuple(self._alternative(part, number, region) for part, number in taken))

    def _alternative(self, node: Node, number: int, region: Region) -> syntax.Pattern:
        pattern = self._node(node, region)
        quals = tuple(self._quals(p for p in region.predicates if p.guard == number))
        if not quals:
            return pattern
        return syntax.Seq((pattern,), quals) if isinstance(pattern, syntax.Component) else replace(pattern, quals=quals)

    def _keys(self, slots: Sequence[int]) -> Iterator[syntax.Qual]:
        anchor = self.anchor
        for column in self.key:
            for slot in (self.query.slots[s] for s in slots if s != anchor.index):
                sides = syntax.Attribute(slot.name, column), syntax.Attribute(anchor.name, column)
                yield syntax.Comparison("=", *(sides if slot.region != self.query.region.index else reversed(sides)))

    def _quals(self, predicates: Iterable[Predicate]) -> Iterator[syntax.Qual]:
        return (p.qual for p in predicates if p.kind is not PredicateClass.KEY)


def _unguarded(predicates: Iterable[Predicate]) -> Iterator[Predicate]:
    return (p for p in predicates if p.guard is None)
