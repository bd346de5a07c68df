"""Whether intervals are empty: all that a negated part needs to be known of.

Of an interval without a result the interval itself is kept: whatever lies inside it has none, either. Of one with a
result the extent of that result is kept, not the interval: the result may lie in rows that are dropped later, while the
rest of the interval is still asked for.
"""

from __future__ import annotations

import numpy as np

from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.table import ORIGIN
from eventcube.engine.views.records import Records
from eventcube.engine.views.result_store import QueryIntervals
from eventcube.engine.views.strategy import Executor
from eventcube.engine.views.view import RowAddresses, View

# Intervals that contain others are tried first, so often; then the rest at once.
_ROUNDS = 3


class Flags:
    """Intervals that have no result, and the extents of results that were found: from the first event to the last."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.empty, self.extents = Records(), Records()
        self._purged = view.many
        view.followers.append(self._move)

    def _move(self, before: RowAddresses, addresses: RowAddresses, rows: Ints) -> None:
        self.empty.move(before, addresses, rows)
        self.extents.move(before, addresses, rows, clip=False)

    def __len__(self) -> int:
        return len(self.empty) + len(self.extents)

    @property
    def bytes(self) -> int:
        """Two ends for each interval."""
        return 16 * len(self)

    def exists(self, intervals: QueryIntervals, executor: Executor) -> Bools:
        """For each interval whether it has a result, computed where no flag says so."""
        some = intervals.lo < intervals.hi
        if not some.any():
            return some
        distinct, which = intervals.where(some).distinct()
        self._purge(int(distinct.lo.min()))
        for round_ in range(_ROUNDS):
            known, _, _ = self._known(distinct)
            open_ = distinct.where(~known)
            if not len(open_):
                break
            self._compute(open_ if round_ == _ROUNDS - 1 else open_.where(_outermost(open_)), executor)
        found = np.zeros(len(intervals), np.bool_)
        found[some] = self._known(distinct)[1][which]
        executor.counters.inner_reused += int(np.count_nonzero(found))
        return found

    def _purge(self, place: int) -> None:
        """Forget flags that end before all that is asked for, once there are many."""
        if len(self) > 2 * self._purged:
            for records in (self.empty, self.extents):
                records.where(records.hi > place)
            self._purged = max(len(self), self.view.many)

    def _known(self, intervals: QueryIntervals) -> tuple[Bools, Bools, Ints]:
        """Which intervals are decided, which of those have a result, and how far each is known to have none."""
        lo, hi = self.empty.lo, self.empty.hi
        order = np.argsort(lo, kind="stable")
        reach = np.maximum.accumulate(np.append(-1, hi[order]))[np.searchsorted(lo[order], intervals.lo, side="right")]
        lo, hi = self.extents.lo, self.extents.hi
        order = np.argsort(lo, kind="stable")
        nearest = np.minimum.accumulate(np.append(hi[order], 2**62)[::-1])[::-1]
        some = nearest[np.searchsorted(lo[order], intervals.lo)] <= intervals.hi
        return some | (reach >= intervals.hi), some, np.maximum(reach, intervals.lo)

    def _compute(self, intervals: QueryIntervals, executor: Executor) -> None:
        """Find for each interval the result that begins last, which stays longest, or that there is none."""
        assert self.view.addresses is not None
        begins, ends = np.full(len(intervals), -1, np.int64), np.zeros(len(intervals), np.int64)
        for requests, of in self.view.asked_rows(intervals, self._known(intervals)[2]):
            for out in self.view.find_results(self.view.inner.nearest, requests, executor):
                first, last = self.view.addresses.of_results(out)
                own = of[out[ORIGIN]]
                order = np.argsort(first, kind="stable")
                first, last, own = first[order], last[order], own[order]
                later = first > begins[own]
                # Of several for one interval the last assignment stands, and they ascend.
                begins[own[later]], ends[own[later]] = first[later], last[later] + 1
        executor.counters.view_intervals += len(intervals)
        found = begins >= 0
        self.empty.add(intervals.where(~found))
        self.extents.add(QueryIntervals(begins[found], ends[found]).distinct()[0])
        executor.note_bytes()


def _outermost(intervals: QueryIntervals) -> Bools:
    """The intervals that lie in no other one. They are sorted by end, then by beginning."""
    earliest = np.minimum.accumulate(intervals.lo[::-1])[::-1]
    later = np.append(earliest[1:], 2**62)
    return intervals.lo < later
