"""A bound query prepared for comparisons: slots, their order, ways to take alternatives, claims and negated parts.

Parts that nest in a positive part have no meaning of their own: which events precede which is all that is left of them.
So `SEQ(A, SEQ(B, C))` has the shape of `SEQ(A, B, C)`, and `SEQ(A, B)` is `AND(A, B)` with one thing more to hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from eventcube.cube.facts import Claim, Facts, condition_to_claims
from eventcube.plan.logical import Leaf, LogicalQuery, Node, Or, Region, Slot, positive_parts, slots_of
from eventcube.plan.order import Order, mask_of
from eventcube.plan.steps import Bound

# Larger regions are related to none: a comparison could take long.
MOST_SLOTS = 64
MOST_CASES = 32


@dataclass(frozen=True, slots=True)
class Case:
    """One way to take the alternatives of a region: the slots that are bound then, and the alternatives taken."""

    slots: frozenset[int]
    alternatives: frozenset[int]


@dataclass(frozen=True, slots=True)
class Conjunct:
    """A claim that applies where all of `slots` are bound and the alternative `guard` is taken, if there is one."""

    claim: Claim
    slots: frozenset[int]
    guard: int | None

    def applies(self, case: Case, bound: Mapping[int, int]) -> bool:
        """Whether it applies to matches of the case; `bound` has all slots that are bound, outer ones included."""
        return (self.guard is None or self.guard in case.alternatives) and self.slots <= bound.keys()


@dataclass(frozen=True, slots=True)
class NegatedPart:
    """An area that must have no match between two bounds, without the events of `distinct`."""

    area: Area
    lower: Bound
    upper: Bound
    distinct: frozenset[int]
    guard: int | None

    def applies(self, case: Case) -> bool:
        """Whether it stands in an alternative of the case, or in none."""
        return self.guard is None or self.guard in case.alternatives


@dataclass(frozen=True, slots=True)
class Area:
    """A region: its slots, for each slot of the query the slots here that precede it (a mask), and what must hold.

    `cases` are by the slots that they bind.
    """

    index: int
    slots: tuple[int, ...]
    before: tuple[int, ...]
    order: Order
    cases: Mapping[frozenset[int], Case]
    conjuncts: tuple[Conjunct, ...]
    negated: tuple[NegatedPart, ...]

    def areas(self) -> Iterator[Area]:
        """The area and all areas inside it."""
        yield self
        for part in self.negated:
            yield from part.area.areas()


@dataclass(frozen=True, slots=True)
class Shape:
    """A query prepared for comparisons. `facts` are the claims that hold for its matches, case by case.

    `required` slots are bound in every match. Patterns that differ in types only have the same `outline`.
    """

    query: LogicalQuery
    area: Area
    facts: tuple[Facts, ...]
    required: int
    outline: tuple[int, ...]

    @property
    def slots(self) -> tuple[Slot, ...]:
        return self.query.slots


def shape_of(query: LogicalQuery) -> Shape | None:
    """The shape of a query as it was bound; None if it is too large to be compared."""
    area = _area(query.region, query, outermost=True)
    if area is None:
        return None
    facts = []
    for case in area.cases.values():
        known = Facts()
        terms = {slot: slot for slot in case.slots}
        for conjunct in area.conjuncts:
            if conjunct.applies(case, terms):
                known.add(conjunct.claim, terms)
        facts.append(known)
    required = sum(not query.slots[slot].alternatives for slot in area.slots)
    return Shape(query, area, tuple(facts), required, _outline(query, area))


def _outline(query: LogicalQuery, area: Area) -> tuple[int, ...]:
    inner = [inside for part in area.negated for inside in part.area.areas()]
    ordered = _ordered_pairs(area), sum(map(_ordered_pairs, inner))
    return len(query.slots), len(query.alternatives), len(inner), *ordered


def _ordered_pairs(area: Area) -> int:
    """The number of pairs of slots in a fixed order."""
    return sum(before.bit_count() for before in area.before)


def _area(region: Region, query: LogicalQuery, *, outermost: bool) -> Area | None:
    slots = tuple(sorted(slots_of(region.node)))
    if len(slots) > MOST_SLOTS or _count_cases(region.node) > MOST_CASES:
        return None
    order = Order(region, query.slots, outermost=outermost)
    before = [0] * len(query.slots)
    for slot in slots:
        before[slot] = mask_of(order.before((slot,), slots))
    negated = []
    for test in order.tests:
        area = _area(test.negation.region, query, outermost=False)
        if area is None:
            return None
        negated.append(NegatedPart(area, test.lower, test.upper, frozenset(test.distinct), test.negation.guard))
    conjuncts = tuple(
        Conjunct(claim, predicate.slots, predicate.guard)
        for predicate in region.predicates
        for claim in condition_to_claims(predicate.condition, query.schema.columns)
    )
    cases = {bound: _case(bound, query) for bound in _bound_slots(region.node)}
    return Area(region.index, slots, tuple(before), order, cases, conjuncts, tuple(negated))


def _case(bound: frozenset[int], query: LogicalQuery) -> Case:
    return Case(bound, frozenset(n for slot in bound for n in query.slots[slot].alternatives))


def _count_cases(node: Node) -> int:
    match node:
        case Leaf():
            return 1
        case Or(parts):
            return sum(map(_count_cases, parts))
        case _:
            return prod(map(_count_cases, positive_parts(node)))


def _bound_slots(node: Node) -> Iterator[frozenset[int]]:
    """For each way to take the alternatives in a node the slots that are bound."""
    match node:
        case Leaf(slot):
            yield frozenset({slot})
        case Or(parts):
            for part in parts:
                yield from _bound_slots(part)
        case _:
            for chosen in product(*(list(_bound_slots(part)) for part in positive_parts(node))):
                yield frozenset[int]().union(*chosen)
