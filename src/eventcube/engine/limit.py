"""LIMIT: the earliest matches, found in growing pieces of the input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.output import Output
from eventcube.engine.retention import places_of
from eventcube.engine.rows import Rows
from eventcube.engine.store import States, Store
from eventcube.engine.table import Table, joined
from eventcube.plan.physical import PhysicalQuery
from eventcube.plan.steps import State

# After a piece without matches, the next one is this many times as large.
_GROWTH = 16
# The sort key of a slot that is not taken: before every event.
_UNBOUND = -(2**63)
# A piece with more matches than this is searched again in smaller pieces.
_MAX_FOUND = 1 << 18

# Matches, and their sort keys.
Held = tuple[pa.Table, list[Ints]]


class Earliest:
    """The first `most` matches by (last event, first event, then the bound events in the order of the text).

    If matches are reported at their last event, the matches of a piece all come after those of the piece before.
    Otherwise a piece has all matches that end up to some event, those of the piece before included; they are held,
    with their sort keys, until no later match can end before them.
    """

    def __init__(self, most: int, plan: PhysicalQuery) -> None:
        self.left = most
        self.plan = plan
        self._best: Table | None = None
        self._keys: list[Ints] = []
        self.held: Held | None = None
        # What was held since it was saved or restored; None if that is not known, or as much as all.
        self.unsaved: list[Held] | None = None

    def add(self, table: Table, store: Store, output: Output) -> None:
        """Add matches of the store, and retain the earliest."""
        if not self.left:
            return
        keys = self.sort_keys(table, store, output)
        if self._best is not None:
            table = joined([self._best, table])
            keys = [np.concatenate(pair) for pair in zip(self._keys, keys, strict=True)]
        order = np.lexsort(keys[::-1])[: self.left]
        self._best, self._keys = table.take(order), [k[order] for k in keys]

    def sort_keys(self, table: Table, store: Store, output: Output) -> list[Ints]:
        """The sort keys of matches, the most significant first."""
        rank, place = store.events.rank, store.order
        index = np.arange(store.size) if place is None else place
        sequence = store.events.seq
        keys = [rank[index[output.last(table)]], rank[index[output.first(table)]]]
        for slot in self.plan.positive:
            rows = table[slot]
            keys += [np.where(rows < 0, _UNBOUND, of[index[rows]]) for of in (rank, sequence)]
        return keys

    def settle(self, output: Output, piece: Piece) -> Iterator[pa.RecordBatch]:
        """Accept the matches of a piece; if they are too few and a larger piece finds them again, drop them."""
        if self.plan.forward:
            held_before = 0 if self.held is None else int((self.held[1][0] <= piece.rank).sum())
            piece.settled = piece.last or held_before + (0 if self._best is None else len(self._best)) >= self.left
            if not piece.settled:
                self.drop()
        if self._best is None:
            return
        batch = output.batch(self._best)
        keys, self._best, self._keys = self._keys, None, []
        if self.plan.forward:
            self.hold(pa.Table.from_batches([batch]), keys)
        else:
            self.left -= batch.num_rows
            yield batch

    @property
    def bound(self) -> int | None:
        """The latest rank at which a match still to come may end to be among the first; None if at any."""
        return int(self.held[1][0].max()) if self.held is not None and self.held[0].num_rows >= self.left else None

    def final(self, following: int | None) -> Iterator[pa.RecordBatch]:
        """The held matches, if no later match can precede them.

        `following` is the rank of the next event that can begin a match, None if there is none yet.
        """
        if self.bound is not None and (following is None or self.bound < following):
            self.left = 0
            yield from self.rest()

    def hold(self, table: pa.Table, keys: list[Ints]) -> None:
        """Hold matches, with their sort keys, if they are among the first."""
        if self.unsaved is not None:
            self.unsaved.append((table, keys))
            if sum(len(matches) for matches, _ in self.unsaved) > self.left:
                self.unsaved = None
        if self.held is not None:
            table = pa.concat_tables([self.held[0], table])
            keys = [np.concatenate(pair) for pair in zip(self.held[1], keys, strict=True)]
        order = np.lexsort(keys[::-1])[: self.left]
        self.held = table.take(pa.array(order)), [k[order] for k in keys]

    def drop(self) -> None:
        """Discard the matches of this piece."""
        self._best, self._keys = None, []

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The matches still held at the end of the input."""
        if self.held is not None:
            yield from self.held[0].combine_chunks().to_batches()
            self.held = None


