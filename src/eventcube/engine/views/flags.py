"""Whether intervals are empty: all that a negated part needs to be known of, one flag for each interval."""

from __future__ import annotations

import numpy as np

from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.table import ORIGIN
from eventcube.engine.views.kept import Asks
from eventcube.engine.views.records import Records
from eventcube.engine.views.strategy import Executor
from eventcube.engine.views.view import Places, View

# Intervals that contain others are tried first, so often; then the rest at once.
_ROUNDS = 3


class Flags:
    """Intervals that have no result, and intervals that have one."""

    def __init__(self, view: View) -> None:
        self.view, self.records = view, Records()
        self.empty = np.zeros(0, np.bool_)
        self._purged = view.many
        view.followers.append(self._move)

    def _move(self, before: Places, places: Places, rows: Ints) -> None:
        self.empty = self.empty[self.records.move(before, places, rows)]

    @property
    def bytes(self) -> int:
        """Two ends and a flag for each interval."""
        return 17 * len(self.records)

    def exists(self, asks: Asks, executor: Executor) -> Bools:
        """For each interval whether it has a result, computed where no flag says so."""
        some = asks.lo < asks.hi
        if not some.any():
            return some
        distinct, which = asks.where(some).distinct()
        self._purge(int(distinct.lo.min()))
        for round_ in range(_ROUNDS):
            known, _, _ = self._known(distinct)
            open_ = distinct.where(~known)
            if not len(open_):
                break
            self._compute(open_ if round_ == _ROUNDS - 1 else open_.where(_outermost(open_)), executor)
        found = np.zeros(len(asks), np.bool_)
        found[some] = self._known(distinct)[1][which]
        executor.counters.inner_reused += int(np.count_nonzero(found))
        return found

    def _purge(self, place: int) -> None:
        """Forget flags that end before all that is asked for, once there are many."""
        if len(self.records) > 2 * self._purged:
            alive = self.records.hi > place
            self.records.where(alive)
            self.empty = self.empty[alive]
            self._purged = max(len(self.records), self.view.many)

    def _known(self, asks: Asks) -> tuple[Bools, Bools, Ints]:
        """Which intervals are decided, which of those have a result, and how far each is known to have none."""
        lo, hi = self.records.lo[self.empty], self.records.hi[self.empty]
        order = np.argsort(lo, kind="stable")
        reach = np.maximum.accumulate(np.append(-1, hi[order]))[np.searchsorted(lo[order], asks.lo, side="right")]
        lo, hi = self.records.lo[~self.empty], self.records.hi[~self.empty]
        order = np.argsort(lo, kind="stable")
        nearest = np.minimum.accumulate(np.append(hi[order], 2**62)[::-1])[::-1]
        some = nearest[np.searchsorted(lo[order], asks.lo)] <= asks.hi
        return some | (reach >= asks.hi), some, np.maximum(reach, asks.lo)

    def _compute(self, asks: Asks, executor: Executor) -> None:
        found = np.zeros(len(asks), np.bool_)
        for requests, of in self.view.asked_rows(asks, self._known(asks)[2]):
            for out in self.view.results(self.view.inner.nearest, requests, executor):
                found[of[out[ORIGIN]]] = True
        executor.counters.view_intervals += len(asks)
        self.records.add(asks)
        self.empty = np.concatenate([self.empty, ~found])
        executor.note_bytes()


def _outermost(asks: Asks) -> Bools:
    """The intervals that lie in no other one. They are sorted by end, then by beginning."""
    earliest = np.minimum.accumulate(asks.lo[::-1])[::-1]
    later = np.append(earliest[1:], 2**62)
    return asks.lo < later
