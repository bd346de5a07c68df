"""Matches that were reported and are kept, so that a finer query that is asked later can be answered from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.rows import Rows
from eventcube.engine.state import BEGINNING, State
from eventcube.engine.store import Store
from eventcube.engine.table import Table
from eventcube.engine.views.result_store import ResultStore

# Matches in one chunk.
_CHUNK = 1 << 16
# An event that is not taken comes after all others where the first is looked for.
_NO_EVENT = 2**62


@dataclass(frozen=True, slots=True)
class Keep:
    """How much is kept for later: events of so long ago (microseconds), and at most so many matches of all queries.

    Events that windows need are retained anyway. `counted`: matches that are only counted otherwise are made and kept.
    """

    time: int
    matches: int
    counted: bool = True


class KeptMatches:
    """The latest matches of a query, by the sequence numbers of their events, in the store that views keep results in.

    They are all that there are with events from a time on: the one `since` which they are kept, the one since which
    events are retained, or the one at which the last of those ends that were dropped because there were too many.
    """

    def __init__(self, slots: Sequence[int], most: int, since: int) -> None:
        self.slots, self.since = tuple(slots), since
        self._most = most
        # With the time of the last event.
        self._results = ResultStore(len(self.slots) + 1)
        # Those that were added and are not stored yet, as matches come in any order.
        self._fresh: list[Ints] = []
        self._number_fresh = 0
        # The time of the last event of those that were dropped.
        self._dropped = BEGINNING

    def __len__(self) -> int:
        return len(self._results) + self._number_fresh

    def add(self, table: Table, store: Store) -> None:
        """Keep matches."""
        rows = table.only(self.slots).data
        seq = np.where(rows < 0, -1, store.seq[rows])
        first = np.where(seq < 0, _NO_EVENT, seq).min(axis=0)
        self._fresh.append(np.vstack([seq, store.ts[rows.max(axis=0)], first, seq.max(axis=0)]))
        self._number_fresh += len(table)
        if self._number_fresh > max(self._most, _CHUNK):
            self.flush()

    def flush(self) -> None:
        """Store what was added, and drop the matches that end first if there are too many."""
        if not self._fresh:
            return
        self._results.add(np.concatenate(self._fresh, axis=1))
        self._fresh, self._number_fresh = [], 0
        over = len(self._results) - self._most
        if over > 0:
            self._dropped = max(self._dropped, int(self._results.block[-3, over - 1]))
            self._results.drop_before(int(self._results.lasts[over - 1]) + 1)

    def complete_from(self, state: State, stacks: Iterable[int]) -> int:
        """The time from which on all matches are kept that have only events from then on, which are in these stacks."""
        return max(self.since, self._dropped + self.has_dropped, state.horizon(stacks))

    @property
    def has_dropped(self) -> bool:
        """Whether there were too many."""
        return self._dropped > BEGINNING

    def drop_before(self, sequence: int) -> None:
        """Drop the matches that end before the event with this number."""
        self._results.drop_before(sequence)

    def tables(self, store: Store, rows: Rows, since: int = BEGINNING) -> Iterator[Table]:
        """The matches with retained events from a time on, in chunks, as rows of a store of all of these."""
        first = int(rows.ts.searchsorted(since))
        if first == len(rows):
            return
        block = self._results.block
        block = block[:-3, self._results.firsts >= rows.seq[first]]
        for start in range(0, block.shape[1], _CHUNK):
            seq = block[:, start : start + _CHUNK]
            found = np.where(seq < 0, -1, store.rows_of(np.ascontiguousarray(seq).ravel()).reshape(seq.shape))
            alive: Bools = np.asarray(((found >= 0) | (seq < 0)).all(axis=0))
            yield Table(self.slots, found).where(alive)
