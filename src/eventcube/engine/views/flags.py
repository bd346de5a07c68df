"""Whether intervals are empty: all that a negated part needs to be known of.

Of an interval without a result the interval itself is kept: whatever lies inside it has none, either. Of one with a
result the extent of that result is kept, not the interval: the result may lie in rows that are dropped later, while the
rest of the interval is still asked for.
"""

from __future__ import annotations

import numpy as np

from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.table import ORIGIN, Table
from eventcube.engine.views.addresses import Move
from eventcube.engine.views.records import Records
from eventcube.engine.views.result_store import QueryIntervals
from eventcube.engine.views.view import AttachedView, View
from eventcube.optimizer.cost import Load

# Rounds of computing: all but the last take only intervals that lie in no other one, which may decide the others.
_ROUNDS = 3


class Flags:
    """Intervals that have no result, and the extents of results that were found: from the first event to the last."""

    def __init__(self, view: View) -> None:
        self.empty, self.extents = Records(), Records()
        self._view, self._purged = view, 0
        view.followers.append(self._follow)

    @staticmethod
    def update_cost(load: Load) -> float:
        """Computing the longest interval for each end by itself, and each missing last event at least once."""
        last_events = max(load.missing, load.ends * load.partial[0] if load.partial else 0.0)
        return last_events * (1.0 + sum(load.extended[: load.part.scanned]))

    def _follow(self, move: Move) -> None:
        self.empty.move(move)
        self.extents.move(move, clip=False)

    def __len__(self) -> int:
        return len(self.empty) + len(self.extents)

    @property
    def bytes(self) -> int:
        """Two ends for each interval."""
        return 16 * len(self)

    def exists(self, table: Table, view: AttachedView) -> Bools:
        """For each outer row whether its interval has a result, computed where no flag says so."""
        intervals = view.query_intervals(table)
        nonempty = intervals.lo < intervals.hi
        if not nonempty.any():
            return nonempty
        distinct, which = intervals.where(nonempty).distinct()
        self._purge(int(distinct.lo.min()))
        for round_ in range(_ROUNDS):
            decided, _, _ = self._lookup(distinct)
            undecided = distinct.where(~decided)
            if not len(undecided):
                break
            last = round_ == _ROUNDS - 1
            self._compute(undecided if last else undecided.where(_outermost(undecided)), view)
        matched = np.zeros(len(intervals), np.bool_)
        matched[nonempty] = self._lookup(distinct)[1][which]
        view.counters.inner_reused += int(np.count_nonzero(matched))
        return matched

    def _purge(self, address: int) -> None:
        """Forget flags that end before all intervals at hand, once there are twice as many as after the last purge."""
        if len(self) > 2 * max(self._purged, self._view.few):
            for records in (self.empty, self.extents):
                records.where(records.hi > address)
            self._purged = len(self)

    def _lookup(self, intervals: QueryIntervals) -> tuple[Bools, Bools, Ints]:
        """Which intervals are decided, which have a result, and the address up to which each is known to have none."""
        lo, hi = self.empty.lo, self.empty.hi
        order = np.argsort(lo, kind="stable")
        reach = np.maximum.accumulate(np.append(-1, hi[order]))[np.searchsorted(lo[order], intervals.lo, side="right")]
        lo, hi = self.extents.lo, self.extents.hi
        order = np.argsort(lo, kind="stable")
        nearest = np.minimum.accumulate(np.append(hi[order], 2**62)[::-1])[::-1]
        matched = nearest[np.searchsorted(lo[order], intervals.lo)] <= intervals.hi
        return matched | (reach >= intervals.hi), matched, np.maximum(reach, intervals.lo)

    def _compute(self, intervals: QueryIntervals, view: AttachedView) -> None:
        """Find for each interval the result that begins last, and so stays in the window longest, if there is one."""
        begins, ends = np.full(len(intervals), -1, np.int64), np.zeros(len(intervals), np.int64)
        for requests, of in view.requests_for(intervals, self._lookup(intervals)[2]):
            for out in view.find_results(view.inner.nearest, requests):
                first, last = view.addresses.of_results(out)
                number = of[out[ORIGIN]]
                order = np.argsort(first, kind="stable")
                first, last, number = first[order], last[order], number[order]
                later = first > begins[number]
                # Of several for one interval the last assignment stands, and they ascend.
                begins[number[later]], ends[number[later]] = first[later], last[later] + 1
        view.counters.view_intervals += len(intervals)
        matched = begins >= 0
        self.empty.add(intervals.where(~matched))
        self.extents.add(QueryIntervals(begins[matched], ends[matched]).distinct()[0])
        view.executor.note_bytes()


def _outermost(intervals: QueryIntervals) -> Bools:
    """The intervals that lie in no other one. They are sorted by end, then by beginning."""
    earliest = np.minimum.accumulate(intervals.lo[::-1])[::-1]
    later = np.append(earliest[1:], 2**62)
    return intervals.lo < later
