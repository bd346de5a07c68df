"""Events as columns, sorted so that every interval a query asks for is a range of rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from eventcube.engine.columns import Columns, codes_of
from eventcube.engine.kernels import Array, Bools, Ints, Links, count_between, linked, links, read_only, seek, seek_in
from eventcube.engine.order_kernels import group_by_code, ties, window_ends, window_starts
from eventcube.engine.rows import Rows
from eventcube.plan.dictionary import Dictionary
from eventcube.plan.steps import State
from eventcube.plan.workload import StackKey

UNBOUNDED = 2**62


class Stack:
    """The rows of one component's events, ascending (the papers' active instance stack)."""

    __slots__ = ("_links", "_member", "_size", "_sought", "rows")

    def __init__(self, rows: Ints, size: int) -> None:
        self.rows = rows
        self._size = size
        self._sought = 0
        self._links: Links | None = None
        self._member: Bools | None = None

    def positions(self, rows: Ints) -> Ints:
        """For each row, the position in the stack of the first event that is not before it."""
        found = self._linked(len(rows))
        return seek(self.rows, rows) if found is None else linked(found, rows)

    def count_between(self, lower: Ints, upper: Ints) -> int:
        """How many events there are from each lower row to before the upper one, in all."""
        found = self._linked(len(lower))
        if found is None:
            return int(np.maximum(seek(self.rows, upper) - seek(self.rows, lower), 0).sum())
        return count_between(found, lower, upper)

    def _linked(self, sought: int) -> Links | None:
        """The position for every row of the store: the papers' links, from any other stack; None for a few in all."""
        if self._links is None:
            self._sought += sought
            if self._sought >= self._size // 32:
                self._links = links(self.rows, self._size)
        return self._links

    def has(self, rows: Ints) -> Bools:
        """For each row whether it is in the stack; a row of -1, of a slot that is not taken, counts as one."""
        if self._member is None:
            self._member = np.zeros(self._size + 1, np.bool_)
            self._member[self.rows] = self._member[-1] = True
        return self._member[rows]


class States:
    """Which events are done, due and future: cuts in order of time, or where those do not suffice a state for each."""

    __slots__ = ("done", "due", "each", "stacks")

    def __init__(self, done: int, due: int, each: Array | None = None) -> None:
        # Events before `done` are done, those from there to before `due` are due.
        self.done, self.due, self.each = done, max(done, due), each
        # The events of stacks with some states, for all queries that see the events alike.
        self.stacks: dict[tuple[StackKey, frozenset[State]], Stack] = {}

    def copy(self) -> States:
        """The same states for other stacks."""
        return States(self.done, self.due, self.each)

    def of_each(self, size: int) -> Array:
        """The state of each event, in order of time."""
        if self.each is None:
            states = np.full(size, State.FUTURE.value, np.int8)
            states[: self.due] = State.DUE.value
            states[: self.done] = State.DONE.value
            return states
        return self.each

    def count_due(self) -> int:
        """How many events are due."""
        return self.due - self.done if self.each is None else int(np.count_nonzero(self.each == State.DUE.value))

    @property
    def are_cuts(self) -> bool:
        """Whether states follow from the order of time."""
        return self.each is None

    def range_of(self, states: frozenset[State], size: int) -> tuple[int, int]:
        """The events with these states, which follow each other, where states are cuts."""
        bounds = {State.DONE: (0, self.done), State.DUE: (self.done, self.due), State.FUTURE: (self.due, size)}
        return min(bounds[s][0] for s in states), max(bounds[s][1] for s in states)


