"""Kept inner results, sorted so that those inside an interval are found without going over the others."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

import numpy as np

from eventcube.engine.intervals import counts_of, first_asked, pairs_of, run_order, swept_counts, tallies
from eventcube.engine.kernels import Bools, Ints, seek

# Pairs of an outer row and a result in one chunk.
PAIRS = 1 << 16
# Numbers that counting and sorting may need as scratch space, beside a few for each interval.
ROOM = 1 << 14


@dataclass(frozen=True, slots=True)
class QueryIntervals:
    """Intervals from `lo` to before `hi`, as addresses: what outer rows ask for. Empty ones have `hi` at `lo`."""

    lo: Ints
    hi: Ints

    def __len__(self) -> int:
        return len(self.lo)

    def where(self, kept: Bools) -> QueryIntervals:
        """Some of the intervals."""
        return self if np.count_nonzero(kept) == len(self) else QueryIntervals(self.lo[kept], self.hi[kept])

    def nonempty(self) -> QueryIntervals:
        """The intervals that are not empty."""
        return self.where(self.lo < self.hi)

    @property
    def base(self) -> int:
        """The earliest beginning."""
        return int(self.lo.min()) if len(self) else 0

    def keys(self, base: int) -> Ints:
        """A sort key for each interval, by end, then by beginning; all begin at the base or later."""
        span = int(self.hi.max()) - base + 1 if len(self) else 1
        if span >= 1 << 31:
            # Too far apart for one number, which their ranks are not.
            ranks = np.unique(np.concatenate([self.lo, self.hi]), return_inverse=True)[1].astype(np.int64)
            return ranks[len(self) :] << 31 | ranks[: len(self)]
        return (self.hi - base) << 31 | (self.lo - base)

    def distinct(self) -> tuple[QueryIntervals, Ints]:
        """Each interval once, and for each interval the number of its equal among those."""
        order = np.argsort(self.keys(self.base), kind="stable")
        lo, hi = self.lo[order], self.hi[order]
        new = np.ones(len(order), np.bool_)
        new[1:] = (lo[1:] != lo[:-1]) | (hi[1:] != hi[:-1])
        which = np.empty(len(order), np.int64)
        which[order] = np.cumsum(new) - 1
        return QueryIntervals(lo[new], hi[new]), which


class GrowableColumns:
    """Columns of numbers that grow at the end and shrink at the front, without being copied each time.

    Those that were handed out stay as they are.
    """

    def __init__(self, height: int) -> None:
        self._data = np.empty((height, 256), np.int64)
        self._start = self._end = 0

    @property
    def columns(self) -> Ints:
        return self._data[:, self._start : self._end]

    def append(self, more: Ints) -> None:
        size, extra = self._end - self._start, more.shape[1]
        if self._end + extra > self._data.shape[1]:
            height, width = self._data.shape
            data = np.empty((height, max(width, 2 * (size + extra))), np.int64)
            data[:, :size] = self.columns
            self._data, self._start, self._end = data, 0, size
        self._data[:, self._end : self._end + extra] = more
        self._end += extra

    def drop(self, count: int) -> None:
        self._start += count

    def clear(self) -> None:
        self._data = np.empty((len(self._data), 256), np.int64)
        self._start = self._end = 0


class ResultStore:
    """Results with the addresses of their first and last events. Those with one last event are a run.

    In a run the address of the first event falls. For each run it is noted how much of it was ever asked for.
    """

    def __init__(self, height: int) -> None:
        self._results = GrowableColumns(height + 2)
        self._runs = GrowableColumns(3)
        self._before = 0

    def __len__(self) -> int:
        return int(self._results.columns.shape[1])

    def as_it_is(self) -> ResultStore:
        """The results of now to look into, whatever is added and forgotten meanwhile."""
        now = copy(self)
        now._results, now._runs = copy(self._results), copy(self._runs)
        return now

    @property
    def block(self) -> Ints:
        """The events of the results, then the addresses of the first and the last."""
        return self._results.columns

    @property
    def rows(self) -> Ints:
        """The events of the results."""
        return self._results.columns[:-2]

    @property
    def firsts(self) -> Ints:
        firsts: Ints = self._results.columns[-2]
        return firsts

    @property
    def lasts(self) -> Ints:
        lasts: Ints = self._results.columns[-1]
        return lasts

    @property
    def bytes(self) -> int:
        return int(self._results.columns.nbytes + self._runs.columns.nbytes)

    @property
    def unused(self) -> int:
        """Results that were never asked for."""
        return len(self) - int(self._runs.columns[2].sum())

    def add(self, block: Ints) -> None:
        """Add results that are not in the store: their events, and the addresses of the first and the last."""
        if not block.shape[1]:
            return
        block = block.take(_order(block[-2], block[-1]), axis=1)
        if len(self) and block[-1, 0] <= self.lasts[-1]:
            self.rebuild(
                np.concatenate([self._results.columns, block], axis=1),
                np.concatenate([self.used(), np.zeros(block.shape[1], np.bool_)]),
            )
            return
        self._append(block, None)

    def used(self) -> Bools:
        """For each result whether it was asked for."""
        _, start, used = self._runs.columns
        begin = start - self._before
        in_run = np.arange(len(self)) - np.repeat(begin, np.diff(np.append(begin, len(self))))
        asked: Bools = in_run < np.repeat(used, np.diff(np.append(begin, len(self))))
        return asked

    def rebuild(self, block: Ints, used: Bools) -> None:
        """Keep these results (rows, then firsts, then lasts) instead."""
        self._results.clear()
        self._runs.clear()
        self._before = 0
        if block.shape[1]:
            order = _order(block[-2], block[-1])
            self._append(block.take(order, axis=1), used[order])

    def keep(self, block: Ints, alive: Bools) -> int:
        """Keep some of the results, as they are in the block; gives how many of the others were never asked for."""
        used = self.used()
        self.rebuild(block.compress(alive, axis=1), used[alive])
        return int((~used & ~alive).sum())

    def _append(self, block: Ints, used: Bools | None) -> None:
        lasts = block[-1]
        begins = np.flatnonzero(np.append(True, lasts[1:] != lasts[:-1]))
        asked = np.zeros(len(begins), np.int64) if used is None else np.add.reduceat(used.astype(np.int64), begins)
        self._runs.append(np.vstack([lasts[begins], begins + len(self) + self._before, asked]))
        self._results.append(block)

    def drop_before(self, address: int) -> int:
        """Forget the results that end before an address; gives how many of them were never asked for."""
        count = int(np.searchsorted(self.lasts, address))
        if not count:
            return 0
        runs = int(np.searchsorted(self._runs.columns[0], address))
        unused = count - int(self._runs.columns[2, :runs].sum())
        self._runs.drop(runs)
        self._results.drop(count)
        self._before += count
        return unused

    # Looking up.

    def mark(self, intervals: QueryIntervals) -> int:
        """Note the results inside the intervals as asked for; gives how many are so for the first time."""
        lasts, _, used = self._runs.columns
        if not len(lasts) or not len(intervals):
            return 0
        runs = np.arange(len(lasts) + 1)
        asked = counts_of(
            runs[:-1], runs[1:], self._starts, self.firsts, first_asked(intervals.lo, intervals.hi, lasts)
        )
        fresh = int(np.maximum(asked - used, 0).sum())
        np.maximum(used, asked, out=used)
        return fresh

    @property
    def _starts(self) -> Ints:
        return np.append(self._runs.columns[1] - self._before, len(self))

    def _ranges(self, intervals: QueryIntervals) -> tuple[Ints, Ints]:
        runs = np.ascontiguousarray(self._runs.columns[0])
        lo = seek(runs, intervals.lo)
        return lo, np.maximum(seek(runs, intervals.hi), lo)

    def pairs(self, intervals: QueryIntervals) -> Iterator[tuple[Ints, Ints]]:
        """Pairs of an interval's number and the place of a result inside it, in chunks."""
        run_lo, run_hi = self._ranges(intervals)
        parent, place = np.empty(PAIRS, np.int64), np.empty(PAIRS, np.int64)
        at = np.array([0, -1, -1], np.int64)
        while at[0] < len(intervals):
            filled = pairs_of(run_lo, run_hi, self._starts, self.firsts, intervals.lo, at, parent, place)
            if filled:
                yield parent[:filled].copy(), place[:filled].copy()

    def count(self, intervals: QueryIntervals) -> tuple[Ints, int]:
        """For each interval how many results lie in it; and how many are asked for the first time."""
        if not len(self) or not len(intervals):
            return np.zeros(len(intervals), np.int64), 0
        lasts, begins, used = self._runs.columns
        room = ROOM + 4 * len(intervals)
        counts, fresh = tallies(lasts, begins, used, self._before, self.firsts, intervals.lo, intervals.hi, room)
        return (counts, fresh) if fresh >= 0 else (self._counts(intervals), self.mark(intervals))

    def _counts(self, intervals: QueryIntervals) -> Ints:
        run_lo, run_hi = self._ranges(intervals)
        work = int((run_hi - run_lo).sum())
        by_sweep = len(self) + len(intervals) + (int(self.firsts.max()) - int(self.firsts.min())) // 8
        if work < 4 * by_sweep or work < 8 * len(intervals):
            return counts_of(run_lo, run_hi, self._starts, self.firsts, intervals.lo)
        distinct, which = intervals.distinct()
        order = np.argsort(distinct.hi, kind="stable")
        return swept_counts(order, distinct.lo, distinct.hi, self.lasts, self.firsts)[which]

    def any(self, intervals: QueryIntervals) -> Bools:
        """For each interval whether a result lies in it."""
        if not len(self):
            return np.zeros(len(intervals), np.bool_)
        # Of the results that end before an interval's end one must begin inside it.
        return nearest_before(self.lasts, self.firsts, intervals)


def _order(firsts: Ints, lasts: Ints) -> Ints:
    order = run_order(firsts, lasts, ROOM + 4 * len(firsts))
    return order if len(order) else np.lexsort([-firsts, lasts])


def nearest_before(lasts: Ints, firsts: Ints, intervals: QueryIntervals) -> Bools:
    """Where one of the results, sorted by their last event, lies inside the interval."""
    nearest = np.maximum.accumulate(firsts)
    at = np.searchsorted(lasts, intervals.hi)
    return (at > 0) & (nearest[np.maximum(at - 1, 0)] >= intervals.lo) & (intervals.lo < intervals.hi)
