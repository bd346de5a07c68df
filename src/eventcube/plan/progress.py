"""The progress of building a program, and the state that its events must have."""

from __future__ import annotations

from dataclasses import dataclass, replace

from eventcube.plan.logical import Predicate
from eventcube.plan.order import PlacedNegation
from eventcube.plan.steps import State


@dataclass(frozen=True, slots=True)
class Due:
    """The required state of a part's first event (forward) or last event (backward); or it is the anchor."""

    forward: bool
    states: frozenset[State]
    anchored: bool = False

    @property
    def by_one(self) -> bool:
        """Whether one part of an AND must hold the due event, or the anchor."""
        return self.anchored or self.states == {State.DUE}

    def of_parts(self, chosen: int, count: int) -> list[Due | None]:
        """The required states of the parts of an AND if the chosen one is the first that is due."""
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
    """Progress of a program: slots bound, those of them that may be absent, alternatives taken, tests pending."""

    bound: frozenset[int]
    optional: frozenset[int]
    inside: frozenset[int]
    pending: tuple[Predicate | PlacedNegation, ...]


NOTHING_BOUND = Progress(frozenset(), frozenset(), frozenset(), ())