class SortedRows:
    """The events of one evaluation sorted by (key, order in time), shared by all queries that sort them so.

    A row is a position in that order. Rows of one key are a segment. Windows and intervals never leave a segment, so
    all keys are handled together. If no stack has lost an event, a stack that is part of another one still is.
    """

    def __init__(self, events: Rows, key: Sequence[str], dictionary: Dictionary, *, have_lost: bool = True) -> None:
        self.size, self._have_lost = len(events), have_lost
        self.order: Ints | None = None
        starts = np.array([0, self.size], np.int64)
        if key:
            codes, groups = codes_of([events.payload.column(k) for k in key], nulls_match=True)
            self.order, starts = group_by_code(codes, groups)
        self.starts = starts if self.size else np.zeros(1, np.int64)
        self.events = events
        self.columns = Columns(events.payload, dictionary, self.order)
        self._stacks: dict[StackKey, Stack] = {}
        self._windows: dict[tuple[int | None, int, bool], Ints] = {}

    def in_order(self, values: Array) -> Array:
        """Values of events in the order of rows."""
        return values if self.order is None else values[self.order]

    @cached_property
    def ts(self) -> Ints:
        """The time of each row."""
        return self.in_order(self.events.ts)

    @cached_property
    def seq(self) -> Ints:
        """The sequence number of each row's event, the same in every store; ascends in a segment."""
        return self.in_order(self.events.seq)

    @cached_property
    def segment_starts(self) -> Ints:
        """For each row the first row with its key."""
        return np.repeat(self.starts[:-1], np.diff(self.starts))

    @cached_property
    def row_of_event(self) -> Ints:
        """The row of each event in order of time."""
        places = np.empty(self.size, np.int64)
        places[self.order] = np.arange(self.size)
        return places

    @cached_property
    def ties(self) -> tuple[Ints, Ints] | None:
        """For each row the first row of equal rank and the row after the last, with its key; None if none are equal."""
        rank = self.ts if self.events.rank is self.events.ts else self.in_order(self.events.rank)
        begins, ends = ties(read_only(rank), self.starts)
        return (begins, ends) if len(begins) else None

    def stack(self, key: StackKey) -> Stack:
        """The events of a stack, or those of one that are in none of some others."""
        if key not in self._stacks:
            if isinstance(key, int):
                rows = self._in_rows(self.events.stacks[key])
            else:
                rows, *others = (self.stack(one).rows for one in key)
                if not self._have_lost and len(rows) == sum(map(len, others)):
                    # The others are parts of it that have no event in common.
                    rows = rows[:0]
                for other in key[1:] if len(rows) else ():
                    rows = rows[~self.stack(other).has(rows)]
            self._stacks[key] = Stack(rows, self.size)
        return self._stacks[key]

    def _in_rows(self, events: Ints) -> Ints:
        """The rows of events, ascending."""
        if self.order is None:
            return events
        if len(events) < self.size // 32:
            return np.sort(self.row_of_event[events])
        stacked = np.zeros(self.size, np.bool_)
        stacked[events] = True
        return np.flatnonzero(stacked[self.order])

    def windows(self, positions: int | None, width: int, *, ends: bool) -> Ints:
        """For each row the first row that a window ending there can hold, or the row after the last of one beginning.

        The window is measured in time, or in positions of the partitioning with that number.
        """
        key = (positions, width, ends)
        if key not in self._windows:
            metric = self.ts if positions is None else self.in_order(self.events.positions[positions])
            self._windows[key] = (window_ends if ends else window_starts)(read_only(metric), self.starts, width)
        return self._windows[key]

    def windows_at(self, rows: Ints, positions: int | None, width: int, *, ends: bool) -> Ints:
        """The same for some rows; for a few, those of all rows need not be found."""
        if (positions, width, ends) in self._windows or len(rows) >= self.size // 32:
            return self.windows(positions, width, ends=ends)[rows]
        metric = self.ts if positions is None else self.in_order(self.events.positions[positions])
        segments = self.starts.searchsorted(rows, side="right") - 1
        return seek_in(read_only(metric), self.starts, segments, metric[rows] + (width + 1 if ends else -width))


