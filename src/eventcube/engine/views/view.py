"""A view of a nested part: where it is asked, and what can be asked of it there.

A result is found by its last event. For each event that can be the last one, a view knows from which event on it has
all results that end there (`since`). A strategy says what to add to that when intervals are asked for; the rest is the
same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np

from eventcube.engine.intervals import combined, unmet
from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.table import ANCHOR, END, ORIGIN, START, Table
from eventcube.engine.views.addresses import Move, RowAddresses
from eventcube.engine.views.iterative import Iterative
from eventcube.engine.views.result_store import QueryIntervals, ResultStore
from eventcube.engine.views.strategy import Executor, Strategy, Views, interval, standalone
from eventcube.plan.steps import Bind, Part, Program

# In `since`: nothing is known of a last event.
NEVER = 2**62
# How many times more results a view may hold before it drops some, if it is shared.
_MORE_IF_SHARED = 8
# Requests that are computed in one pass.
REQUESTS = 1 << 18


def blocks(widths: Ints) -> Iterator[tuple[int, int]]:
    """Runs of rows with about `REQUESTS` requests each, given how many each row has."""
    cuts = np.flatnonzero(np.diff(np.cumsum(widths) // REQUESTS)) + 1
    return pairwise([0, *cuts.tolist(), len(widths)])


class TooMuchError(Exception):
    """There are more results than a view may hold."""


@dataclass(frozen=True, slots=True)
class Requests:
    """Results to compute: those that end with the event of a row and begin no earlier than another row."""

    rows: Ints
    starts: Ints
    # Whether all rows are different.
    once: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def furthest(self) -> Bools:
        """Of the requests for one row the one that reaches furthest back, and so includes the others."""
        if self.once:
            return np.ones(len(self), np.bool_)
        order = np.lexsort([self.starts, self.rows])
        rows = self.rows[order]
        furthest = np.zeros(len(self), np.bool_)
        furthest[order[np.append(True, rows[1:] != rows[:-1])]] = True
        return furthest


class AttachedView:
    """A view in one store, where it can be asked."""

    def __init__(self, part: Part, executor: Executor) -> None:
        self.part, self.inner = part, standalone(part)
        self.executor, self.store, self.counters = executor, executor.store, executor.counters
        self.addresses = RowAddresses(self.inner, executor)

    @cached_property
    def anchors(self) -> Ints:
        """The rows of events that can be the last of a result."""
        stacks = [self.store.stack(s).rows for s in self.inner.last]
        return stacks[0] if len(stacks) == 1 else np.unique(np.concatenate(stacks))

    def query_intervals(self, table: Table) -> QueryIntervals:
        """The intervals of outer rows, as addresses."""
        lo, hi = interval(self.part, table, self.executor)
        self.counters.view_lookups += len(table)
        return self.addresses.of_intervals(table, lo, hi)

    def requests_for(self, intervals: QueryIntervals, begins: Ints) -> Iterator[tuple[Requests, Ints]]:
        """Requests for the results of each interval that end at an address or later, and the number of its interval."""
        rows = self.anchors
        addresses = self.addresses.of_anchors(rows)
        order = np.argsort(addresses, kind="stable")
        seen = self.addresses.ungrouped(QueryIntervals(begins, intervals.hi))
        lo, hi = np.searchsorted(addresses[order], seen.lo), np.searchsorted(addresses[order], seen.hi)
        width, starts = np.maximum(hi - lo, 0), self.addresses.rows(intervals.lo)
        for start, end in blocks(width):
            sizes = width[start:end]
            of = np.repeat(np.arange(start, end), sizes)
            at = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes) + lo[of]
            yield Requests(rows[order[at]], starts[of]), of

    def unmet(self, intervals: QueryIntervals, since: Ints) -> Requests:
        """For each last event inside an interval the results that reach back further than those that are known."""
        rows, keyed = self.anchors, self.inner.key is not None
        addresses = self.addresses.of_anchors(rows)
        if keyed:
            order = np.argsort(addresses, kind="stable")
            rows, addresses = rows[order], addresses[order]
        seen = self.addresses.ungrouped(intervals)
        span = self.store.size + 1 if keyed else 0
        shift, seq = self.addresses.shift, self.store.seq
        return Requests(*unmet(seen.lo, seen.hi, addresses, rows, since, seq, shift, span), once=True)

    def find_results(self, program: Program, requests: Requests) -> Iterator[Table]:
        """The results that are requested, with their last event as ANCHOR and the number of the request as ORIGIN."""
        numbers = np.arange(len(requests))
        rows = requests.rows
        table = Table((START, END, ANCHOR, ORIGIN), np.vstack([requests.starts, rows, rows, numbers]))
        first = program[0]
        if isinstance(first, Bind) and first.is_anchor and first.is_free and self.inner.last == (first.slot,):
            # The program would only bind the anchor, which is at hand.
            table, program = table.with_columns({first.slot: rows}), program[1:]
        for out in self.executor.run(program, table):
            self.counters.inner_computed += len(out)
            yield out

    def joined(self, table: Table, results: ResultStore, parent: Ints, place: Ints) -> Iterator[Table]:
        """Outer rows, by number, side by side with results, by place in their store; those that pass what is left."""
        data = combined(table.data, results.rows, parent, place, self.addresses.shift)
        return self.executor.run(self.inner.residual, Table((*table.columns, *self.inner.slots), data))


class View:
    """What strategies keep of one nested part, or of several that are equal, from one store to the next."""

    # A view drops results that no interval asks for any more once it holds twice this many.
    purge_threshold = 1 << 15
    # Results that a view may hold; what asks for more is recomputed.
    max_results = 1 << 21

    def __init__(self, part: Part) -> None:
        self.height = len(standalone(part).slots)
        self.shared = False
        # Called with every new store, so that what is kept moves along.
        self.followers: list[Callable[[Move], object]] = []
        self._seq = np.zeros(0, np.int64)
        self._addresses: RowAddresses | None = None
        # Those who asked in this store.
        self._attached: dict[tuple[Executor, int], AttachedView] = {}

    @property
    def few(self) -> int:
        """Results of which none are dropped; more if several ask, as one goes over the events after the other."""
        return View.purge_threshold * (_MORE_IF_SHARED if self.shared else 1)

    @property
    def is_new(self) -> bool:
        """Whether the view was never asked."""
        return self._addresses is None

    def attach(self, part: Part, executor: Executor) -> AttachedView:
        """The view in the executor's store, to which all that is kept has moved, for one of the equal parts."""
        key = executor, id(part)
        if key in self._attached:
            return self._attached[key]
        now, before = AttachedView(part, executor), self._addresses
        if before is None or before.store.sorted is not now.store.sorted:
            move = Move(before or now.addresses, now.addresses, self._seq)
            self._addresses, self._seq = now.addresses, now.store.seq
            self._attached.clear()
            for follow in self.followers:
                follow(move)
        self._attached[key] = now
        return now


class ViewStrategy(Strategy):
    """A strategy that keeps a view, which twins of it share."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.view = View(part)
        self.inner = standalone(part)
        self.recompute = Iterative(part)

    def keep_in(self, views: Views) -> None:
        """Take note of where the view can be found."""
        super().keep_in(views)
        self.view.shared = views.shared

    def twin(self, part: Part) -> Self:
        """The strategy for an equal part, with the same view."""
        twin = copy(self)
        twin.part, twin.inner, twin.recompute = part, standalone(part), Iterative(part)
        return twin

    def attached(self, executor: Executor) -> AttachedView:
        """The view in the executor's store."""
        return self.view.attach(self.part, executor)
