"""LIMIT: the earliest matches, kept while all others pass by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.output import Output
from eventcube.engine.rows import Rows
from eventcube.engine.store import Store
from eventcube.engine.table import Table, joined
from eventcube.plan.physical import PhysicalQuery, State

# Pieces in which nothing is found are followed by ones so many times as large.
_GROWTH = 16
# More matches than this are too many to look at for a few.
_CROWD = 1 << 18


class Earliest:
    """The first matches by (last, first, then the bound events in the order of the text); never more than `most`.

    Where matches are reported at their last event, a piece's matches all come after those of the piece before.
    Otherwise they are held, with their sort keys, until all that can still begin begins later than they end.
    """

    def __init__(self, most: int, plan: PhysicalQuery) -> None:
        self.left = most
        self.plan = plan
        self._best: Table | None = None
        self._keys: list[Ints] = []
        self.held: tuple[pa.Table, list[Ints]] | None = None

    def add(self, table: Table, store: Store, output: Output) -> None:
        """Consider some more matches of the store."""
        if not self.left:
            return
        slots = [s.index for s in self.plan.logical.positive]
        keys = self._sort_keys(table, store, output, slots)
        if self._best is not None:
            table = joined([self._best, table])
            keys = [np.concatenate(pair) for pair in zip(self._keys, keys, strict=True)]
        order = np.lexsort(keys[::-1])[: self.left]
        self._best, self._keys = table.take(order), [k[order] for k in keys]

    def _sort_keys(self, table: Table, store: Store, output: Output, slots: list[int]) -> list[Ints]:
        rank, place = store.events.rank, store.order
        index = np.arange(store.size) if place is None else place
        sequence = store.events.seq
        keys = [rank[index[output.last(table)]], rank[index[output.first(table)]]]
        for slot in slots:
            rows = table[slot]
            keys += [np.where(rows < 0, -1, rank[index[rows]]), np.where(rows < 0, -1, sequence[index[rows]])]
        return keys

    def settled(self, output: Output, following: int | None) -> Iterator[pa.RecordBatch]:
        """The matches of this piece that are known to be among the first.

        `following` is the rank of the next event that can begin a match, None if there is none yet.
        """
        if self._best is not None:
            batch = output.batch(self._best)
            keys, self._best, self._keys = self._keys, None, []
            if not self.plan.forward:
                self.left -= batch.num_rows
                yield batch
                return
            self._hold(pa.Table.from_batches([batch]), keys)
        if self.held is None or self.held[0].num_rows < self.left:
            return
        if following is None or (self.held[1][0] < following).all():
            self.left = 0
            yield from self.rest()

    def _hold(self, table: pa.Table, keys: list[Ints]) -> None:
        if self.held is not None:
            table = pa.concat_tables([self.held[0], table])
            keys = [np.concatenate(pair) for pair in zip(self.held[1], keys, strict=True)]
        order = np.lexsort(keys[::-1])[: self.left]
        self.held = table.take(pa.array(order)), [k[order] for k in keys]

    def drop(self) -> None:
        """Forget the matches of this piece."""
        self._best, self._keys = None, []

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What was held until the end."""
        if self.held is not None:
            yield from self.held[0].combine_chunks().to_batches()
            self.held = None


@dataclass(slots=True)
class Piece:
    """Some of the due events: what to look at, and how many matches were found there.

    Rows before `lo` are done with, those from `hi` on are not yet due. A piece with many more matches than are wanted
    is crowded, and is taken again in smaller ones; `most` is None if it cannot be smaller.
    """

    rows: Rows
    state: Ints
    hi: int
    following: int | None
    most: int | None
    found: int = 0

    @property
    def crowded(self) -> bool:
        return self.most is not None and self.found > self.most


class Pieces:
    """The due events in pieces in order of time, larger where nothing is found, until the limit is reached."""

    def __init__(self, limit: Earliest, rows: Rows, state: Ints | None, trigger: Bools, *, forward: bool) -> None:
        self._limit, self._rows, self._forward = limit, rows, forward
        self._state = np.full(len(rows), State.DUE.value) if state is None else state
        self._due = np.flatnonzero(trigger & (self._state == State.DUE.value))

    def __iter__(self) -> Iterator[Piece]:
        lo, size = 0, 1
        while self._limit.left and (first := int(np.searchsorted(self._due, lo))) < len(self._due):
            piece = self._piece(lo, self._due[first : first + size])
            yield piece
            if piece.crowded:
                self._limit.drop()
                size = max(1, size // _GROWTH)
            else:
                lo, size = piece.hi, size * (2 if piece.found else _GROWTH)

    def _piece(self, lo: int, due: Ints) -> Piece:
        """The piece with these due events, and all of their ranks."""
        rows, size = self._rows, len(self._rows)
        hi = int(np.searchsorted(rows.rank, rows.rank[due[-1]], side="right"))
        most = _CROWD + 4 * self._limit.left if len(due) > 1 else None
        row = np.arange(size)
        done = (row < lo) | (self._state == State.DONE.value)
        if not self._forward:
            # What comes later than its last event is nothing to a match.
            state = np.where(done, State.DONE.value, State.DUE.value)[:hi]
            return Piece(rows.slice(0, hi), state, hi, None, most)
        # With windows of events an early event of a quiet partition may be due long after later ones of others.
        later = (self._state == State.FUTURE.value) | ((row >= hi) & ~done)
        state = np.where(later, State.FUTURE.value, np.where(done, State.DONE.value, State.DUE.value))
        following = int(rows.rank[np.argmax(later)]) if later.any() else None
        return Piece(rows, state, hi, following, most)
