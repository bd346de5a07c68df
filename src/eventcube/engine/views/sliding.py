"""How a sliding view answers outer rows. Each strategy says what is computed before the look-up."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from eventcube.engine.counters import Counters
from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.table import ORIGIN, Table
from eventcube.engine.views.kept import Kept, KeptResults, Nearest
from eventcube.engine.views.result_store import QueryIntervals
from eventcube.engine.views.strategy import Executor
from eventcube.engine.views.view import NEVER, AttachedView, Requests, TooMuchError, ViewStrategy
from eventcube.plan.steps import Part, only_emptiness

# Last events computed per pass, so that what a view holds at a time is bounded.
STRIDE = 1 << 14


class Sliding(ViewStrategy):
    """A view that is extended by what outer rows ask for, looked up, and purged."""

    keeps: ClassVar[type[KeptResults]] = KeptResults

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.kept: Kept = Nearest(self.view) if only_emptiness(part) else self.keeps(self.view)
        # Pieces are this many times smaller than a stride, since larger ones asked for more than the view may hold.
        self._subdivision = 1
        # Pieces to recompute after even the smallest asked for too much, each time twice as many.
        self._skips_left, self._skip_length = 0, 8

    @property
    def bytes(self) -> int:
        """What the view holds."""
        return self.kept.bytes

    def missing(self, lo: Ints, hi: Ints, executor: Executor) -> int | None:
        """How many last events between the ends of the intervals are not in the view."""
        if self.view.is_new:
            return None
        anchors = self.attached(executor).anchors
        between = anchors[np.searchsorted(anchors, lo.min()) : np.searchsorted(anchors, hi.max())]
        return int(np.count_nonzero(self.kept.since[between] == NEVER))

    @abstractmethod
    def requests(self, intervals: QueryIntervals, table: Table, view: AttachedView) -> Iterator[Requests]:
        """What to compute before these intervals, some of which may be empty, can be looked up for the outer rows."""

    def forget(self, row: int, view: AttachedView) -> None:
        """Forget records of what lies before the row: the view has dropped it."""

    def join(self, table: Table, executor: Executor) -> Iterator[Table]:
        """The outer rows extended by the inner matches inside each one's interval."""
        if not isinstance(self.kept, KeptResults):
            yield from self.recompute.join(table, executor)
            return
        view = self.attached(executor)
        for piece, intervals in self._pieces(table, view.query_intervals(table), view):
            if intervals is None:
                yield from self.recompute.join(piece, executor)
            else:
                yield from self.kept.join(piece, intervals, view)

    def count(self, table: Table, executor: Executor) -> int:
        """How many rows `join` would give."""
        if self.inner.residual or not isinstance(self.kept, KeptResults):
            return sum(len(out) for out in self.join(table, executor))
        view, total = self.attached(executor), 0
        for piece, intervals in self._pieces(table, view.query_intervals(table), view):
            if intervals is None:
                total += self.recompute.count(piece, executor)
                continue
            counts, first_uses = self.kept.store.count(intervals)
            served = int(counts.sum())
            executor.counters.inner_reused += served - first_uses
            total += served
        return total

    def exists(self, table: Table, executor: Executor) -> Bools:
        """For each outer row whether there is an inner match inside its interval."""
        view, matched = self.attached(executor), np.zeros(len(table), np.bool_)
        marked = table.with_columns({ORIGIN: np.arange(len(table))})
        for piece, intervals in self._pieces(marked, view.query_intervals(marked), view):
            if intervals is None:
                matched[piece[ORIGIN]] = self.recompute.exists(piece, executor)
            elif self.inner.residual and isinstance(self.kept, KeptResults):
                for out in self.kept.join(piece, intervals, view):
                    matched[out[ORIGIN]] = True
            else:
                nonempty, first_uses = self.kept.exists(intervals, view)
                executor.counters.inner_reused += max(0, int(np.count_nonzero(nonempty)) - first_uses)
                matched[piece[ORIGIN]] = nonempty
        return matched

    def close(self, counters: Counters) -> None:
        """Nothing more will be asked."""
        counters.inner_unused += self.kept.unused

    def _pieces(
        self, table: Table, intervals: QueryIntervals, view: AttachedView
    ) -> Iterator[tuple[Table, QueryIntervals | None]]:
        """Outer rows in pieces, each with its intervals once the view is extended by them; None if that is too much."""
        stride = max(1, STRIDE // self._subdivision)
        cuts = _cuts(intervals, stride, view)
        for start, end in zip(cuts, [*cuts[1:], len(table)], strict=True):
            piece = table if len(cuts) == 1 else Table(table.columns, table.data[:, start:end].copy())
            piece_intervals = QueryIntervals(intervals.lo[start:end], intervals.hi[start:end])
            if self._skips_left:
                self._skips_left -= 1
                yield piece, None
            elif self._extend(piece_intervals, piece, view):
                yield piece, piece_intervals
            elif stride > 1:
                self._subdivision = max(self._subdivision, 8 * STRIDE // stride)
                yield from self._pieces(piece, piece_intervals, view)
            else:
                self._skips_left = self._skip_length
                self._skip_length *= 2
                yield piece, None

    def _extend(self, intervals: QueryIntervals, table: Table, view: AttachedView) -> bool:
        """Compute what the intervals ask for and the view does not have; False if it cannot hold that."""
        row = self.kept.purge(intervals, view)
        if row is not None:
            self.forget(row, view)
        try:
            for requests in self.requests(intervals, table, view):
                if len(requests):
                    self.kept.compute(requests, view)
                    view.executor.note_bytes()
        except TooMuchError:
            self.kept.clear(view.counters)
            self.forget(view.store.size, view)
            return False
        return True


def _cuts(intervals: QueryIntervals, stride: int, view: AttachedView) -> list[int]:
    """Where to cut outer rows so that each piece asks for about as many last events as the stride."""
    anchors = view.anchors
    if len(anchors) <= stride:
        return [0]
    ends = np.maximum.accumulate(np.searchsorted(anchors, view.addresses.rows(intervals.hi)) // stride)
    return list(np.flatnonzero(np.append(True, ends[1:] != ends[:-1])).tolist())
