"""LIMIT: the earliest matches, kept while all others pass by."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from eventcube.engine.kernels import Ints
from eventcube.engine.output import Output
from eventcube.engine.store import Store
from eventcube.engine.table import Table, joined
from eventcube.plan.physical import PhysicalQuery


class Earliest:
    """The first matches by (last, first, then the bound events in the order of the text); never more than `most`.

    Where matches are reported at their last event, a batch's matches all come after those of the batch before.
    Otherwise they are held until the end, with their sort keys.
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

    def settled(self, output: Output, *, final: bool) -> Iterator[pa.RecordBatch]:
        """The matches of this batch that are known to be among the first."""
        if self._best is None:
            return
        batch = output.batch(self._best)
        keys, self._best, self._keys = self._keys, None, []
        if final:
            self.left -= batch.num_rows
            yield batch
            return
        table = pa.Table.from_batches([batch])
        if self.held is not None:
            table = pa.concat_tables([self.held[0], table])
            keys = [np.concatenate(pair) for pair in zip(self.held[1], keys, strict=True)]
        order = np.lexsort(keys[::-1])[: self.left]
        self.held = table.take(pa.array(order)), [k[order] for k in keys]

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What was held until the end."""
        if self.held is not None:
            yield from self.held[0].combine_chunks().to_batches()
            self.held = None
