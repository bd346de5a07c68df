"""Events as columns, sorted so that every interval a query asks for is a range of rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from eventcube.engine.columns import Columns, codes_of
from eventcube.engine.kernels import Bools, Ints, group, links, read_only, seek, window_ends, window_starts
from eventcube.engine.rows import Rows
from eventcube.plan.dictionary import Dictionary
from eventcube.plan.steps import State

UNBOUNDED = 2**62


class Stack:
    """The rows of one component's events, ascending (the papers' active instance stack)."""

    def __init__(self, rows: Ints, size: int) -> None:
        self.rows = rows
        self._size = size

    def positions(self, rows: Ints) -> Ints:
        """For each row, the position in the stack of the first event that is not before it."""
        if len(rows) < self._size // 32:
            return seek(self.rows, rows)
        return self._links[rows]

    @cached_property
    def _links(self) -> Ints:
        """The position for every row of the store: the papers' links, from any other stack."""
        return links(self.rows, self._size)


class Store:
    """The events of one evaluation, sorted by (key, order in time); a row is a position in that order.

    Rows of one key are a segment. Windows and intervals never leave a segment, so all keys are handled together.
    """

    # Whether rows leave only at the front and sequence numbers have no gaps; the same for all stores of a runtime.
    gapless: bool = True

    def __init__(
        self, events: Rows, key: Sequence[str], dictionary: Dictionary, width: int | None, by_count: bool
    ) -> None:
        self.size = len(events)
        self.width = UNBOUNDED if width is None else width
        self.order: Ints | None = None
        starts = np.array([0, self.size], np.int64)
        if key:
            codes, groups = codes_of([events.payload.column(k) for k in key], nulls_match=True)
            self.order, starts = group(codes, groups)
            starts = np.unique(starts)
        self._starts = starts if self.size else np.zeros(1, np.int64)
        self.events = events
        self.columns = Columns(events.payload, dictionary, self.order)
        self._by_count = by_count
        self._stacks: dict[tuple[int, frozenset[State] | None], Stack] = {}
        self._state: Ints | None = None

    def _sorted(self, values: Ints) -> Ints:
        return values if self.order is None else values[self.order]

    @cached_property
    def ts(self) -> Ints:
        """The time of each row."""
        return self._sorted(self.events.ts)

    @cached_property
    def seq(self) -> Ints:
        """The sequence number of each row's event, the same in every store; ascends in a segment."""
        return self._sorted(self.events.seq)

    @cached_property
    def segment_starts(self) -> Ints:
        """For each row the first row with its key."""
        return np.repeat(self._starts[:-1], np.diff(self._starts))

    def rows_of(self, seq: Ints) -> Ints:
        """The rows of events by sequence number, -1 for those that are no longer retained."""
        at = np.minimum(np.searchsorted(self.events.seq, seq), max(self.size - 1, 0))
        found = self.events.seq[at] == seq if self.size else np.zeros(len(seq), np.bool_)
        return np.where(found, at if self.order is None else self._row_of_event[at], -1)

    @cached_property
    def _row_of_event(self) -> Ints:
        """The row of each event in order of time."""
        places = np.empty(self.size, np.int64)
        places[self.order] = np.arange(self.size)
        return places

    def has_state(self, rows: Ints, states: frozenset[State]) -> Bools:
        """Where the rows' events are done, due or future."""
        if self._state is None:
            return np.full(len(rows), State.DUE in states)
        wanted = np.zeros(len(State), np.bool_)
        wanted[[s.value for s in states]] = True
        return wanted[self._state[rows]]

    @cached_property
    def metric(self) -> Ints:
        """The measure of the window: time, or the position in the stream."""
        return self._sorted(self.events.pos) if self._by_count else self.ts

    @cached_property
    def ties(self) -> tuple[Ints, Ints] | None:
        """For each row the first row of equal rank and the row after the last; None if no two ranks are equal."""
        if not (np.diff(self.events.rank) == 0).any():
            return None
        change = np.flatnonzero(np.diff(self._sorted(self.events.rank)) != 0) + 1
        begins = np.unique(np.concatenate([[0], change, self._starts[1:-1]])).astype(np.int64)
        lengths = np.diff(np.append(begins, self.size))
        return np.repeat(begins, lengths), np.repeat(begins + lengths, lengths)

    @cached_property
    def window_starts(self) -> Ints:
        """For each row the first row that a window ending there can hold."""
        return window_starts(read_only(self.metric), self._starts, self.width)

    @cached_property
    def window_ends(self) -> Ints:
        """For each row the row after the last that a window beginning there can hold."""
        return window_ends(read_only(self.metric), self._starts, self.width)

    def before(self, rows: Ints) -> Ints:
        """The end of the range of rows strictly before each row."""
        return rows if self.ties is None else self.ties[0][rows]

    def after(self, rows: Ints) -> Ints:
        """The start of the range of rows strictly after each row."""
        return rows + 1 if self.ties is None else self.ties[1][rows]

    def stack(self, slot: int, states: frozenset[State] | None = None) -> Stack:
        """The events that can be bound to a slot, optionally only those that are done, due or future."""
        if (slot, states) not in self._stacks:
            rows = np.flatnonzero(self._sorted(self.events.member[slot]))
            if states is not None:
                rows = rows[self.has_state(rows, states)]
            self._stacks[slot, states] = Stack(rows, self.size)
        return self._stacks[slot, states]

    def set_states(self, states: Ints) -> None:
        """Set which events are done, due and future, in order of time; by default all are due."""
        self._state = self._sorted(states)
