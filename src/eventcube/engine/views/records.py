"""Intervals that were asked for and are kept a record of, and what a new interval can take from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eventcube.engine.intervals import covered
from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.views.result_store import QueryIntervals
from eventcube.engine.views.view import RowAddresses


@dataclass(frozen=True, slots=True)
class Plan:
    """For intervals that are asked for: the record that covers most of each (-1: none), and where it ends.

    `fresh` are those that no record covers whole; each becomes a record.
    """

    holder: Ints
    begins: Ints
    fresh: Bools


class Records:
    """Intervals, in the order in which they were asked for."""

    def __init__(self) -> None:
        self.lo = np.zeros(0, np.int64)
        self.hi = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.lo)

    def plan(self, intervals: QueryIntervals) -> Plan:
        """What is to be computed for each interval, in their order, if each then is a record for those after it.

        If a record overlaps an interval from the left, only what ends after the record is new (a partial overlap on
        the right); whatever else overlaps it does not help, because results are found from their last event back.
        """
        given = len(self)
        lo, hi = np.concatenate([self.lo, intervals.lo]), np.concatenate([self.hi, intervals.hi])
        starts, place = np.unique(lo, return_inverse=True)
        who, reach = covered(place.astype(np.int64), hi, given, len(starts))
        who, reach = who[given:], reach[given:]
        helps = reach > intervals.lo
        fresh = ~(helps & (reach >= intervals.hi))
        # What was fresh before is a record by now.
        number = np.concatenate([np.arange(given), given + np.cumsum(fresh) - 1])
        holder = np.where(helps, number[np.maximum(who, 0)], -1)
        return Plan(holder, np.where(helps, reach, intervals.lo), fresh)

    def add(self, intervals: QueryIntervals) -> None:
        """Keep a record of these intervals."""
        self.lo, self.hi = np.concatenate([self.lo, intervals.lo]), np.concatenate([self.hi, intervals.hi])

    def begin_at(self, row: int, addresses: RowAddresses) -> None:
        """Say nothing any more of what lies before a row."""
        begins = addresses.rows(self.lo)
        self.lo = self.lo - begins + np.maximum(begins, row)
        self.where(self.lo < self.hi)

    def where(self, kept: Bools) -> None:
        """Keep only some."""
        self.lo, self.hi = self.lo[kept], self.hi[kept]

    def move(self, before: RowAddresses, addresses: RowAddresses, rows: Ints, *, clip: bool = True) -> Bools:
        """Turn to a new store, given the rows its events had; says which records are left.

        Of one that has lost its front the rest is left, or with `clip=False` nothing.
        """
        if not len(self):
            return np.zeros(0, np.bool_)
        if addresses.plain:
            kept = (self.hi if clip else self.lo + 1) > addresses.shift
        else:
            offset = addresses.offsets_after(before, rows)[before.group(self.lo)]
            last = rows[before.rows(self.hi - 1)]
            first = rows[before.rows(self.lo)]
            kept = (last >= 0) & (offset >= 0) & (clip | (first >= 0))
            first, last, offset = first[kept], last[kept], offset[kept]
            self.lo[kept] = np.where(first >= 0, first, addresses.store.segment_starts[last]) + offset
            self.hi[kept] = last + 1 + offset
        self.where(kept)
        return kept
