"""Find the flat form of negated parts: exclusive cases in which only single events are missing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from eventcube.language.printer import print_qual
from eventcube.options import AUTO, REWRITE
from eventcube.plan.logical import (
    And,
    FlatForm,
    Leaf,
    LogicalQuery,
    Negation,
    Node,
    NoFlatForm,
    Or,
    PredicateClass,
    Seq,
    map_query,
    negations,
    slots_of,
)
from eventcube.plan.order import may_share
from eventcube.plan.predicates import comparisons_for


def flatten_negated(query: LogicalQuery) -> LogicalQuery:
    """Attach to each negated SEQ and AND its flat form, if it has one.

    >>> from eventcube.plan.rule_examples import show
    >>> show(flatten_negated, "SEQ(A a, !SEQ(B b, C c, c.x = a.x), D d)")
    SEQ(A a, !SEQ(B b, C c, c.x = a.x), D d)
    →
    SEQ(A a, !SEQ(B b, C c, c.x = a.x), D d)
      !(b, c): no C c where c.x = a.x, or no B b before the last C c where c.x = a.x
    """

    def change(node: Node) -> Node:
        if not isinstance(node, Seq | And):
            return node
        around = slots_of(node) if isinstance(node, And) else frozenset[int]()
        parts = tuple(
            _with_flat_form(part, around, query) if isinstance(part, Negation) else part for part in node.parts
        )
        return node if parts == node.parts else replace(node, parts=parts)

    return map_query(query, change)


def _with_flat_form(negation: Negation, distinct: frozenset[int], query: LogicalQuery) -> Negation:
    if negation.strategy not in (AUTO, REWRITE) or isinstance(negation.region.node, Leaf) or negation.flat is not None:
        return negation
    form = flat_form(negation, distinct, query)
    return replace(negation, flat=form) if isinstance(form, FlatForm) else negation


def flat_form(negation: Negation, distinct: Collection[int], query: LogicalQuery) -> FlatForm | NoFlatForm:
    """The flat form of a negated part that may not use the events of `distinct`, or the reason why it has none."""
    try:
        return _flat_form(negation, distinct, query)
    except _NoFlatFormError as error:
        return NoFlatForm(str(error))


class _NoFlatFormError(Exception):
    """Why a negated part has no flat form."""


def _flat_form(negation: Negation, distinct: Collection[int], query: LogicalQuery) -> FlatForm:
    node = negation.region.node
    part_slots = slots_of(node)
    if negation.guard is not None:
        raise _NoFlatFormError("it stands in an alternative of an OR")
    if any(True for _ in negations(node)):
        raise _NoFlatFormError("it has a negation inside")
    predicates = [p for p in negation.region.predicates if p.kind is not PredicateClass.KEY]
    for predicate in predicates:
        if len(predicate.slots & part_slots) != 1:
            reason = "ties its events to each other" if predicate.slots & part_slots else "speaks of none of its events"
            raise _NoFlatFormError(f"{print_qual(predicate.qual)} {reason}")
    slots, ordered = _single_events(node, type(node)), isinstance(node, Seq)
    pairs = [(a, b) for a in slots for b in (*distinct, *(() if ordered else slots)) if a != b]
    if any(may_share(query.slots[a], query.slots[b]) for a, b in pairs):
        raise _NoFlatFormError("one event could serve two of its components")
    # If an event is present, only the latest is tested; the first of a SEQ and the last of an AND never are present.
    for predicate in predicates:
        (slot,) = predicate.slots & part_slots
        optional = any(query.slots[s].alternatives for s in predicate.slots)
        if (
            predicate.is_tested
            and slot != slots[0 if ordered else -1]
            and (optional or not comparisons_for(slot, predicate))
        ):
            raise _NoFlatFormError(f"{print_qual(predicate.qual)} cannot be asked of the last event alone")
    return FlatForm(ordered, slots, tuple(tuple(p for p in predicates if slot in p.slots) for slot in slots))


def _single_events(node: Node, kind: type) -> tuple[int, ...]:
    """The slots of a part that nests only operators of its own kind."""
    if isinstance(node, Leaf):
        return (node.slot,)
    if not isinstance(node, kind):
        raise _NoFlatFormError(f"it has {_NAMES[type(node)]} inside {_NAMES[kind]}")
    return tuple(s for p in node.parts if not isinstance(p, Negation) for s in _single_events(p, kind))


_NAMES: dict[type, str] = {Seq: "SEQ", And: "AND", Or: "OR"}
