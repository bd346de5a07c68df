"""Retained events: those that a later match can still use, in order of time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from eventcube.engine.kernels import Array, Bools, Ints
from eventcube.engine.payload import Payload


@dataclass(frozen=True, slots=True)
class Rows:
    """Events in order of time, each once for all queries of a workload.

    `seq` numbers them as they are released. `rank` is the order in time, equal for ties. `positions` has their places
    in the stream or in a partition, one array for each partitioning by which windows count. `stacks` has the places
    of the events of each stack, ascending. `halo` is -1 or 1 for events that belong to the slice before or after, which
    reports their matches; None if there are none.
    """

    ts: Ints
    seq: Ints
    rank: Ints
    positions: tuple[Ints, ...]
    stacks: tuple[Ints, ...]
    payload: Payload
    halo: Array | None = None

    def __len__(self) -> int:
        return len(self.ts)

    @classmethod
    def none(cls, columns: pa.Schema, stacks: int, partitionings: int) -> Rows:
        """No events, with these columns."""
        numbers = np.empty(0, np.int64)
        payload = Payload(columns.empty_table(), 0)
        return cls(numbers, numbers, numbers, (numbers,) * partitionings, (numbers,) * stacks, payload)

    def append(self, more: Rows) -> Rows:
        """These events followed by the others."""
        size = len(self)
        if not size:
            return more
        if not len(more):
            return self
        ts = np.concatenate([self.ts, more.ts])
        return Rows(
            ts,
            np.concatenate([self.seq, more.seq]),
            ts if self.rank is self.ts and more.rank is more.ts else np.concatenate([self.rank, more.rank]),
            tuple(np.concatenate(pair) for pair in zip(self.positions, more.positions, strict=True)),
            tuple(_appended(one, other, size) for one, other in zip(self.stacks, more.stacks, strict=True)),
            self.payload.append(more.payload),
            None if self.halo is None or more.halo is None else np.concatenate([self.halo, more.halo]),
        )

    def slice(self, start: int, size: int) -> Rows:
        """Consecutive events."""
        if size == len(self):
            return self
        end = start + size
        ts = self.ts[start:end]
        return Rows(
            ts,
            self.seq[start:end],
            ts if self.rank is self.ts else self.rank[start:end],
            tuple(p[start:end] for p in self.positions),
            tuple(_sliced(stack, start, end) for stack in self.stacks),
            self.payload.slice(start, size),
            None if self.halo is None else self.halo[start:end],
        )

    def slice_from(self, start: int) -> Rows:
        """The events from a place on."""
        return self.slice(start, len(self) - start)

    def where(self, kept: Bools) -> Rows:
        """The events in the mask."""
        if np.count_nonzero(kept) == len(self):
            return self
        rows = np.flatnonzero(kept)
        dropped = len(self) - len(rows)
        if len(rows) and dropped < len(rows) and rows[0] == dropped:
            # Only the first events are dropped, as when a window moves on: a slice copies nothing.
            return self.slice(dropped, len(rows))
        # The place of each event among those that are left.
        place = np.cumsum(kept) - 1
        return self._taken(rows, tuple(place[stack[kept[stack]]] for stack in self.stacks))

    def _taken(self, rows: Ints, stacks: tuple[Ints, ...]) -> Rows:
        ts = self.ts[rows]
        return Rows(
            ts,
            self.seq[rows],
            ts if self.rank is self.ts else self.rank[rows],
            tuple(p[rows] for p in self.positions),
            stacks,
            self.payload.select(rows),
            None if self.halo is None else self.halo[rows],
        )

    def take(self, rows: Ints) -> Rows:
        """Some events, in any order."""
        place = np.full(len(self), -1, np.int64)
        place[rows] = np.arange(len(rows))
        places = (place[stack] for stack in self.stacks)
        return self._taken(rows, tuple(np.sort(p[p >= 0]) for p in places))

    def numbered(self, first: int) -> Rows:
        """The same events with sequence numbers from the first one on."""
        return replace(self, seq=np.arange(first, first + len(self), dtype=np.int64))


def _appended(one: Ints, other: Ints, size: int) -> Ints:
    return np.concatenate([one, other + size]) if len(other) else one


def _sliced(stack: Ints, start: int, end: int) -> Ints:
    lo, hi = np.searchsorted(stack, (start, end))
    return stack[lo:hi] - start if start else stack[lo:hi]
