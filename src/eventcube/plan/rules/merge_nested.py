"""Merge nested parts into the operator around them."""

from __future__ import annotations

from dataclasses import replace

from eventcube.options import AUTO
from eventcube.plan.logical import And, Leaf, LogicalQuery, Negation, Node, Operator, Or, Seq, map_query


def merge_nested(query: LogicalQuery) -> LogicalQuery:
    """Put the parts of a SEQ in a SEQ, or of an AND in an AND, in its place, if they are bound with the rest.

    An operator with one part is that part. An AND with a negation stays: that is about its own events only.

    >>> from eventcube.plan.rule_examples import show
    >>> show(merge_nested, "SEQ(A a, SEQ(B b, !X x, AND(C c, D d)), SEQ(E e))", strategy=None)
    SEQ(A a, SEQ(B b, !X x, AND(C c, D d)), SEQ(E e))
    →
    SEQ(A a, B b, !X x, AND(C c, D d), E e)
    """
    return map_query(query, _merged)


def _merged(node: Node) -> Node:
    if isinstance(node, Leaf | Or):
        return node
    parts = tuple(
        inner
        for part in node.parts
        for inner in (part.parts if isinstance(part, Operator) and _merges(part, node) else (part,))
    )
    if len(parts) == 1 and not isinstance(parts[0], Negation) and node.strategy in (None, AUTO):
        return parts[0]
    return node if parts == node.parts else replace(node, parts=parts)


def _merges(inner: Operator, around: Seq | And) -> bool:
    """Whether the parts of an operator can be moved into the one around it."""
    if inner.strategy is not None:
        return False
    match inner, around:
        case Seq(), Seq():
            return True
        case And(parts), And():
            return not any(isinstance(part, Negation) for part in parts)
    return False
