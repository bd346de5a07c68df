"""The events a query still needs, in order of time, between one batch and the next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventcube.engine.kernels import Bools, Ints


@dataclass(frozen=True, slots=True)
class Rows:
    """Events in order of time, one entry each: time, place in the stream, and which stacks they are in.

    `seq` numbers them as they come; `pos` is the place in the stream, or partition, that count windows go by.
    `rank` is the order in time, equal where neither of two events is before the other; `done` says that the matches
    of an event were reported, `ahead` that another run reports them.
    `member[s, i]` puts event i into the stack of slot s. `payload` has the columns the query needs.
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
        """No events, of those with the columns."""
        numbers, flags = np.empty(0, np.int64), np.empty(0, np.bool_)
        payload = pa.schema([columns.field(name) for name in needed]).empty_table()
        return cls(numbers, numbers, numbers, numbers, flags, flags, np.empty((slots, 0), np.bool_), payload)

    def append(self, more: Rows) -> Rows:
        """These events and then the others."""
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
        """Some events one after the other."""
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
        """Some of the events."""
        if np.count_nonzero(kept) == len(self):
            return self
        rows = np.flatnonzero(kept)
        gone = len(self) - len(rows)
        if gone < len(rows) and rows[0] == gone:
            # Only the first are gone, as when a window moves on.
            return self.slice(gone, len(rows))
        return self.take(rows)

    def take(self, rows: Ints) -> Rows:
        """Some of the events, as they are numbered here."""
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
