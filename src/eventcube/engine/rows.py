"""Retained events: those that a later match can still use, in order of time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventcube.engine.kernels import Bools, Ints


@dataclass(frozen=True, slots=True)
class Rows:
    """Events in order of time.

    `seq` numbers them as they are released; `pos` is the position in the stream, or partition, for windows of events.
    `rank` is the order in time, equal for ties; `done`: the matches of the event were reported, `ahead`: another run
    reports them. `member[s, i]`: event i is in the stack of slot s. `payload` has the columns that the query needs.
    """

    ts: Ints
    seq: Ints
    pos: Ints
    rank: Ints
    done: Bools
    ahead: Bools
    member: npt.NDArray[np.bool_]
    payload: pa.Table

    def __len__(self) -> int:
        return len(self.ts)

    @classmethod
    def none(cls, columns: pa.Schema, needed: Iterable[str], slots: int) -> Rows:
        """No events, with these columns."""
        numbers, flags = np.empty(0, np.int64), np.empty(0, np.bool_)
        payload = pa.schema([columns.field(name) for name in needed]).empty_table()
        return cls(numbers, numbers, numbers, numbers, flags, flags, np.empty((slots, 0), np.bool_), payload)

    def append(self, more: Rows) -> Rows:
        """These events followed by the others."""
        if not len(self):
            return more
        return Rows(
            np.concatenate([self.ts, more.ts]),
            np.concatenate([self.seq, more.seq]),
            np.concatenate([self.pos, more.pos]),
            np.concatenate([self.rank, more.rank]),
            np.concatenate([self.done, more.done]),
            np.concatenate([self.ahead, more.ahead]),
            np.concatenate([self.member, more.member], axis=1),
            pa.concat_tables([self.payload, more.payload]).combine_chunks(),
        )

    def slice(self, start: int, size: int) -> Rows:
        """Consecutive events."""
        if size == len(self):
            return self
        end = start + size
        return Rows(
            self.ts[start:end],
            self.seq[start:end],
            self.pos[start:end],
            self.rank[start:end],
            self.done[start:end],
            self.ahead[start:end],
            self.member[:, start:end],
            self.payload.slice(start, size),
        )

    def where(self, kept: Bools) -> Rows:
        """The events in the mask."""
        if np.count_nonzero(kept) == len(self):
            return self
        rows = np.flatnonzero(kept)
        dropped = len(self) - len(rows)
        if dropped < len(rows) and rows[0] == dropped:
            # Only the first events are dropped, as when a window moves on: a slice copies nothing.
            return self.slice(dropped, len(rows))
        return self.take(rows)

    def take(self, rows: Ints) -> Rows:
        """The events at these positions."""
        return Rows(
            self.ts[rows],
            self.seq[rows],
            self.pos[rows],
            self.rank[rows],
            self.done[rows],
            self.ahead[rows],
            self.member.take(rows, axis=1),
            self.payload.take(pa.array(rows)),
        )
