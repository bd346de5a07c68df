"""How far the making of a program is, and what makes a part of it due."""

from __future__ import annotations

from dataclasses import dataclass, replace

from eventcube.plan.logical import Predicate
from eventcube.plan.order import PlacedNegation
from eventcube.plan.steps import State


@dataclass(frozen=True, slots=True)
class Due:
    """What a part's first event (forward) or last event (backward) must be: done, due, future, or the anchor."""

    forward: bool
    states: frozenset[State]
    anchored: bool = False

    @property
    def by_one(self) -> bool:
        """Whether some part of an AND must be the one that makes the whole due."""
        return self.anchored or self.states == {State.DUE}

    def of_parts(self, chosen: int, count: int) -> list[Due | None]:
        """What follows for the parts of an AND if the chosen one is the first of them to be due."""
        done, due, future = State.DONE, State.DUE, State.FUTURE
        if self.anchored:
            # All other events lie before the anchor.
            return [self if i == chosen else None for i in range(count)]
        if self.states != {due}:
            return [self] * count
        earlier, later = ({future}, {due, future}) if self.forward else ({done}, None)
        rest = None if later is None else replace(self, states=frozenset(later))
        return [
            replace(self, states=frozenset(earlier)) if i < chosen else self if i == chosen else rest
            for i in range(count)
        ]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a program is: what is bound, what of that may be absent, the alternatives taken, the tests to do."""

    bound: frozenset[int]
    optional: frozenset[int]
    inside: frozenset[int]
    pending: tuple[Predicate | PlacedNegation, ...]


NOTHING = Progress(frozenset(), frozenset(), frozenset(), ())
