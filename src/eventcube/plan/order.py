"""The order of events that follows from the nesting of a region."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_

from eventcube.plan.logical import And, Leaf, Negation, Node, Or, Region, Seq, Slot, positive_parts, slots_of
from eventcube.plan.steps import Bound, Term


@dataclass(frozen=True, slots=True)
class PlacedNegation:
    """A negated part and the interval in which it must have no match; it may not use the events of `distinct`."""

    negation: Negation
    lower: Bound
    upper: Bound
    distinct: tuple[int, ...]


class Order:
    """Which slots of a region precede which, which may not share an event, and where its negated parts look.

    Sets of slots are bit masks here, as long patterns ask about many slots at once.
    """

    def __init__(self, region: Region, slots: Sequence[Slot], *, outermost: bool) -> None:
        self.slots = slots
        self.all = slots_of(region.node)
        # For each slot: the slots that follow it, those that precede it, and those that must hold another event.
        self._follow = [0] * len(slots)
        self._precede = [0] * len(slots)
        self._distinct = [0] * len(slots)
        self.tests: list[PlacedNegation] = []
        self._relate(region.node)
        if outermost:
            lower = Bound(Term.WINDOW_START, self.latest(self.all), True)
            upper = Bound(Term.WINDOW_END, self.earliest(self.all), True)
        else:
            lower, upper = Bound(Term.REGION_START), Bound(Term.REGION_END)
        self.lower, self.upper = lower, upper
        self._place(region.node, lower, upper)

    def standalone(self) -> Order:
        """The same order for a standalone part, which gets its interval from outside."""
        standalone = copy(self)
        standalone.lower, standalone.upper = Bound(Term.REGION_START), Bound(Term.REGION_END)
        return standalone

    def latest(self, slots: Iterable[int]) -> tuple[int, ...]:
        """Those of the slots that no other of them is known to follow."""
        return _without(slots, self._follow)

    def earliest(self, slots: Iterable[int]) -> tuple[int, ...]:
        """Those of the slots that no other of them is known to precede."""
        return _without(slots, self._precede)

    def before(self, slots: Iterable[int], among: Iterable[int]) -> list[int]:
        """Those among some slots that precede all of the others."""
        mask = reduce(and_, (self._precede[s] for s in slots))
        return [s for s in among if mask >> s & 1]

    def after(self, slots: Iterable[int], among: Iterable[int]) -> list[int]:
        """Those among some slots that follow all of the others."""
        mask = reduce(and_, (self._follow[s] for s in slots))
        return [s for s in among if mask >> s & 1]

    def precedes(self, one: int, other: int) -> bool:
        """Whether the event of one slot is known to be before that of another."""
        return bool(self._follow[one] >> other & 1)

    def distinct(self, slot: int, bound: Iterable[int]) -> tuple[int, ...]:
        """The bound slots whose event a candidate for the slot could be, and must not be."""
        distinct, candidate = self._distinct[slot], self.slots[slot]
        return tuple(sorted(b for b in bound if distinct >> b & 1 and may_share(candidate, self.slots[b])))

    def _relate(self, node: Node) -> int:
        """Record how the slots of a node relate to each other; returns their mask."""
        if isinstance(node, Leaf):
            return 1 << node.slot
        parts = [self._relate(part) for part in (node.parts if isinstance(node, Or) else positive_parts(node))]
        every = reduce(or_, parts)
        earlier, later = 0, every
        for mask in parts:
            later &= ~mask
            for slot in slots_in_mask(mask) if not isinstance(node, Or) else ():
                if isinstance(node, Seq):
                    self._precede[slot] |= earlier
                    self._follow[slot] |= later
                else:
                    self._distinct[slot] |= every & ~mask
            earlier |= mask
        return every

    def _place(self, node: Node, lower: Bound, upper: Bound) -> None:
        match node:
            case Leaf():
                return
            case Or():
                for alternative in node.parts:
                    self._place(alternative, lower, upper)
            case And(parts):
                and_slots = slots_of(node)
                for part in parts:
                    if isinstance(part, Negation):
                        after = Bound(Term.AFTER_FIRST, self.earliest(and_slots), True)
                        before = Bound(Term.BEFORE_LAST, self.latest(and_slots), True)
                        self.tests.append(PlacedNegation(part, after, before, tuple(sorted(and_slots))))
                    else:
                        self._place(part, lower, upper)
            case Seq(parts):
                # The upper bound of each part, from the last part to the first.
                rights = [upper]
                for part in reversed(parts[1:]):
                    rights.append(rights[-1] if isinstance(part, Negation) else self._begin(part))
                left = lower
                for part, right in zip(parts, reversed(rights), strict=True):
                    if isinstance(part, Negation):
                        self.tests.append(PlacedNegation(part, left, right, ()))
                    else:
                        self._place(part, left, right)
                        left = Bound(Term.AFTER_LAST, self.latest(slots_of(part)), True)

    def _begin(self, part: Node) -> Bound:
        """The bound before the first event of a part."""
        return Bound(Term.BEFORE_FIRST, self.earliest(slots_of(part)), True)


def _without(slots: Iterable[int], related: Sequence[int]) -> tuple[int, ...]:
    """Those of the slots, ascending, that are related to no other of them."""
    ordered = sorted(slots)
    if len(ordered) == 1:
        return tuple(ordered)
    mask = mask_of(ordered)
    return tuple([s for s in ordered if not related[s] & mask])


def mask_of(slots: Iterable[int]) -> int:
    """The slots as a mask."""
    mask = 0
    for slot in slots:
        mask |= 1 << slot
    return mask


def slots_in_mask(mask: int) -> Iterator[int]:
    """The slots of a mask, in ascending order."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def may_share(one: Slot, other: Slot) -> bool:
    """Whether one event could be bound to either."""
    return one.types is None or other.types is None or bool(one.types & other.types)
