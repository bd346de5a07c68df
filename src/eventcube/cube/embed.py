"""Find the places of one query's components in another, such that every match of the other holds a match of the one.

An area is compared with another that is to be more specific. An embedding maps the slots of the general area to slots
of the specific one. It is sound if for every match of the specific area the events at these slots are a match of the
general one:

- the types there are the same or finer, and what precedes what in the general area does so in the specific one;
- the claims of the general area follow from those of the specific one;
- each negated part of the general area looks at the interval of one of the specific area's, and whatever matches it
  there matches that one, too: inside a negated part the roles are exchanged.

Where there are alternatives, all this holds for every way to take those of the specific area.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from eventcube.cube.facts import Facts
from eventcube.cube.shape import Area, Case, NegatedPart, Shape
from eventcube.plan.logical import Slot
from eventcube.plan.order import may_share
from eventcube.plan.steps import Bound, Term

# The most slots that a search places, in all tries together.
MOST_TRIES = 5_000

_LAST = (Term.AFTER_LAST, Term.BEFORE_LAST, Term.WINDOW_START)
_LOWER = (Term.AFTER_LAST, Term.AFTER_FIRST)
_UPPER = (Term.BEFORE_LAST, Term.BEFORE_FIRST)


@dataclass(slots=True)
class Budget:
    """How many slots may still be placed."""

    tries: int = MOST_TRIES


@dataclass(frozen=True, slots=True)
class Embedding:
    """For slots of the general query slots of the specific one, in negated parts too.

    `kept` are the specific area's negated parts, by the index of their area, that have no match where those of the
    general area have none.
    """

    slots: Mapping[int, int]
    kept: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two queries: its slots, and the terms of those that are bound around the areas compared.

    Terms name events for both queries: the slots of the specific side of the outermost areas, as they are, and the
    slots inside negated parts of the other query, as negative numbers.
    """

    slots: tuple[Slot, ...]
    negative: bool
    terms: Mapping[int, int] = field(default_factory=dict)

    def term(self, slot: int) -> int:
        """The term of a slot that is bound here."""
        return ~slot if self.negative else slot


@dataclass(frozen=True, slots=True)
class Scope:
    """Both sides of a comparison, and for the outermost areas whether windows are the same, or there are none."""

    general: Side
    specific: Side
    same_window: bool = True
    unbounded: bool = False


def embeddings_of(general: Shape, specific: Shape) -> Iterator[Embedding]:
    """The embeddings of one query in another; windows, keys and schemas must have been compared before."""
    return _outermost(general, specific).run()


def is_embedding(general: Shape, specific: Shape, slots: Mapping[int, int]) -> bool:
    """Whether a mapping of the positive slots of two queries is an embedding."""
    search = _outermost(general, specific)
    fits = all(_fits(general.slots[g], specific.slots[s]) for g, s in slots.items())
    return fits and search.keeps_order(slots) and search.checked(slots) is not None


def _outermost(general: Shape, specific: Shape) -> _Search:
    window, other = general.query.window, specific.query.window
    scope = Scope(
        Side(general.slots, negative=True),
        Side(specific.slots, negative=False),
        same_window=window == other,
        unbounded=window is None and other is None,
    )
    return _Search(general.area, specific.area, scope, specific.facts, Budget())


