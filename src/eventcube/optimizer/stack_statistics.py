"""How many events the stacks of a workload have, in all and in a window, counted once for all that is estimated."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eventcube.optimizer.statistics import Events, Ints, Statistics
from eventcube.optimizer.workings import Workings
from eventcube.plan.expressions import Expression
from eventcube.plan.steps import State
from eventcube.plan.workload import Arrangement, StackKey, WorkloadQuery

_DUE = frozenset({State.DUE})


class StackStatistics:
    """Counts of the stacks of some queries, which sort the events alike."""

    def __init__(self, queries: Mapping[str, WorkloadQuery], workings: Workings) -> None:
        self._workings = workings
        self._events: dict[str, Events] = {}
        # A query and a slot of it for each stack.
        self._places = {stack: (name, slot) for name, q in queries.items() for slot, stack in enumerate(q.stacks)}
        self._queries = {query.arrangement: name for name, query in queries.items()}
        self._counts: dict[tuple[StackKey, frozenset[State] | None], float] = {}
        self._windows: dict[tuple[Arrangement, tuple[StackKey, ...]], Ints] = {}
        self._inside: dict[tuple[Arrangement, tuple[StackKey, ...], StackKey], float] = {}

    def events(self, name: str) -> Events:
        """The events as a query sees them."""
        if name not in self._events:
            self._events[name] = self._workings.events(name)
        return self._events[name]

    def _rows(self, stack: int, states: frozenset[State] | None = None) -> Ints:
        name, slot = self._places[stack]
        return self.events(name).rows(slot, states)

    def count(self, stack: StackKey, states: frozenset[State] | None = None) -> float:
        """How many events a stack has; one without another has those of the one less those of the other."""
        key = stack, states
        if key not in self._counts:
            if isinstance(stack, int):
                self._counts[key] = float(len(self._rows(stack, states)))
            else:
                self._counts[key] = max(0.0, self.count(stack[0], states) - self.count(stack[1], states))
        return self._counts[key]

    def in_window(self, arrangement: Arrangement, triggers: tuple[StackKey, ...], stack: StackKey) -> float:
        """How many events of a stack lie in a window of an event of other stacks that is due, on average."""
        key = arrangement, triggers, stack
        if key not in self._inside:
            if isinstance(stack, int):
                bounds = self._bounds(arrangement, triggers)
                places = self._rows(stack).searchsorted(bounds)
                half = len(bounds) // 2
                self._inside[key] = float((places[half:] - places[:half]).mean()) if half else 0.0
            else:
                both = (self.in_window(arrangement, triggers, one) for one in stack)
                self._inside[key] = max(0.0, next(both) - next(both))
        return self._inside[key]

    def _bounds(self, arrangement: Arrangement, triggers: tuple[StackKey, ...]) -> Ints:
        """Where a sample of windows begins, then where they end."""
        key = arrangement, triggers
        if key not in self._windows:
            due = [self._rows(stack if isinstance(stack, int) else stack[0], _DUE) for stack in triggers]
            rows = due[0] if len(due) == 1 else np.unique(np.concatenate(due))
            statistics = Statistics(self.events(self._queries[arrangement]))
            self._windows[key] = np.concatenate(statistics.windows(rows, forward=arrangement.forward))
        return self._windows[key]


class StackSlots:
    """The slots of a query, or of a delta with other stacks."""

    __slots__ = ("_name", "_query", "_stacks", "_statistics", "_triggers", "_workings", "new")

    def __init__(
        self,
        statistics: StackStatistics,
        workings: Workings,
        name: str,
        query: WorkloadQuery,
        stacks: tuple[StackKey, ...],
    ) -> None:
        self._statistics, self._workings, self._name, self._query = statistics, workings, name, query
        self._stacks = stacks
        self._triggers = tuple(stacks[slot] for slot in query.triggers)
        due = sum(statistics.count(stack, _DUE) for stack in self._triggers)
        self.new = due / max(1.0, sum(map(statistics.count, self._triggers)))

    def count(self, slot: int, states: frozenset[State] | None = None) -> float:
        """How many events a slot takes."""
        return self._statistics.count(self._stacks[slot], states)

    def in_window(self, slot: int) -> float:
        """How many events of a slot lie in a window, on average."""
        return self._statistics.in_window(self._query.arrangement, self._triggers, self._stacks[slot])

    def distinct(self, slot: int, expression: Expression) -> float:
        """How many different values the events of a slot have."""
        own = self._stacks == self._query.stacks
        events = self._statistics.events(self._name) if own else self._workings.events(self._name, self._stacks)
        return Statistics(events).distinct(slot, expression)