@dataclass(slots=True)
class Piece:
    """A piece of the events, and the number of matches found in it; `stacks` has the stack of each slot.

    Its matches end before the row `hi`, at `rank` or earlier; `last`: no match can end later. A piece with more than
    `most` matches is crowded, and searched again in smaller pieces; `most` is None if there is no smaller piece.
    """

    rows: Rows
    stacks: tuple[int, ...]
    states: States
    hi: int
    rank: int
    last: bool
    most: int | None
    found: int = 0
    settled: bool = False

    @property
    def crowded(self) -> bool:
        return self.most is not None and self.found > self.most


class Pieces:
    """The due events in pieces in order of time, growing while nothing is found, until the limit is reached.

    If matches are reported at their first event, each piece has all of those, and pieces differ in how late matches may
    end; negated parts see later events, too.
    """

    def __init__(self, limit: Earliest, rows: Rows, stacks: tuple[int, ...], states: States) -> None:
        plan = limit.plan
        self._limit, self._rows, self._stacks, self._forward = limit, rows, stacks, plan.forward
        self._states, self._state = states, states.of_each(len(rows))
        due = np.flatnonzero(self._taken(plan.first if plan.forward else plan.last) & (self._state == State.DUE.value))
        self._positive = list(plan.positive)
        # The events that may be the last of a match.
        self._ends = due
        self.following: int | None = None
        if plan.forward and len(due):
            self._ends = np.flatnonzero(self._taken(self._positive))
            bound = int(rows.rank[-1]) if limit.bound is None else limit.bound
            inside = (self._ends >= due[0]) & (rows.rank[self._ends] <= bound)
            self._ends = self._ends[inside]
        if plan.forward:
            # With windows of events, an early event of an idle partition may be due long after later ones of others.
            future = self._state == State.FUTURE.value
            self.following = int(rows.rank[np.argmax(future)]) if future.any() else None

    def _taken(self, slots: Sequence[int]) -> Bools:
        """The events that can be bound to one of the slots."""
        return places_of((self._rows.stacks[self._stacks[slot]] for slot in slots), len(self._rows))

    def __iter__(self) -> Iterator[Piece]:
        lo, size, crowded_at = 0, 1, len(self._ends)
        while self._limit.left and (first := int(np.searchsorted(self._ends, lo))) < len(self._ends):
            if first < crowded_at < len(self._ends):
                # The piece up to there is crowded: try half of it.
                size = min(size, max(1, (crowded_at - first) // 2))
            piece = self._piece(lo, self._ends[first : first + size])
            yield piece
            if piece.settled:
                return
            if piece.crowded:
                self._limit.drop()
                crowded_at, size = first + size, max(1, size // _GROWTH)
            else:
                lo, size = piece.hi, size * (2 if piece.found else _GROWTH)

    def _piece(self, lo: int, ends: Ints) -> Piece:
        """The piece in which matches end with these events, or others of the same ranks."""
        rows, rank = self._rows, int(self._rows.rank[ends[-1]])
        hi = int(np.searchsorted(rows.rank, rank, side="right"))
        # Each piece repeats the search of the one before, so fewer matches are too many.
        max_found = _MAX_FOUND // _GROWTH if self._forward else _MAX_FOUND
        most = max_found + 4 * self._limit.left if len(ends) > 1 else None
        last = bool(self._ends[-1] < hi)
        if self._forward:
            # Positive slots get stacks of their own, without later events, which negated parts still see.
            cut = {
                number: i for i, number in enumerate({self._stacks[s]: None for s in self._positive}, len(rows.stacks))
            }
            added = tuple(_before(rows.stacks[number], hi) for number in cut)
            stacks = list(self._stacks)
            for slot in self._positive:
                stacks[slot] = cut[stacks[slot]]
            piece_rows = replace(rows, stacks=(*rows.stacks, *added))
            return Piece(piece_rows, tuple(stacks), self._states.copy(), hi, rank, last, most)
        # Events after its last one do not affect a match.
        done = (np.arange(hi) < lo) | (self._state[:hi] == State.DONE.value)
        each = np.where(done, State.DONE.value, State.DUE.value)
        return Piece(rows.slice(0, hi), self._stacks, States(0, 0, each), hi, rank, last, most)


def _before(stack: Ints, place: int) -> Ints:
    return stack[: np.searchsorted(stack, place)]