class _Search:
    """The search for embeddings of one area in another; `facts` has what holds in each case of the specific one."""

    def __init__(self, general: Area, specific: Area, scope: Scope, facts: Iterable[Facts], budget: Budget) -> None:
        self.general, self.specific, self.scope, self.budget = general, specific, scope, budget
        self.cases = list(zip(specific.cases.values(), facts, strict=True))
        self.plain = len(self.cases) == 1 and len(general.cases) == 1

    def run(self) -> Iterator[Embedding]:
        """The embeddings, in the order of the slots that they map to."""
        candidates: list[list[int | None]] = []
        for slot in self.general.slots:
            candidates.append(self._candidates(slot))
            if not candidates[-1]:
                return
        for placed in self._place(0, candidates, {}):
            embedding = self.checked(placed)
            if embedding is not None:
                yield embedding

    def _candidates(self, slot: int) -> list[int | None]:
        """The slots that one of the general area could map to; None: none, if it is in an alternative."""
        one, slots = self.scope.general.slots[slot], self.scope.specific.slots
        fitting: list[int | None] = [place for place in self.specific.slots if _fits(one, slots[place])]
        return [*fitting, None] if one.alternatives else fitting

    def _place(
        self, place: int, candidates: list[list[int | None]], placed: dict[int, int]
    ) -> Iterator[dict[int, int]]:
        if place == len(candidates):
            yield dict(placed)
            return
        slot = self.general.slots[place]
        for candidate in candidates[place]:
            self.budget.tries -= 1
            if self.budget.tries < 0:
                return
            if candidate is None:
                yield from self._place(place + 1, candidates, placed)
            elif self._in_order(slot, candidate, placed):
                placed[slot] = candidate
                if not self.plain or self._claims_hold(slot, placed):
                    yield from self._place(place + 1, candidates, placed)
                del placed[slot]

    def _in_order(self, slot: int, candidate: int, placed: Mapping[int, int]) -> bool:
        """Whether the slot can be placed there: a free place, before and after what it must precede and follow."""
        for other, taken in placed.items():
            if taken == candidate:
                return False
            if self.general.before[slot] >> other & 1:
                in_order = self.specific.before[candidate] >> taken & 1
            elif self.general.before[other] >> slot & 1:
                in_order = self.specific.before[taken] >> candidate & 1
            else:
                continue
            if not in_order and (self.plain or any({candidate, taken} <= case.slots for case, _ in self.cases)):
                return False
        return True

    def keeps_order(self, slots: Mapping[int, int]) -> bool:
        """Whether the slots are different ones, in the order that the general area asks for."""
        placed: dict[int, int] = {}
        for slot, candidate in slots.items():
            if not self._in_order(slot, candidate, placed):
                return False
            placed[slot] = candidate
        return True

    def _claims_hold(self, slot: int, placed: Mapping[int, int]) -> bool:
        """Whether the claims that the slot is the last one of follow; there is only one case."""
        (_, facts), terms = self.cases[0], None
        for conjunct in self.general.conjuncts:
            if slot in conjunct.slots:
                terms = terms or self._general_terms(placed, placed)
                if conjunct.slots <= terms.keys() and not facts.imply(conjunct.claim, terms):
                    return False
        return True

    def _general_terms(self, bound: Iterable[int], placed: Mapping[int, int]) -> dict[int, int]:
        scope = self.scope
        return {**scope.general.terms, **{slot: scope.specific.term(placed[slot]) for slot in bound}}

    def checked(self, placed: Mapping[int, int]) -> Embedding | None:
        """The embedding of slots at these places, with its negated parts; None if it is none."""
        slots = dict(placed)
        kept: frozenset[int] | None = None
        for case, facts in self.cases:
            bound = frozenset(slot for slot, place in placed.items() if place in case.slots)
            taken = self.general.cases.get(bound)
            if taken is None:
                return None
            terms = self._general_terms(bound, placed)
            for conjunct in self.general.conjuncts:
                if conjunct.applies(taken, terms) and not facts.imply(conjunct.claim, terms):
                    return None
            if self.general.negated:
                negated = _Negated(self, placed, case, taken, terms, facts)
                covered = negated.covered()
                if covered is None:
                    return None
                for one, other in covered.items():
                    slots.setdefault(one, other)
                kept = negated.kept if kept is None else kept & negated.kept
        return Embedding(slots, kept or frozenset())


