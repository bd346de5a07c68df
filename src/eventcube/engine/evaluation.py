"""One evaluation: the events at hand, sorted once for all queries that sort them alike, and what is due."""

from __future__ import annotations

import numpy as np

from eventcube.engine.rows import Rows
from eventcube.engine.state import State
from eventcube.engine.store import SortedRows, States, Store
from eventcube.plan.steps import State as EventState
from eventcube.plan.workload import Arrangement, StackKey, WorkloadQuery


class Evaluation:
    """The retained events and new ones, from the place `fresh` on; without a watermark the input has ended."""

    def __init__(self, state: State, fresh: int, watermark: int | None) -> None:
        self._state, self._fresh, self._watermark = state, fresh, watermark
        self.rows = state.rows
        self._sorted: dict[tuple[str, ...], SortedRows] = {}

    @property
    def first_sequence(self) -> int:
        """A number that no retained event is below."""
        return self._state.first_sequence

    def can_derive(self, query: WorkloadQuery, source: WorkloadQuery) -> bool:
        """Whether all events are there for a query to be computed from matches of another, which were due before."""
        return self._state.can_derive(query, source)

    def store(self, arrangement: Arrangement, stacks: tuple[StackKey, ...], states: States) -> Store:
        """The events as a query sees them, whose slots have these stacks."""
        key = arrangement.sort_key
        if key not in self._sorted:
            lost, dictionary = bool(self._state.has_lost.any()), self._state.plan.dictionary
            self._sorted[key] = SortedRows(self.rows, key, dictionary, have_lost=lost)
        return self._store(self._sorted[key], arrangement, stacks, states)

    def piece(self, rows: Rows, arrangement: Arrangement, stacks: tuple[int, ...], states: States) -> Store:
        """A piece of the events as a query sees it."""
        sorted_rows = SortedRows(rows, arrangement.sort_key, self._state.plan.dictionary)
        return self._store(sorted_rows, arrangement, stacks, states)

    def _store(self, rows: SortedRows, arrangement: Arrangement, stacks: tuple[StackKey, ...], states: States) -> Store:
        gapless = self._state.gapless
        return Store(rows, stacks, states, arrangement.positions, arrangement.width, gapless=gapless)

    def states(self, arrangement: Arrangement) -> States:
        """Which events are done, due and future."""
        rows = self.rows
        states = self._states_in_time(arrangement) if arrangement.positions is None or not arrangement.forward else None
        if states is None:
            assert arrangement.positions is not None
            return self._states_by_count(arrangement.positions, arrangement.width)
        if rows.halo is None:
            return states
        # Another slice reports the matches of events that are borrowed from it.
        each = states.of_each(len(rows))
        if arrangement.forward:
            each[(rows.halo > 0) & (each == EventState.DUE.value)] = EventState.FUTURE.value
        each[rows.halo < 0] = EventState.DONE.value
        return States(0, 0, each)

    def _states_in_time(self, arrangement: Arrangement) -> States:
        """States that follow from the order of time."""
        rows, width = self.rows, arrangement.width
        if not arrangement.forward:
            return States(self._fresh, len(rows))
        done = 0 if width is None else int(rows.ts.searchsorted(self._state.watermark - width))
        if self._watermark is None:
            return States(done, len(rows))
        return States(done, 0 if width is None else int(rows.ts.searchsorted(self._watermark - width)))

    def _states_by_count(self, number: int, width: int | None) -> States:
        """States for a window of events, which closes once its partition has had enough of them."""
        rows, positions = self.rows, self._state.positions[number]
        assert width is not None
        places = rows.positions[number]
        if not positions.partition_by:
            done = int(places.searchsorted(positions.before[0] - width))
            due = len(rows) if self._watermark is None else int(places.searchsorted(positions.total - width))
            return States(done, due)
        done_each = places + width < positions.totals_of(rows.payload, before=True)
        closed = np.ones(len(rows), np.bool_)
        if self._watermark is not None:
            closed = places + width < positions.totals_of(rows.payload)
        done_or_due = np.where(done_each, EventState.DONE.value, EventState.DUE.value)
        return States(0, 0, np.where(done_each | closed, done_or_due, EventState.FUTURE.value).astype(np.int8))

    def is_due(self, number: int, states: States) -> bool:
        """Whether an event of a stack is due."""
        stack = self.rows.stacks[number]
        if not len(stack):
            return False
        if states.each is not None:
            return bool((states.each[stack] == EventState.DUE.value).any())
        if states.due == len(self.rows):
            return bool(stack[-1] >= states.done)
        return bool(stack.searchsorted(states.done) < stack.searchsorted(states.due))
