"""The semantic cache: results by the interval they were computed for, intervals that refer to one another."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eventcube.engine.counters import Counters
from eventcube.engine.intervals import chain_lengths, chains, past_empty
from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.table import ORIGIN, Table
from eventcube.engine.views.addresses import Move
from eventcube.engine.views.flags import Flags
from eventcube.engine.views.records import Records
from eventcube.engine.views.result_store import QueryIntervals, ResultStore
from eventcube.engine.views.strategy import Executor, register
from eventcube.engine.views.view import AttachedView, TooMuchError, View, ViewStrategy, blocks
from eventcube.optimizer.cost import LOOK_UP, RECORD, Load
from eventcube.plan.steps import Part, only_emptiness

# Addresses of one record, so that results are sorted by record, then as in other views; no address is larger.
SPAN = 1 << 41
# Records whose addresses fit 64 bits.
_MAX_RECORDS = 1 << 21


@register("semantic")
class Semantic(ViewStrategy):
    """Each interval that is not inside another has a record with its results.

    If a record overlaps it from the left, the new one refers to that and holds only what ends after it; otherwise it
    holds all its results, even those that others hold. Of a negated part only whether each interval is empty.
    """

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.flags = Flags(self.view) if only_emptiness(part) else None
        self.kept = _Kept(self.view)
        # Calls to recompute after there was too much to hold, each time twice as many.
        self._skips_left, self._skip_length = 0, 8

    @classmethod
    def cost(cls, load: Load) -> float | None:
        """As a passive view, but a look-up goes through all records referred to inside the interval (CSV eq. 6)."""
        if load.only_emptiness:
            return load.look_up_cost() + RECORD * load.ends + Flags.update_cost(load)
        chains = load.outer_rows * LOOK_UP * load.ends_inside
        return load.look_up_cost() + chains + RECORD * load.ends + load.update_cost() + load.output_cost()

    @property
    def bytes(self) -> int:
        """Results with their records, or flags."""
        return self.flags.bytes if self.flags else self.kept.results.bytes + 24 * len(self.kept.records)

    def join(self, table: Table, executor: Executor) -> Iterator[Table]:
        """The outer rows extended by the inner matches inside each one's interval."""
        view = self.attached(executor)
        intervals = view.query_intervals(table)
        holder = self._holders(intervals, view)
        if holder is None:
            yield from self.recompute.join(table, executor)
            return
        # While these are on their way, an equal part may ask for more.
        results = self.kept.results.as_it_is()
        for in_record, of in self.kept.lookups(intervals, holder):
            executor.counters.inner_reused -= results.mark(in_record)
            for parent, place in results.pairs(in_record):
                executor.counters.inner_reused += len(parent)
                yield from view.joined(table, results, of[parent], place)

    def count(self, table: Table, executor: Executor) -> int:
        """How many rows `join` would give."""
        if self.inner.residual:
            return sum(len(out) for out in self.join(table, executor))
        view = self.attached(executor)
        distinct, which = view.query_intervals(table).distinct()
        holder = self._holders(distinct, view)
        if holder is None:
            return self.recompute.count(table, executor)
        times, total = np.bincount(which, minlength=len(distinct)), 0
        for in_record, of in self.kept.lookups(distinct, holder):
            counts, first_uses = self.kept.results.count(in_record)
            served = int((counts * times[of]).sum())
            executor.counters.inner_reused += served - first_uses
            total += served
        return total

    def exists(self, table: Table, executor: Executor) -> Bools:
        """For each outer row whether there is an inner match inside its interval."""
        if self.flags is not None:
            return self.flags.exists(table, self.attached(executor))
        matched = np.zeros(len(table), np.bool_)
        for out in self.join(table.with_columns({ORIGIN: np.arange(len(table))}), executor):
            matched[out[ORIGIN]] = True
        return matched

    def close(self, counters: Counters) -> None:
        """Nothing more will be asked."""
        counters.inner_unused += self.kept.results.unused

    def _holders(self, intervals: QueryIntervals, view: AttachedView) -> Ints | None:
        """The record that holds each interval, -1 for an empty one, once all have one; None if that is too much."""
        if self._skips_left:
            self._skips_left -= 1
            return None
        holder = np.full(len(intervals), -1, np.int64)
        nonempty = intervals.lo < intervals.hi
        try:
            if nonempty.any():
                holder[nonempty] = self.kept.extend(intervals.where(nonempty), view)
        except TooMuchError:
            self.kept.clear(view.counters)
            self._skips_left = self._skip_length
            self._skip_length *= 2
            return None
        return holder