class _Negated:
    """The negated parts of two areas, compared in one case; `terms` has the general slots that are bound."""

    def __init__(
        self,
        search: _Search,
        placed: Mapping[int, int],
        case: Case,
        taken: Case,
        terms: Mapping[int, int],
        facts: Facts,
    ) -> None:
        self.search, self.scope, self.placed, self.case, self.facts = search, search.scope, placed, case, facts
        own = {slot: self.scope.specific.term(slot) for slot in case.slots}
        general, specific = self.scope.general, self.scope.specific
        self.general_side = Side(general.slots, general.negative, terms)
        self.specific_side = Side(specific.slots, specific.negative, {**specific.terms, **own})
        self.taken = taken
        self.kept: frozenset[int] = frozenset()

    def covered(self) -> dict[int, int] | None:
        """The slots of the negated parts, for those of the general area; None if one of these may have a match.

        Each of the general area's parts needs one of the specific area's with the same interval that matches
        whatever matches it.
        """
        slots: dict[int, int] = {}
        specific = [part for part in self.search.specific.negated if part.applies(self.case)]
        kept: set[int] = set()
        for part in self.search.general.negated:
            if not part.applies(self.taken):
                continue
            found: Embedding | None = None
            for other in specific:
                if not self._same_interval(part, other):
                    continue
                if found is None and self._is_free(part, other):
                    found = self._embedded(other.area, part.area, self.specific_side, self.general_side)
                if other.area.index not in kept and self._keeps(part, other):
                    kept.add(other.area.index)
            if found is None:
                return None
            for one, another in found.slots.items():
                slots.setdefault(another, one)
        self.kept = frozenset(kept)
        return slots

    def _keeps(self, part: NegatedPart, other: NegatedPart) -> bool:
        """Whether the specific area's part has no match where the general area's has none."""
        if not self._mapped(part.distinct) <= other.distinct:
            return False
        return self._embedded(part.area, other.area, self.general_side, self.specific_side) is not None

    def _embedded(self, general: Area, specific: Area, general_side: Side, specific_side: Side) -> Embedding | None:
        """An embedding of a negated part's area in that of another, as it is between outer events."""
        facts = []
        for case in specific.cases.values():
            known = self.facts.copy()
            terms = {**specific_side.terms, **{slot: specific_side.term(slot) for slot in case.slots}}
            for conjunct in specific.conjuncts:
                if conjunct.applies(case, terms):
                    known.add(conjunct.claim, terms)
            facts.append(known)
        scope = Scope(general_side, specific_side)
        return next(_Search(general, specific, scope, facts, self.search.budget).run(), None)

    def _is_free(self, part: NegatedPart, other: NegatedPart) -> bool:
        """Whether a match of the general area's part has no event that the specific area's may not use."""
        events = (other.distinct & self.case.slots) - self._mapped(part.distinct)
        return not any(
            may_share(self.specific_side.slots[event], self.general_side.slots[slot])
            for event in events
            for slot in part.area.slots
        )

    def _mapped(self, slots: Iterable[int]) -> frozenset[int]:
        """The places of the general area's slots that are bound."""
        return frozenset(self.placed[slot] for slot in slots if slot in self.taken.slots)

    def _same_interval(self, part: NegatedPart, other: NegatedPart) -> bool:
        return self._same_bound(part.lower, other.lower, _LOWER) and self._same_bound(part.upper, other.upper, _UPPER)

    def _same_bound(self, bound: Bound, other: Bound, terms: tuple[Term, Term]) -> bool:
        """Whether a bound of the general area and one of the specific area are the same in every match."""
        if bound.term in terms and other.term in terms:
            one, another = self._ends(bound.term, self._mapped(bound.slots)), self._ends(other.term, other.slots)
            # The first and the last of one event are the same.
            return one == another and (bound.term is other.term or len(one) == 1)
        if bound.term is not other.term:
            return False
        if bound.term in (Term.REGION_START, Term.REGION_END) or self.scope.unbounded:
            return True
        return self.scope.same_window and self._ends(bound.term, self._mapped(bound.slots)) == self._ends(
            other.term, other.slots
        )

    def _ends(self, term: Term, slots: Iterable[int]) -> tuple[int, ...]:
        """Those of the specific area's slots that can be the last, or the first, of them."""
        order, bound = self.search.specific.order, self.case.slots.intersection(slots)
        return order.latest(bound) if term in _LAST else order.earliest(bound)


def _fits(general: Slot, specific: Slot) -> bool:
    """Whether every event of the specific slot's types is of the general slot's types."""
    return general.types is None or (specific.types is not None and specific.types <= general.types)
