"""Split a negated OR into negated alternatives."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from eventcube.options import AUTO, REWRITE
from eventcube.plan.logical import (
    And,
    LogicalQuery,
    Negation,
    Node,
    Or,
    Region,
    Seq,
    map_nodes,
    map_query,
    regions,
    slots_of,
)
from eventcube.plan.parts import with_part_strategy


def split_negated_or(query: LogicalQuery) -> LogicalQuery:
    """Negate each alternative by itself: no match of an OR means no match of any alternative.

    >>> from eventcube.plan.rule_examples import show
    >>> show(split_negated_or, "SEQ(A a, !OR(B b, SEQ(C c, D d), b.x = a.x, a.x > 0), E e)")
    SEQ(A a, !OR(B b, SEQ(C c, D d), b.x = a.x, a.x > 0), E e)
      (c, d): by auto
    →
    SEQ(A a, !(B b, b.x = a.x, a.x > 0), !SEQ(C c, D d, a.x > 0), E e)
    """
    new_regions = count(1 + max(region.index for region in regions(query.region)))
    slots = list(query.slots)

    def split(negation: Negation) -> tuple[Negation, ...]:
        region, node = negation.region, _only_part(negation.region.node)
        if not isinstance(node, Or) or negation.strategy not in (AUTO, REWRITE):
            return (negation,)
        or_slots = slots_of(node)
        split_parts = []
        for part, number in zip(node.parts, node.alternatives, strict=True):
            part_slots, index = slots_of(part), next(new_regions)
            predicates = tuple(
                replace(p, guard=None if p.guard == number else p.guard)
                for p in region.predicates
                if p.slots & or_slots <= part_slots and (p.guard is None or query.alternatives[p.guard] <= part_slots)
            )
            for slot in part_slots:
                around = tuple(a for a in slots[slot].alternatives if a != number)
                slots[slot] = replace(slots[slot], region=index, alternatives=around)
            split_off = replace(negation, region=Region(index, _unguarded(part, number), predicates))
            split_parts.append(with_part_strategy(split_off))
        return tuple(split_parts)

    def change(node: Node) -> Node:
        if not isinstance(node, Seq | And):
            return node
        parts = tuple(p for part in node.parts for p in (split(part) if isinstance(part, Negation) else (part,)))
        return node if parts == node.parts else replace(node, parts=parts)

    changed = map_query(query, change)
    return query if changed is query else replace(changed, slots=tuple(slots))


def _only_part(node: Node) -> Node:
    """The part of an operator that has no other, as the operator says nothing more."""
    while isinstance(node, Seq | And) and len(node.parts) == 1 and not isinstance(node.parts[0], Negation):
        node = node.parts[0]
    return node


def _unguarded(node: Node, number: int) -> Node:
    """The node of an alternative, with negations that it no longer guards."""

    def change(node: Node) -> Node:
        if not isinstance(node, Seq | And):
            return node
        parts = (replace(p, guard=None) if isinstance(p, Negation) and p.guard == number else p for p in node.parts)
        return replace(node, parts=tuple(parts))

    return map_nodes(node, change, lambda region: region)