class _Kept:
    """Records, each with its results."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._start()
        view.followers.append(self._follow)

    def _start(self) -> None:
        self.results = ResultStore(self._view.height)
        self.records = Records()
        # For each record the one that it extends, -1 for none.
        self._refers = np.zeros(0, np.int64)
        self._purged = 0

    def clear(self, counters: Counters) -> None:
        """Forget everything."""
        counters.inner_unused += self.results.unused
        self._start()

    def lookups(self, intervals: QueryIntervals, holder: Ints) -> Iterator[tuple[QueryIntervals, Ints]]:
        """The intervals in each record they look into, in blocks, and the number of the interval that each is."""
        holds_results = np.zeros(len(self.records), np.int64)
        holds_results[self.results.lasts // SPAN] = 1
        refers = past_empty(self._refers, holds_results)
        lengths = chain_lengths(holder, intervals.lo, refers, self.records.hi)
        for start, end in blocks(lengths):
            of, records = chains(lengths[start:end], holder[start:end], refers)
            of += start
            yield QueryIntervals(intervals.lo[of] + records * SPAN, intervals.hi[of] + records * SPAN), of

    def extend(self, intervals: QueryIntervals, view: AttachedView) -> Ints:
        """Make records until every interval has one that holds it; gives the record's number."""
        distinct, which = intervals.distinct()
        self._purge(int(distinct.lo.min()), view.counters)
        plan = self.records.plan(distinct)
        numbers = np.where(plan.fresh, len(self.records) + np.cumsum(plan.fresh) - 1, plan.holder)
        fresh = distinct.where(plan.fresh)
        if len(self.records) + len(fresh) > _MAX_RECORDS or int(distinct.hi.max()) >= SPAN:
            raise TooMuchError
        view.counters.view_intervals += len(fresh)
        self._compute(fresh, plan.begins[plan.fresh], view)
        self._refers = np.concatenate([self._refers, plan.holder[plan.fresh]])
        self.records.add(fresh)
        view.executor.note_bytes()
        return numbers[which]

    def _compute(self, intervals: QueryIntervals, begins: Ints, view: AttachedView) -> None:
        """Compute the results of each interval that end at its address in `begins` or later."""
        for requests, of in view.requests_for(intervals, begins):
            blocks, size = [], len(self.results)
            for out in view.find_results(view.inner.program, requests):
                first, last = view.addresses.of_results(out)
                owner = of[out[ORIGIN]]
                # Where a last event does not tell the group, results of other groups come along.
                inside = (first >= intervals.lo[owner]) & (last < intervals.hi[owner])
                offset = (owner + len(self.records)) * SPAN
                rows = out.only(view.inner.slots).data
                rows = np.where(rows < 0, -1, rows + view.addresses.shift)
                blocks.append(np.vstack([rows, first + offset, last + offset]).compress(inside, axis=1))
                size += blocks[-1].shape[1]
                if size > View.max_results:
                    raise TooMuchError
            if blocks:
                self.results.add(np.concatenate(blocks, axis=1))

    # Forgetting.

    def _purge(self, address: int, counters: Counters) -> None:
        """Forget records that end before all intervals at hand, once they hold twice as much as after a purge."""
        if len(self.results) + len(self.records) > 2 * max(self._purged, self._view.few):
            alive = self.records.hi > address
            self.records.where(alive)
            # A record whose reference is gone has nothing that ends before the address.
            self.records.lo = np.maximum(self.records.lo, address)
            counters.inner_unused += self._keep(alive)
            self._purged = len(self.results) + len(self.records)

    def _follow(self, move: Move) -> None:
        if move.plain:
            # Results that have left the window are purged later.
            return
        alive = self.records.move(move)
        if not alive.all():
            self._keep(alive)
        if not len(self.results):
            return
        # A result that has lost an event lies in no interval to come.
        block, alive = move.results(self.results.rows)
        block[-2:] += self.results.lasts // SPAN * SPAN
        self.results.keep(block, alive)

    def _keep(self, alive: Bools) -> int:
        """Keep and renumber some records with their results; gives how many of the other results were never used."""
        number = np.where(alive, np.cumsum(alive) - 1, -1)
        refers = self._refers[alive]
        self._refers = np.where(refers < 0, -1, number[refers])
        block = self.results.block.copy()
        owner = number[block[-1] // SPAN]
        block[-2:] += (owner - block[-1] // SPAN) * SPAN
        return self.results.keep(block, owner >= 0)
