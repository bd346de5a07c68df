"""How many events the stacks of a workload have, in all and in a window, counted once for all that is estimated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Protocol

import numpy as np

from eventcube.optimizer.statistics import Events, Ints, Statistics
from eventcube.plan.expressions import Expression
from eventcube.plan.steps import State
from eventcube.plan.workload import Arrangement, StackKey

_DUE = frozenset({State.DUE})


class Stacked(Protocol):
    """A query that sees events on stacks, one for each of its slots."""

    @property
    def stacks(self) -> tuple[int, ...]:
        """The stack of each slot."""

    @property
    def arrangement(self) -> Arrangement:
        """How it sees the events."""

    @property
    def triggers(self) -> tuple[int, ...]:
        """The slots among which is the event that makes a match due."""


class StackStatistics:
    """Counts of the stacks of some queries, which sort the events alike."""

    def __init__(self, queries: Mapping[str, Stacked], events: Callable[[str], Events]) -> None:
        self._events_of = events
        self._events: dict[str, Events] = {}
        # A query and a slot of it for each stack.
        self._places = {stack: (name, slot) for name, q in queries.items() for slot, stack in enumerate(q.stacks)}
        self._queries = {query.arrangement: name for name, query in queries.items()}
        self._counts: dict[tuple[StackKey, frozenset[State] | None], float] = {}
        self._windows: dict[tuple[Arrangement, tuple[StackKey, ...]], Ints] = {}
        self._inside: dict[tuple[Arrangement, tuple[StackKey, ...]], dict[StackKey, float]] = {}

    @cached_property
    def size(self) -> int:
        """How many events there are."""
        return self.events(next(iter(self._queries.values()))).size

    def events(self, name: str) -> Events:
        """The events as a query sees them."""
        if name not in self._events:
            self._events[name] = self._events_of(name)
        return self._events[name]

    def _rows(self, stack: int, states: frozenset[State] | None = None) -> Ints:
        name, slot = self._places[stack]
        return self.events(name).rows(slot, states)

    def count(self, stack: StackKey, states: frozenset[State] | None = None) -> float:
        """How many events a stack has; one without others has its own less those of the others."""
        key = stack, states
        if key not in self._counts:
            if isinstance(stack, int):
                self._counts[key] = float(len(self._rows(stack, states)))
            else:
                self._counts[key] = _without(self.count(one, states) for one in stack)
        return self._counts[key]

    def inside(self, arrangement: Arrangement, triggers: tuple[StackKey, ...]) -> dict[StackKey, float]:
        """How many events of each stack lie in a window of a due event of some stacks, as far as it is known."""
        return self._inside.setdefault((arrangement, triggers), {})

    def in_window(self, arrangement: Arrangement, triggers: tuple[StackKey, ...], stack: StackKey) -> float:
        """How many events of a stack lie in a window of an event of other stacks that is due, on average."""
        inside = self.inside(arrangement, triggers)
        if stack not in inside:
            if isinstance(stack, int):
                bounds = self._bounds(arrangement, triggers)
                places = self._rows(stack).searchsorted(bounds)
                half = len(bounds) // 2
                inside[stack] = float((places[half:] - places[:half]).mean()) if half else 0.0
            else:
                inside[stack] = _without(self.in_window(arrangement, triggers, one) for one in stack)
        return inside[stack]

    def _bounds(self, arrangement: Arrangement, triggers: tuple[StackKey, ...]) -> Ints:
        """Where a sample of windows begins, then where they end."""
        key = arrangement, triggers
        if key not in self._windows:
            due = [self._rows(stack if isinstance(stack, int) else stack[0], _DUE) for stack in triggers]
            rows = due[0] if len(due) == 1 else np.unique(np.concatenate(due))
            statistics = Statistics(self.events(self._queries[arrangement]))
            self._windows[key] = np.concatenate(statistics.windows(rows, forward=arrangement.forward))
        return self._windows[key]


def _without(counts: Iterator[float]) -> float:
    """The first number less all others, which are parts of it."""
    return max(0.0, next(counts) - sum(counts))


class StackSlots:
    """The slots of a query, or of a delta with other stacks."""

    __slots__ = ("_arrangement", "_events", "_inside", "_stacks", "_statistics", "_triggers", "new", "size")

    def __init__(
        self,
        statistics: StackStatistics,
        query: Stacked,
        events: Callable[[], Events],
        stacks: tuple[StackKey, ...] | None = None,
    ) -> None:
        self._statistics, self._arrangement, self._events = statistics, query.arrangement, events
        self._stacks: tuple[StackKey, ...] = stacks or query.stacks
        self._triggers = tuple(self._stacks[slot] for slot in query.triggers)
        due = sum(statistics.count(stack, _DUE) for stack in self._triggers)
        self._inside = statistics.inside(query.arrangement, self._triggers)
        self.size = statistics.size
        self.new = due / max(1.0, sum(map(statistics.count, self._triggers)))

    def count(self, slot: int, states: frozenset[State] | None = None) -> float:
        """How many events a slot takes."""
        return self._statistics.count(self._stacks[slot], states)

    def in_window(self, slot: int) -> float:
        """How many events of a slot lie in a window, on average."""
        stack = self._stacks[slot]
        known = self._inside.get(stack)
        return self._statistics.in_window(self._arrangement, self._triggers, stack) if known is None else known

    def distinct(self, slot: int, expression: Expression) -> float:
        """How many different values the events of a slot have."""
        return Statistics(self._events()).distinct(slot, expression)
