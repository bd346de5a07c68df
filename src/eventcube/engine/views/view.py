"""What the continuous sliding views share: keep, extend, look up and purge the results of a nested part.

A result is found by its last event. For each event that can be the last one, a view knows from which event on it has
all results that end there (`since`). A strategy says what to add to that when intervals are asked for; the rest is the
same for all. An event has an *address*: its row in the store, shifted so that it stays the same from one batch to the
next. Where a key sorts the store, or an equality splits the view into groups, addresses are computed for each store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from eventcube.engine.columns import Column
from eventcube.engine.counters import Counters
from eventcube.engine.expressions import place_among, valid_mask
from eventcube.engine.intervals import block_of, combined
from eventcube.engine.kernels import Array, Bools, Ints
from eventcube.engine.store import Store
from eventcube.engine.table import ANCHOR, END, ORIGIN, START, Table
from eventcube.engine.views.result_store import QueryIntervals, ResultStore, nearest_before
from eventcube.engine.views.strategy import Executor, interval, standalone
from eventcube.plan.steps import Bind, Nested, Part, Program, StandalonePart

# In `since`: nothing is known of a last event.
NEVER = 2**62
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


class RowAddresses:
    """The addresses of events and intervals in one store, for one nested part."""

    def __init__(self, inner: StandalonePart, executor: Executor) -> None:
        self.store = executor.store
        self.inner, self._executor = inner, executor
        self.plain = self.store.order is None and inner.key is None
        self.shift = int(self.store.events.seq[0]) if self.plain and self.store.size else 0
        # The values, in order, of the correlation key that splits the results into groups.
        self.values: Array = np.zeros(0, np.int64)
        if inner.key is not None:
            known = self.value_of(self.store.stack(inner.key.slot).rows)
            self.values = np.unique(known.values[valid_mask(known)])

    def value_of(self, rows: Ints) -> Column:
        """The values of the correlation key of events."""
        assert self.inner.key is not None
        return self._executor.value_of(self.inner.key.inner, rows)

    @property
    def groups(self) -> int:
        """How many groups the correlation key splits the results into."""
        return max(1, len(self.values))

    def _offset(self, column: Column) -> Ints:
        """The address at which the group of each value begins; below 0 for a value that no event of the part has."""
        return place_among(self.values, column) * (self.store.size + 1)

    def of_intervals(self, table: Table, lo: Ints, hi: Ints) -> QueryIntervals:
        """The intervals of outer rows."""
        hi = np.maximum(lo, hi)
        if self.inner.key is None:
            return QueryIntervals(lo + self.shift, hi + self.shift)
        offset = self._offset(self._executor.value(self.inner.key.outer, table))
        return QueryIntervals(lo + offset, np.where(offset < 0, lo, hi) + offset)

    def of_results(self, table: Table) -> tuple[Ints, Ints]:
        """The addresses of the first and the last events of results."""
        slots, offset = self.inner.slots, self._offsets(table)
        return table.first(slots, optional=True) + offset, table.last(slots) + offset

    def block(self, table: Table, since: Ints) -> Ints:
        """Those results that the view does not have: their events, then their addresses."""
        rows = table.only(self.inner.slots).data
        return block_of(rows, table[ANCHOR], self._offsets(table), since, self.store.seq, self.shift)

    def _offsets(self, table: Table) -> Ints:
        """The difference between the addresses of each result and its rows; below 0 if its key is null."""
        if self.inner.key is None:
            return np.full(len(table), self.shift, np.int64)
        return self._offset(self._executor.value(self.inner.key.inner, table))

    def of_anchors(self, rows: Ints) -> Ints:
        """The addresses of events that may be the last of a result; below 0 for one that is of no group."""
        key = self.inner.key
        if key is None or key.end is None:
            return rows + self.shift
        return rows + self._offset(self._executor.value_of(key.end, rows))

    def rows(self, addresses: Ints) -> Ints:
        """The rows of addresses."""
        return addresses - self.shift if self.inner.key is None else addresses % (self.store.size + 1)

    def group(self, addresses: Ints) -> Ints:
        """The number of the group that each address is in."""
        return np.zeros(len(addresses), np.int64) if self.inner.key is None else addresses // (self.store.size + 1)

    def offsets_after(self, before: RowAddresses, rows: Ints) -> Ints:
        """For each group of the store before the address at which it begins now; below 0 if no event of it is left.

        Values may have other codes now, so that the latest event of each group says which value it has.
        """
        key = self.inner.key
        if key is None:
            return np.zeros(1, np.int64)
        keyed = before.store.stack(key.slot).rows
        group = place_among(before.values, before.value_of(keyed))
        latest = np.full(before.groups, -1, np.int64)
        latest[group[group >= 0]] = rows[keyed[group >= 0]]
        offsets = np.full(before.groups, -1, np.int64)
        offsets[latest >= 0] = self._offset(self.value_of(latest[latest >= 0]))
        return offsets

    def ungrouped(self, intervals: QueryIntervals) -> QueryIntervals:
        """Intervals as rows, if the last events of results do not tell which group they are of."""
        if self.inner.key is None or self.inner.key.end is not None:
            return intervals
        return QueryIntervals(self.rows(intervals.lo), self.rows(intervals.hi))


def _moved(values: Ints, gone: int, size: int, fresh: int) -> Ints:
    """The values without the first `gone`, for `size` rows; rows that are new get the value `fresh`."""
    out = np.empty(size, np.int64)
    kept = values[gone : gone + size]
    out[: len(kept)] = kept
    out[len(kept) :] = fresh
    return out


class View:
    """The results kept for one nested part, or for a negated one only how near before each last event one begins."""

    # A view drops results that no interval asks for any more once it holds twice this many.
    purge_threshold = 1 << 15
    # Results that a view may hold; what asks for more is recomputed.
    max_results = 1 << 21

    def __init__(self, part: Part) -> None:
        self.part, self.inner = part, standalone(part)
        by_tuples = isinstance(part, Nested) or bool(self.inner.residual)
        key = self.inner.key
        self.results = (
            ResultStore(len(self.inner.slots)) if by_tuples or (key is not None and key.end is None) else None
        )
        self.since = np.zeros(0, np.int64)
        self.nearest = np.zeros(0, np.int64)
        self.addresses: RowAddresses | None = None
        self._seq = np.zeros(0, np.int64)
        self._anchors: Ints | None = None
        self._purged = self.purge_threshold
        # Called with every new store: addresses before and now, and the rows that old rows became.
        self.followers: list[Callable[[RowAddresses, RowAddresses, Ints], None]] = []

    @property
    def bytes(self) -> int:
        """Bytes of the results, or of a number for each last event that is known."""
        return self.results.bytes if self.results is not None else 8 * int((self.since < NEVER).sum())

    # From one store to the next.

    def attach(self, executor: Executor) -> RowAddresses:
        """Turn to the executor's store, if it is a new one."""
        if self.addresses is not None and self.addresses.store is executor.store:
            return self.addresses
        before, self.addresses = self.addresses, RowAddresses(self.inner, executor)
        self._anchors = None
        self._move(executor.store, before, executor.counters)
        return self.addresses

    def _move(self, store: Store, before: RowAddresses | None, counters: Counters) -> None:
        assert self.addresses is not None
        seq, self._seq = self._seq, store.seq
        gone = (
            self.addresses.shift - before.shift if before is not None and before.plain and self.addresses.plain else -1
        )
        if gone >= 0 and not self.followers:
            # The usual case: all rows move by the same number.
            self.since = _moved(self.since, gone, store.size, NEVER)
            if self.results is not None:
                counters.inner_unused += self.results.drop_before(self.addresses.shift)
            else:
                self.nearest = _moved(self.nearest, gone, store.size, -1)
            return
        since, nearest = np.full(store.size, NEVER, np.int64), np.full(store.size, -1, np.int64)
        rows = store.rows_of(seq)
        left = rows >= 0
        since[rows[left]], nearest[rows[left]] = self.since[left], self.nearest[left]
        self.since, self.nearest = since, nearest
        if before is None:
            return
        for follow in self.followers:
            follow(before, self.addresses, rows)
        if self.results is None:
            return
        if self.addresses.plain:
            counters.inner_unused += self.results.drop_before(self.addresses.shift)
            return
        old = self.results.rows
        mapped = np.where(old < 0, -1, rows[old]) if old.size else old
        alive: Bools = np.asarray(((mapped >= 0) | (old < 0)).all(axis=0))
        first, last = self.addresses.of_results(Table(self.inner.slots, mapped))
        counters.inner_unused += self.results.keep(np.vstack([mapped, first, last]), alive)

    def purge(self, intervals: QueryIntervals, counters: Counters) -> int | None:
        """Forget results that end before all intervals, once the view holds many; gives the row they end before.

        If they are asked for again, they are computed again.
        """
        assert self.addresses is not None
        if self.results is None or len(self.results) < min(2 * self._purged, self.max_results // 4):
            return None
        nonempty = intervals.nonempty()
        if not len(nonempty):
            return None
        row = int(self.addresses.rows(nonempty.lo).min())
        if self.inner.key is None:
            counters.inner_unused += self.results.drop_before(row + self.addresses.shift)
        else:
            counters.inner_unused += self.results.keep(
                self.results.block, self.addresses.rows(self.results.lasts) >= row
            )
        self.since[:row] = NEVER
        self._purged = max(len(self.results), self.purge_threshold)
        return row

    def clear(self, counters: Counters) -> None:
        """Forget everything."""
        counters.inner_unused += 0 if self.results is None else self.results.unused
        self.results = None if self.results is None else ResultStore(len(self.inner.slots))
        self.since[:] = NEVER
        self._purged = self.purge_threshold

    # Asking.

    def query_intervals(self, table: Table, executor: Executor) -> QueryIntervals:
        """The intervals of outer rows, as addresses."""
        addresses = self.attach(executor)
        lo, hi = interval(self.part, table, executor)
        executor.counters.view_lookups += len(table)
        return addresses.of_intervals(table, lo, hi)

    def anchors(self) -> Ints:
        """The rows of events that can be the last of a result."""
        assert self.addresses is not None
        if self._anchors is None:
            stacks = [self.addresses.store.stack(s).rows for s in self.inner.last]
            self._anchors = stacks[0] if len(stacks) == 1 else np.unique(np.concatenate(stacks))
        return self._anchors

    def requests_for(self, intervals: QueryIntervals, begins: Ints) -> Iterator[tuple[Requests, Ints]]:
        """Requests for the results of each interval that end at an address or later, and the number of its interval."""
        assert self.addresses is not None
        rows = self.anchors()
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

    # Computing.

    def compute(self, requests: Requests, executor: Executor) -> None:
        """Compute the requested results, keep those that are new, and note what is known now."""
        seq = executor.store.seq
        if self.results is not None:
            furthest = requests.furthest
            self._keep(self.find_results(self.inner.program, requests, executor), furthest, executor)
            rows = requests.rows[furthest]
            self.since[rows] = np.minimum(seq[requests.starts[furthest]], self.since[rows])
            return
        from_seq, known = seq[requests.starts], self.since[requests.rows]
        begins = np.full(len(seq), -1, np.int64)
        for out in self.find_results(self.inner.nearest, requests, executor):
            np.maximum.at(begins, out[ANCHOR], out.first(self.inner.slots, optional=True))
        nearest = begins[requests.rows]
        # Where there is a result, it is never necessary to look further back.
        self.nearest[requests.rows] = np.where(nearest >= 0, seq[nearest], -1)
        self.since[requests.rows] = np.where(nearest >= 0, -1, np.minimum(from_seq, known))

    def find_results(self, program: Program, requests: Requests, executor: Executor) -> Iterator[Table]:
        """The results that are requested, with their last event as ANCHOR and the number of the request as ORIGIN."""
        numbers = np.arange(len(requests))
        rows = requests.rows
        table = Table((START, END, ANCHOR, ORIGIN), np.vstack([requests.starts, rows, rows, numbers]))
        first = program[0]
        if isinstance(first, Bind) and first.is_anchor and first.is_free and self.inner.last == (first.slot,):
            # The program would only bind the anchor, which is at hand.
            table, program = table.with_columns({first.slot: rows}), program[1:]
        for out in executor.run(program, table):
            executor.counters.inner_computed += len(out)
            yield out

    def _keep(self, found: Iterator[Table], wanted: Bools, executor: Executor) -> None:
        """Keep those results of the wanted requests that the view does not have."""
        assert self.results is not None
        assert self.addresses is not None
        blocks = []
        size = len(self.results)
        for out in found:
            blocks.append(self.addresses.block(out if wanted.all() else out.where(wanted[out[ORIGIN]]), self.since))
            size += blocks[-1].shape[1]
            if size > self.max_results:
                raise TooMuchError
        if blocks:
            self.results.add(blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1))

    # Answering.

    def extended(self, table: Table, results: ResultStore, parent: Ints, place: Ints) -> Table:
        """Outer rows, by number, side by side with results, by place in their store."""
        assert self.addresses is not None
        data = combined(table.data, results.rows, parent, place, self.addresses.shift)
        return Table((*table.columns, *self.inner.slots), data)

    def exists(self, intervals: QueryIntervals) -> Bools:
        """For each interval whether there is a result in it, for a view without tuples."""
        assert self.addresses is not None
        anchors = self.anchors()
        anchors = anchors[self.nearest[anchors] >= 0]
        first = self.addresses.store.rows_of(self.nearest[anchors])
        anchors, first = anchors[first >= 0], first[first >= 0]
        last = self.addresses.of_anchors(anchors)
        first = first + (last - anchors)
        order = np.argsort(last, kind="stable")
        if not len(order):
            return np.zeros(len(intervals), np.bool_)
        return nearest_before(last[order], first[order], intervals)
