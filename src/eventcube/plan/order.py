"""What the nesting of a region says about the order of its events, before any event is seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass

from eventcube.plan.logical import And, Leaf, Negation, Node, Or, Region, Seq, Slot, positive_parts, slots_of
from eventcube.plan.physical import Limit, Term


@dataclass(frozen=True, slots=True)
class Test:
    """A negated part and the interval in which it must have no match; `distinct` are events it may not use."""

    negation: Negation
    lower: Limit
    upper: Limit
    distinct: tuple[int, ...]


class Order:
    """Which slots of a region precede which, which may not share an event, and where its negated parts look."""

    def __init__(self, region: Region, slots: Sequence[Slot], *, outermost: bool) -> None:
        self.slots = slots
        self.all = slots_of(region.node)
        self.before: set[tuple[int, int]] = set()
        self._apart: set[tuple[int, int]] = set()
        self.tests: list[Test] = []
        self._relate(region.node)
        if outermost:
            lower = Limit(Term.WINDOW_START, self.latest(self.all), True)
            upper = Limit(Term.WINDOW_END, self.earliest(self.all), True)
        else:
            lower, upper = Limit(Term.REGION_START), Limit(Term.REGION_END)
        self.lower, self.upper = lower, upper
        self._place(region.node, lower, upper)

    def alone(self) -> Order:
        """The same for a part by itself: it has an interval, whatever gives it."""
        own = copy(self)
        own.lower, own.upper = Limit(Term.REGION_START), Limit(Term.REGION_END)
        return own

    def latest(self, slots: Iterable[int]) -> tuple[int, ...]:
        """Those of the slots that no other of them is known to follow."""
        slots = set(slots)
        return tuple(sorted(s for s in slots if not any((s, t) in self.before for t in slots)))

    def earliest(self, slots: Iterable[int]) -> tuple[int, ...]:
        """Those of the slots that no other of them is known to precede."""
        slots = set(slots)
        return tuple(sorted(s for s in slots if not any((t, s) in self.before for t in slots)))

    def distinct(self, slot: int, bound: Iterable[int]) -> tuple[int, ...]:
        """The bound slots whose event a candidate for the slot could be, and must not be."""
        return tuple(
            sorted(b for b in bound if (slot, b) in self._apart and may_share(self.slots[slot], self.slots[b]))
        )

    def _relate(self, node: Node) -> None:
        if isinstance(node, Leaf):
            return
        parts = node.parts if isinstance(node, Or) else positive_parts(node)
        for part in parts:
            self._relate(part)
        if isinstance(node, Or):
            return
        for i, first in enumerate(parts):
            for second in parts[i + 1 :]:
                pairs = {(x, y) for x in slots_of(first) for y in slots_of(second)}
                if isinstance(node, Seq):
                    self.before |= pairs
                else:
                    self._apart |= pairs | {(y, x) for x, y in pairs}

    def _place(self, node: Node, lower: Limit, upper: Limit) -> None:
        match node:
            case Leaf():
                return
            case Or():
                for alternative in node.parts:
                    self._place(alternative, lower, upper)
            case And(parts):
                own = slots_of(node)
                for part in parts:
                    if isinstance(part, Negation):
                        inside = Limit(Term.AFTER_FIRST, self.earliest(own), True)
                        until = Limit(Term.BEFORE_LAST, self.latest(own), True)
                        self.tests.append(Test(part, inside, until, tuple(sorted(own))))
                    else:
                        self._place(part, lower, upper)
            case Seq(parts):
                for i, part in enumerate(parts):
                    previous = [p for p in parts[:i] if not isinstance(p, Negation)]
                    following = [p for p in parts[i + 1 :] if not isinstance(p, Negation)]
                    left = Limit(Term.AFTER_LAST, self.latest(slots_of(previous[-1])), True) if previous else lower
                    right = (
                        Limit(Term.BEFORE_FIRST, self.earliest(slots_of(following[0])), True) if following else upper
                    )
                    if isinstance(part, Negation):
                        self.tests.append(Test(part, left, right, ()))
                    else:
                        self._place(part, left, right)


def may_share(one: Slot, other: Slot) -> bool:
    """Whether one event could be bound to either."""
    return one.types is None or other.types is None or bool(one.types & other.types)
