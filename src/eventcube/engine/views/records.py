"""Records of the intervals that were computed, and what a new interval can take from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eventcube.engine.intervals import covered
from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.views.addresses import Move, RowAddresses
from eventcube.engine.views.result_store import QueryIntervals


@dataclass(frozen=True, slots=True)
class Plan:
    """For each interval the record that covers most of it (-1: none), and the address at which computing begins.

    `fresh` are the intervals that no record covers whole; each becomes a record.
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
        """The plan for intervals that are taken in order, each a record for those after it.

        If a record overlaps an interval from the left, only what ends after the record is new (a partial overlap on
        the right); whatever else overlaps it does not help, because results are found from their last event back.
        """
        recorded = len(self)
        lo, hi = np.concatenate([self.lo, intervals.lo]), np.concatenate([self.hi, intervals.hi])
        starts, rank = np.unique(lo, return_inverse=True)
        who, reach = covered(rank.astype(np.int64), hi, recorded, len(starts))
        who, reach = who[recorded:], reach[recorded:]
        helps = reach > intervals.lo
        fresh = ~(helps & (reach >= intervals.hi))
        # What was fresh before is a record by now.
        number = np.concatenate([np.arange(recorded), recorded + np.cumsum(fresh) - 1])
        holder = np.where(helps, number[np.maximum(who, 0)], -1)
        return Plan(holder, np.where(helps, reach, intervals.lo), fresh)

    def add(self, intervals: QueryIntervals) -> None:
        """Keep a record of these intervals."""
        self.lo, self.hi = np.concatenate([self.lo, intervals.lo]), np.concatenate([self.hi, intervals.hi])

    def begin_at(self, row: int, addresses: RowAddresses) -> None:
        """Cut off what lies before a row."""
        begins = addresses.rows(self.lo)
        self.lo = self.lo - begins + np.maximum(begins, row)
        self.where(self.lo < self.hi)

    def where(self, kept: Bools) -> None:
        """Keep some of the records."""
        self.lo, self.hi = self.lo[kept], self.hi[kept]

    def move(self, move: Move, *, clip: bool = True) -> Bools:
        """Turn to a new store; gives for each record whether it is kept.

        Of a record that has lost an end the rest is kept, or with `clip=False` nothing.
        """
        if not len(self):
            return np.zeros(0, np.bool_)
        if move.plain:
            kept = (self.hi if clip else self.lo + 1) > move.now.shift
            self.where(kept)
        else:
            self.lo, self.hi, kept = move.intervals(self.lo, self.hi, clip=clip)
        return kept
