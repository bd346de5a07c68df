"""Bind the events of nested parts with those around them, instead of answering the part by itself."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from eventcube.options import AUTO, REWRITE
from eventcube.plan.logical import Leaf, LogicalQuery, Node, map_query


def bind_in_place(query: LogicalQuery) -> LogicalQuery:
    """Bind the events of rewritten positive parts like the rest: such a part has no strategy.

    >>> from eventcube.plan.rule_examples import show
    >>> show(bind_in_place, "SEQ(A a, AND(B b, C c), D d)", strategy="rewrite")
    SEQ(A a, AND(B b, C c), D d)
      (b, c): by rewrite
    →
    SEQ(A a, AND(B b, C c), D d)
    """
    return _without_strategy(query, (REWRITE,))


def bind_all_in_place(query: LogicalQuery) -> LogicalQuery:
    """Do the same for parts whose strategy the cost model chooses, as an alternative plan for it."""
    return _without_strategy(query, (REWRITE, AUTO))


def _without_strategy(query: LogicalQuery, strategies: Collection[str]) -> LogicalQuery:
    def change(node: Node) -> Node:
        if isinstance(node, Leaf) or node.strategy not in strategies:
            return node
        return replace(node, strategy=None)

    return map_query(query, change)
