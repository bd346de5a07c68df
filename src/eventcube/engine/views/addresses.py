"""Addresses of events: their rows in a store, such that they mostly stay the same from one store to the next.

An address is a row shifted by the number of events before the store. Where a key sorts the store, rows leave it in the
middle, or an equality splits the view into groups, addresses are computed for each store, and what is kept by address
moves along.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from eventcube.engine.columns import Column
from eventcube.engine.expressions import place_among, valid_mask
from eventcube.engine.intervals import block_of
from eventcube.engine.kernels import Array, Bools, Ints
from eventcube.engine.table import ANCHOR, Table
from eventcube.engine.views.result_store import QueryIntervals
from eventcube.engine.views.strategy import Executor
from eventcube.plan.steps import StandalonePart


class RowAddresses:
    """The addresses of events and intervals in one store, for one nested part."""

    def __init__(self, inner: StandalonePart, executor: Executor) -> None:
        self.store = executor.store
        self.inner, self.executor = inner, executor
        self.plain = self.store.gapless and self.store.order is None and inner.key is None
        self.shift = int(self.store.events.seq[0]) if self.plain and self.store.size else 0
        # The values, in order, of the correlation key that splits the results into groups.
        self.values: Array = np.zeros(0, np.int64)
        if inner.key is not None:
            known = executor.value_of(inner.key.inner, self.store.stack(inner.key.slot).rows)
            self.values = np.unique(known.values[valid_mask(known)])

    @property
    def groups(self) -> int:
        """How many groups the correlation key splits the results into."""
        return max(1, len(self.values))

    def offset(self, column: Column) -> Ints:
        """The address at which the group of each value begins; below 0 for a value that no event of the part has."""
        return place_among(self.values, column) * (self.store.size + 1)

    def of_intervals(self, table: Table, lo: Ints, hi: Ints) -> QueryIntervals:
        """The intervals of outer rows."""
        hi = np.maximum(lo, hi)
        if self.inner.key is None:
            return QueryIntervals(lo + self.shift, hi + self.shift)
        offset = self.offset(self.executor.value(self.inner.key.outer, table))
        return QueryIntervals(lo + offset, np.where(offset < 0, lo, hi) + offset)

    def of_results(self, table: Table) -> tuple[Ints, Ints]:
        """The addresses of the first and the last events of results."""
        slots, offset = self.inner.slots, self._offsets(table)
        return table.first(slots, optional=True) + offset, table.last(slots) + offset

    def block(self, table: Table, since: Ints) -> Ints:
        """Those results that the view does not have: their events, then their addresses."""
        rows = table.only(self.inner.slots).data
        return block_of(rows, table[ANCHOR], self._offsets(table), since, self.store.seq, self.shift)

    def _offsets(self, table: Table) -> Ints:
        """The difference between the addresses of each result and its rows; below 0 if its key is null."""
        if self.inner.key is None:
            return np.full(len(table), self.shift, np.int64)
        return self.offset(self.executor.value(self.inner.key.inner, table))

    def of_anchors(self, rows: Ints) -> Ints:
        """The addresses of events that may be the last of a result; below 0 for one that is of no group."""
        key = self.inner.key
        if key is None or key.end is None:
            return rows + self.shift
        return rows + self.offset(self.executor.value_of(key.end, rows))

    def rows(self, addresses: Ints) -> Ints:
        """The rows of addresses."""
        return addresses - self.shift if self.inner.key is None else addresses % (self.store.size + 1)

    def group(self, addresses: Ints) -> Ints:
        """The number of the group that each address is in."""
        return np.zeros(len(addresses), np.int64) if self.inner.key is None else addresses // (self.store.size + 1)

    def ungrouped(self, intervals: QueryIntervals) -> QueryIntervals:
        """Intervals as rows, if the last events of results do not tell which group they are of."""
        if self.inner.key is None or self.inner.key.end is not None:
            return intervals
        return QueryIntervals(self.rows(intervals.lo), self.rows(intervals.hi))


class Move:
    """The way from the addresses in one store to those in the next.

    `seq` are the numbers of the events before; a view that was in no store has none, and comes from where it goes to.
    """

    def __init__(self, before: RowAddresses, now: RowAddresses, seq: Ints) -> None:
        self.before, self.now, self._seq = before, now, seq
        self.counters = now.executor.counters
        # Whether addresses stay as they are: what is kept by address only loses what is before the shift.
        self.plain = now.plain
        # How many rows have left at the front, if that is all that has changed; otherwise below 0.
        self._gone = now.shift - before.shift if before.plain and now.plain else -1

    @cached_property
    def rows(self) -> Ints:
        """The rows that the rows before became, -1 for those that have left."""
        return self.now.store.rows_of(self._seq)

    def carried(self, values: Ints, fresh: int) -> Ints:
        """Numbers for the rows of the store, given those for the rows before; `fresh` for rows that are new."""
        size = self.now.store.size
        if self._gone >= 0:
            # The usual case: all rows move by the same number.
            out = np.empty(size, np.int64)
            kept = values[self._gone : self._gone + size]
            out[: len(kept)] = kept
            out[len(kept) :] = fresh
            return out
        out, left = np.full(size, fresh, np.int64), self.rows >= 0
        out[self.rows[left]] = values[left]
        return out

    def results(self, rows: Ints) -> tuple[Ints, Bools]:
        """Results as a block of their rows now and the addresses of their ends; and which have all their events."""
        mapped = np.where(rows < 0, -1, self.rows[rows])
        alive: Bools = np.asarray(((mapped >= 0) | (rows < 0)).all(axis=0))
        first, last = self.now.of_results(Table(self.now.inner.slots, mapped))
        return np.vstack([mapped, first, last]), alive

    def intervals(self, lo: Ints, hi: Ints, *, clip: bool) -> tuple[Ints, Ints, Bools]:
        """The intervals that are left, none of which is empty, and which those are.

        Of an interval that has lost an end the rest is left, or with `clip=False` nothing.
        """
        offset = self._offsets[self.before.group(lo)]
        first, last = self.before.rows(lo), self.before.rows(hi - 1)
        # The first and the last of its rows that are left; rows of one key stay in order.
        left = np.flatnonzero(self.rows >= 0)
        begin, end = np.searchsorted(left, first), np.searchsorted(left, last, side="right")
        kept: Bools = (begin < end) & (offset >= 0)
        if not clip:
            kept &= (self.rows[first] >= 0) & (self.rows[last] >= 0)
        offset, became = offset[kept], self.rows[left]
        return became[begin[kept]] + offset, became[end[kept] - 1] + 1 + offset, kept

    @cached_property
    def _offsets(self) -> Ints:
        """For each group before the address at which it begins now; below 0 if no event of it is left.

        Values may have other codes now, so that an event of each group says which value it has.
        """
        before, now, key = self.before, self.now, self.now.inner.key
        if key is None:
            return np.zeros(1, np.int64)
        keyed = before.store.stack(key.slot).rows
        group = place_among(before.values, before.executor.value_of(key.inner, keyed))
        became = self.rows[keyed]
        left = (group >= 0) & (became >= 0)
        one = np.full(before.groups, -1, np.int64)
        one[group[left]] = became[left]
        offsets = np.full(before.groups, -1, np.int64)
        offsets[one >= 0] = now.offset(now.executor.value_of(key.inner, one[one >= 0]))
        return offsets
