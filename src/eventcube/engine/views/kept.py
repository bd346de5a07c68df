"""What a sliding view keeps: the results it has computed or, if that is enough, how near one begins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from eventcube.engine.counters import Counters
from eventcube.engine.kernels import Bools
from eventcube.engine.table import ANCHOR, ORIGIN, Table
from eventcube.engine.views.addresses import Move
from eventcube.engine.views.result_store import QueryIntervals, ResultStore, nearest_before
from eventcube.engine.views.view import NEVER, AttachedView, Requests, TooMuchError, View


class Kept(ABC):
    """What is known of results: for each row (`since`) the event from which on, of those that end there."""

    def __init__(self, view: View) -> None:
        self.since = np.zeros(0, np.int64)
        view.followers.append(self.follow)

    @property
    @abstractmethod
    def bytes(self) -> int:
        """The size of what is kept."""

    @property
    def unused(self) -> int:
        """Results that are kept and were never asked for."""
        return 0

    def follow(self, move: Move) -> None:
        """Turn to a new store."""
        self.since = move.carried(self.since, NEVER)

    @abstractmethod
    def compute(self, requests: Requests, view: AttachedView) -> None:
        """Compute the requested results, keep what is new, and note what is known now."""

    @abstractmethod
    def exists(self, intervals: QueryIntervals, view: AttachedView) -> tuple[Bools, int]:
        """For each interval whether there is a result in it; and how many are asked for the first time."""

    def purge(self, intervals: QueryIntervals, view: AttachedView) -> int | None:
        """Forget results that end before all intervals, once there are many; gives the row they end before.

        If they are asked for again, they are computed again.
        """
        return None

    def clear(self, counters: Counters) -> None:
        """Forget everything."""
        self.since[:] = NEVER


class KeptResults(Kept):
    """The results, each once."""

    def __init__(self, view: View) -> None:
        super().__init__(view)
        self._height = view.height
        self._view, self._purged = view, 0
        self.store = ResultStore(self._height)

    @property
    def bytes(self) -> int:
        """The size of the results."""
        return self.store.bytes

    @property
    def unused(self) -> int:
        """Results that are kept and were never asked for."""
        return self.store.unused

    def follow(self, move: Move) -> None:
        """Turn to a new store, and drop results that have lost an event."""
        super().follow(move)
        if move.plain:
            unused = self.store.drop_before(move.now.shift)
        else:
            unused = self.store.keep(*move.results(self.store.rows))
        move.counters.inner_unused += unused

    def compute(self, requests: Requests, view: AttachedView) -> None:
        """Compute the requested results, keep those that are new, and note what is known now."""
        furthest = requests.furthest
        self._keep(view.find_results(view.inner.program, requests), furthest, view)
        rows = requests.rows[furthest]
        self.since[rows] = np.minimum(view.store.seq[requests.starts[furthest]], self.since[rows])

    def _keep(self, found: Iterator[Table], wanted: Bools, view: AttachedView) -> None:
        """Keep those results of the wanted requests that are not kept yet."""
        blocks = []
        size = len(self.store)
        for out in found:
            blocks.append(view.addresses.block(out if wanted.all() else out.where(wanted[out[ORIGIN]]), self.since))
            size += blocks[-1].shape[1]
            if size > View.max_results:
                raise TooMuchError
        if blocks:
            self.store.add(blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1))

    def exists(self, intervals: QueryIntervals, view: AttachedView) -> tuple[Bools, int]:
        """For each interval whether there is a result in it; and how many are asked for the first time."""
        first_uses = self.store.mark(intervals)
        return self.store.any(intervals), first_uses

    def join(self, table: Table, intervals: QueryIntervals, view: AttachedView) -> Iterator[Table]:
        """The outer rows with each result inside their interval that passes residual conditions."""
        # While these are on their way, an equal part may ask for more.
        results = self.store.as_it_is()
        view.counters.inner_reused -= results.mark(intervals)
        for parent, place in results.pairs(intervals):
            view.counters.inner_reused += len(parent)
            yield from view.joined(table, results, parent, place)

    def purge(self, intervals: QueryIntervals, view: AttachedView) -> int | None:
        """Forget results that end before all intervals, once there are many; gives the row they end before."""
        if len(self.store) < min(2 * max(self._purged, self._view.few), View.max_results // 4):
            return None
        nonempty = intervals.nonempty()
        if not len(nonempty):
            return None
        addresses = view.addresses
        row = int(addresses.rows(nonempty.lo).min())
        if view.inner.key is None:
            unused = self.store.drop_before(row + addresses.shift)
        else:
            unused = self.store.keep(self.store.block, addresses.rows(self.store.lasts) >= row)
        view.counters.inner_unused += unused
        self.since[:row] = NEVER
        self._purged = len(self.store)
        return row

    def clear(self, counters: Counters) -> None:
        """Forget everything."""
        super().clear(counters)
        counters.inner_unused += self.store.unused
        self.store = ResultStore(self._height)
        self._purged = 0


class Nearest(Kept):
    """For each row the event with which the nearest result begins, of those that end there: -1 if there is none."""

    def __init__(self, view: View) -> None:
        super().__init__(view)
        self._begins = np.zeros(0, np.int64)

    @property
    def bytes(self) -> int:
        """A number for each last event that is known."""
        return 8 * int((self.since < NEVER).sum())

    def follow(self, move: Move) -> None:
        """Turn to a new store."""
        super().follow(move)
        self._begins = move.carried(self._begins, -1)

    def compute(self, requests: Requests, view: AttachedView) -> None:
        """Find the nearest of the requested results, and note what is known now."""
        seq, rows = view.store.seq, requests.rows
        from_seq, known = seq[requests.starts], self.since[rows]
        begins = np.full(len(seq), -1, np.int64)
        for out in view.find_results(view.inner.nearest, requests):
            np.maximum.at(begins, out[ANCHOR], out.first(view.inner.slots, optional=True))
        nearest = begins[rows]
        # Where there is a result, it is never necessary to look further back.
        self._begins[rows] = np.where(nearest >= 0, seq[nearest], -1)
        self.since[rows] = np.where(nearest >= 0, -1, np.minimum(from_seq, known))

    def exists(self, intervals: QueryIntervals, view: AttachedView) -> tuple[Bools, int]:
        """For each interval whether there is a result in it, of which none is asked for the first time."""
        anchors = view.anchors
        anchors = anchors[self._begins[anchors] >= 0]
        first = view.store.rows_of(self._begins[anchors])
        anchors, first = anchors[first >= 0], first[first >= 0]
        last = view.addresses.of_anchors(anchors)
        first = first + (last - anchors)
        order = np.argsort(last, kind="stable")
        if not len(order):
            return np.zeros(len(intervals), np.bool_), 0
        return nearest_before(last[order], first[order], intervals), 0