class Store:
    """The events of one evaluation as a query sees them: its stacks, its window, and what is due."""

    def __init__(
        self,
        rows: SortedRows,
        stacks: Sequence[StackKey],
        states: States,
        positions: int | None,
        width: int | None,
        *,
        gapless: bool = True,
    ) -> None:
        self.sorted = rows
        self.size, self.order, self.events, self.columns = rows.size, rows.order, rows.events, rows.columns
        self._numbers, self._states = stacks, states
        self._positions, self._width = positions, UNBOUNDED if width is None else width
        # What tells its windows from those of other stores of the same rows.
        self.window = self._positions, self._width
        # Whether rows leave only at the front, and sequence numbers have no gaps, for as long as the run goes on.
        self.gapless = gapless
        self._each: Array | None = None

    @property
    def counts_events(self) -> bool:
        """Whether the window is one of events."""
        return self._positions is not None

    @property
    def cuts(self) -> bool:
        """Whether a window can begin between events of equal rank."""
        return self.counts_events and self.ties is not None

    @property
    def width(self) -> int:
        """How far the first and the last event of a match can be from each other, as windows measure it."""
        return self._width

    def measure(self, rows: Ints) -> Ints:
        """What windows are measured in: the times of rows, or their positions."""
        metric = self.events.ts if self._positions is None else self.events.positions[self._positions]
        return metric[rows if self.order is None else self.order[rows]]

    @property
    def longest(self) -> float:
        """How far apart the times of a match can be, in microseconds."""
        return float(UNBOUNDED if self.counts_events else self._width)

    @property
    def ts(self) -> Ints:
        """The time of each row."""
        return self.sorted.ts

    @property
    def seq(self) -> Ints:
        """The sequence number of each row's event, the same in every store; ascends in a segment."""
        return self.sorted.seq

    @property
    def segment_starts(self) -> Ints:
        """For each row the first row with its key."""
        return self.sorted.segment_starts

    def rows_of(self, seq: Ints) -> Ints:
        """The rows of events by sequence number, -1 for those that are no longer retained."""
        at = np.minimum(np.searchsorted(self.events.seq, seq), max(self.size - 1, 0))
        found = self.events.seq[at] == seq if self.size else np.zeros(len(seq), np.bool_)
        return np.where(found, at if self.order is None else self.sorted.row_of_event[at], -1)

    def all_have(self, states: frozenset[State]) -> bool:
        """Whether all events are known to have one of these states."""
        return self._states.are_cuts and self._states.range_of(states, self.size) == (0, self.size)

    def has_state(self, rows: Ints, states: frozenset[State]) -> Bools:
        """Where the rows' events are done, due or future."""
        if self._states.are_cuts:
            lo, hi = self._states.range_of(states, self.size)
            places = rows if self.order is None else self.order[rows]
            return (places >= lo) & (places < hi)
        if self._each is None:
            self._each = self.sorted.in_order(self._states.of_each(self.size))
        wanted = np.zeros(len(State), np.bool_)
        wanted[[s.value for s in states]] = True
        return wanted[self._each[rows]]

    @property
    def ties(self) -> tuple[Ints, Ints] | None:
        """For each row the first row of equal rank and the row after the last, with its key; None if none are equal."""
        return self.sorted.ties

    @property
    def window_starts(self) -> Ints:
        """For each row the first row that a window ending there can hold."""
        return self.sorted.windows(self._positions, self._width, ends=False)

    @property
    def window_ends(self) -> Ints:
        """For each row the row after the last that a window beginning there can hold."""
        return self.sorted.windows(self._positions, self._width, ends=True)

    def windows_at(self, rows: Ints, *, ends: bool) -> Ints:
        """The window starts, or ends, of some rows."""
        return self.sorted.windows_at(rows, self._positions, self._width, ends=ends)

    def before(self, rows: Ints) -> Ints:
        """The end of the range of rows strictly before each row."""
        ties = self.sorted.ties
        return rows if ties is None else ties[0][rows]

    def after(self, rows: Ints) -> Ints:
        """The start of the range of rows strictly after each row."""
        ties = self.sorted.ties
        return rows + 1 if ties is None else ties[1][rows]

    def stack(self, slot: int, states: frozenset[State] | None = None) -> Stack:
        """The events that can be bound to a slot, optionally only those that are done, due or future."""
        stack = self.sorted.stack(self._numbers[slot])
        if states is None:
            return stack
        known, key = self._states.stacks, (self._numbers[slot], states)
        if key not in known:
            rows = self._rows_with(stack.rows, states)
            known[key] = stack if len(rows) == len(stack.rows) else Stack(rows, self.size)
        return known[key]

    def _rows_with(self, rows: Ints, states: frozenset[State]) -> Ints:
        if self.order is not None or not self._states.are_cuts:
            return rows[self.has_state(rows, states)]
        lo, hi = self._states.range_of(states, self.size)
        return rows[rows.searchsorted(lo) : rows.searchsorted(hi)]
