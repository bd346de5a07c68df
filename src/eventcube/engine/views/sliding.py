"""How a sliding view answers outer rows. Each strategy says what is computed before the look-up."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from eventcube.engine.counters import Counters
from eventcube.engine.intervals import unmet
from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.table import ORIGIN, Table
from eventcube.engine.views.iterative import Iterative
from eventcube.engine.views.result_store import QueryIntervals
from eventcube.engine.views.strategy import Executor, Strategy
from eventcube.engine.views.view import NEVER, Requests, TooMuchError, View
from eventcube.plan.steps import Part

# Last events computed per pass, so that what a view holds at a time is bounded.
STRIDE = 1 << 14


class Sliding(Strategy):
    """A view that is extended by what outer rows ask for, looked up, and purged."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.view = View(part)
        self.inner = self.view.inner
        self.recompute = Iterative(part)
        # Pieces are this many times smaller than a stride, since larger ones asked for more than the view may hold.
        self._subdivision = 1
        # Pieces to recompute after even the smallest asked for too much, each time twice as many.
        self._skips_left, self._skip_length = 0, 8

    @property
    def bytes(self) -> int:
        """What the view holds."""
        return self.view.bytes

    def missing(self, lo: Ints, hi: Ints, executor: Executor) -> int | None:
        """How many last events between the ends of the intervals are not in the view."""
        if self.view.addresses is None:
            return None
        self.view.attach(executor)
        anchors = self.view.anchors()
        between = anchors[np.searchsorted(anchors, lo.min()) : np.searchsorted(anchors, hi.max())]
        return int(np.count_nonzero(self.view.since[between] == NEVER))

    @abstractmethod
    def requests(self, intervals: QueryIntervals, table: Table, executor: Executor) -> Iterator[Requests]:
        """What to compute before these intervals, some of which may be empty, can be looked up for the outer rows."""

    def forget(self, row: int) -> None:
        """Forget records of what lies before the row: the view has dropped it."""

    def join(self, table: Table, executor: Executor) -> Iterator[Table]:
        """The outer rows extended by the inner matches inside each one's interval."""
        for piece, intervals in self._extended(table, executor):
            if intervals is None:
                yield from self.recompute.join(piece, executor)
                continue
            for out in self._pairs(piece, intervals, executor):
                yield from executor.run(self.inner.residual, out)

    def count(self, table: Table, executor: Executor) -> int:
        """How many rows `join` would give."""
        if self.inner.residual:
            return sum(len(out) for out in self.join(table, executor))
        total = 0
        for piece, intervals in self._extended(table, executor):
            if intervals is None:
                total += self.recompute.count(piece, executor)
                continue
            assert self.view.results is not None
            counts, first_uses = self.view.results.count(intervals)
            served = int(counts.sum())
            executor.counters.inner_reused += served - first_uses
            total += served
        return total

    def exists(self, table: Table, executor: Executor) -> Bools:
        """For each outer row whether there is an inner match inside its interval."""
        matched = np.zeros(len(table), np.bool_)
        marked = table.with_columns({ORIGIN: np.arange(len(table))})
        for piece, intervals in self._extended(marked, executor):
            results = self.view.results
            if intervals is None:
                matched[piece[ORIGIN]] = self.recompute.exists(piece, executor)
            elif results is None or not self.inner.residual:
                first_uses = 0 if results is None else results.mark(intervals)
                nonempty = self.view.exists(intervals) if results is None else results.any(intervals)
                executor.counters.inner_reused += max(0, int(np.count_nonzero(nonempty)) - first_uses)
                matched[piece[ORIGIN]] = nonempty
            else:
                for out in self._pairs(piece, intervals, executor):
                    for passed in executor.run(self.inner.residual, out):
                        matched[passed[ORIGIN]] = True
        return matched

    def close(self, counters: Counters) -> None:
        """Nothing more will be asked."""
        if self.view.results is not None:
            counters.inner_unused += self.view.results.unused

    def _pairs(self, table: Table, intervals: QueryIntervals, executor: Executor) -> Iterator[Table]:
        """The outer rows with each result inside their interval, before residual conditions."""
        results = self.view.results
        assert results is not None
        executor.counters.inner_reused -= results.mark(intervals)
        for parent, place in results.pairs(intervals):
            executor.counters.inner_reused += len(parent)
            yield self.view.extended(table, results, parent, place)

    def _extended(self, table: Table, executor: Executor) -> Iterator[tuple[Table, QueryIntervals | None]]:
        """Outer rows in pieces, each with its intervals once the view is extended by them; None if that is too much."""
        return self._pieces(table, self.view.query_intervals(table, executor), executor)

    def _pieces(
        self, table: Table, intervals: QueryIntervals, executor: Executor
    ) -> Iterator[tuple[Table, QueryIntervals | None]]:
        stride = max(1, STRIDE // self._subdivision)
        cuts = self._cuts(intervals, stride)
        for start, end in zip(cuts, [*cuts[1:], len(table)], strict=True):
            piece = table if len(cuts) == 1 else Table(table.columns, table.data[:, start:end].copy())
            piece_intervals = QueryIntervals(intervals.lo[start:end], intervals.hi[start:end])
            if self._skips_left:
                self._skips_left -= 1
                yield piece, None
            elif self._extend(piece_intervals, piece, executor):
                yield piece, piece_intervals
            elif stride > 1:
                self._subdivision = max(self._subdivision, 8 * STRIDE // stride)
                yield from self._pieces(piece, piece_intervals, executor)
            else:
                self._skips_left = self._skip_length
                self._skip_length *= 2
                yield piece, None

    def _cuts(self, intervals: QueryIntervals, stride: int) -> list[int]:
        """Where to cut outer rows so that each piece asks for about as many last events as the stride."""
        assert self.view.addresses is not None
        anchors = self.view.anchors()
        if len(anchors) <= stride:
            return [0]
        ends = np.maximum.accumulate(np.searchsorted(anchors, self.view.addresses.rows(intervals.hi)) // stride)
        return list(np.flatnonzero(np.append(True, ends[1:] != ends[:-1])).tolist())

    def _extend(self, intervals: QueryIntervals, table: Table, executor: Executor) -> bool:
        """Compute what the intervals ask for and the view does not have; False if it cannot hold that."""
        row = self.view.purge(intervals, executor.counters)
        if row is not None:
            self.forget(row)
        try:
            for requests in self.requests(intervals, table, executor):
                if len(requests):
                    self.view.compute(requests, executor)
                    executor.note_bytes()
        except TooMuchError:
            self.view.clear(executor.counters)
            self.forget(executor.store.size)
            return False
        return True

    def unmet(self, intervals: QueryIntervals, executor: Executor) -> Requests:
        """For each last event inside an interval the results that reach back further than those the view has."""
        view = self.view
        assert view.addresses is not None
        rows = view.anchors()
        addresses = view.addresses.of_anchors(rows)
        if view.inner.key is not None:
            order = np.argsort(addresses, kind="stable")
            rows, addresses = rows[order], addresses[order]
        seen = view.addresses.ungrouped(intervals)
        span = 0 if view.inner.key is None else executor.store.size + 1
        shift, seq = view.addresses.shift, executor.store.seq
        return Requests(*unmet(seen.lo, seen.hi, addresses, rows, view.since, seq, shift, span), once=True)
