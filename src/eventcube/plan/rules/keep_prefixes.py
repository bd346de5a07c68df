"""Make all components of a sequence but the one that makes a match due a part by itself, whose matches can be kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from eventcube.options import PRC
from eventcube.plan.logical import Leaf, LogicalQuery, Negation, Node, Region, Seq, map_nodes, slots_of

# Prefixes of prefixes: each is planned by itself, and long ones have few matches that are of use.
LEVELS = 3


def keep_prefixes(query: LogicalQuery, *, forward: bool = False, only_tested: bool = False) -> LogicalQuery:
    """Make the prefix of every sequence a nested part, and the prefix of that one, and so on, for a few levels.

    Whatever is tested on the prefix alone is then tested once, and not for every event that it is joined with. If
    matches are reported `forward`, by their first event, the other end of the query is such a part. With `only_tested`
    this is done only where something is tested. Negated parts stay as they are.

    >>> from eventcube.plan.rule_examples import show
    >>> show(keep_prefixes, "SEQ(A a, B b, !X x, C c, !Y y, D d)", strategy=None)
    SEQ(A a, B b, !X x, C c, !Y y, D d)
    →
    SEQ(SEQ(SEQ(A a, B b), !X x, C c), !Y y, D d)
      (a, b, c): by prc
      (a, b): by prc
    """
    region = query.region
    whole = slots_of(region.node)

    def worth(kept: Node) -> bool:
        return len(slots_of(kept)) > 1 and (not only_tested or _is_tested(kept, region))

    def change(node: Node) -> Node:
        # Parts are searched from their last event back, whatever the whole is.
        return _split(node, worth, LEVELS, forward=forward and slots_of(node) == whole)

    node = map_nodes(region.node, change, lambda negated: negated)
    return query if node is region.node else replace(query, region=replace(region, node=node))


def _split(node: Node, worth: Callable[[Node], bool], levels: int, *, forward: bool = False) -> Node:
    """A sequence with all positive parts but one in a part of their own, and so on for some levels."""
    if not isinstance(node, Seq) or not levels:
        return node
    places = [i for i, part in enumerate(node.parts) if not isinstance(part, Negation)]
    kept = places[1:] if forward else places[:-1]
    if not kept:
        return node
    part = node.parts[kept[0]] if len(kept) == 1 else Seq(node.parts[kept[0] : kept[-1] + 1])
    # A nested part has a strategy of its own.
    if isinstance(part, Leaf | Negation) or part.strategy is not None or not worth(part):
        return node
    inner = _split(part, worth, levels - 1)
    assert not isinstance(inner, Leaf)
    return replace(node, parts=(*node.parts[: kept[0]], replace(inner, strategy=PRC), *node.parts[kept[-1] + 1 :]))


def _is_tested(kept: Node, region: Region) -> bool:
    """Whether some combinations of the events are ruled out, beside those in another order."""
    inside = slots_of(kept)
    return _has_negation(kept) or any(p.is_tested and p.guard is None and p.slots <= inside for p in region.predicates)


def _has_negation(node: Node) -> bool:
    if isinstance(node, Leaf):
        return False
    return any(isinstance(part, Negation) or _has_negation(part) for part in node.parts)
