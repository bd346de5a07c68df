"""Places of events in the stream or in a partition, for windows that count events."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eventcube.engine.columns import codes_of
from eventcube.engine.kernels import Ints
from eventcube.engine.order_kernels import group_by_code
from eventcube.engine.payload import Payload
from eventcube.engine.released import Released


class Positions:
    """The number of events so far: in all (`total`), or for each partition (`totals`).

    `before` has the numbers before the last events were added: windows that were closed then are done. Only differences
    of places matter: a partition that has no total, as it is new or was dropped, has the number of all events. So its
    places ascend, and events that it once had are beyond every window, in an earlier state as well.
    """

    def __init__(self, partition_by: tuple[str, ...]) -> None:
        self.partition_by = partition_by
        self._keys = [f"k{i}" for i in range(len(partition_by))]
        self.total = 0
        self.totals: pa.Table | None = None
        self.before: tuple[int, pa.Table | None] = (0, None)
        # The version at which the totals were saved last, and those totals.
        self._saved: tuple[int, pa.Table | None] = (-1, None)

    def add(self, events: Released) -> Ints:
        """Count events; gives the position of each."""
        self.before = self.total, self.totals
        size = len(events)
        self.total += size
        if not self.partition_by:
            return np.arange(self.total - size, self.total, dtype=np.int64)
        fresh = events.columns(self.partition_by).rename_columns(self._keys)
        known = self.totals
        if known is None:
            known = fresh.slice(0, 0).append_column("n", pa.array([], pa.int64()))
        joint = pa.concat_tables([known.select(self._keys), fresh])
        codes, groups = codes_of([joint.column(k) for k in self._keys], nulls_match=True)
        order, starts = group_by_code(codes, groups)
        # In each group the known total comes first, then the events that follow it.
        base = np.full(groups, self.before[0], np.int64)
        base[codes[: known.num_rows]] = known.column("n").to_numpy()
        seen_before = np.zeros(groups, np.int64)
        seen_before[codes[: known.num_rows]] = 1
        within = np.empty(len(codes), np.int64)
        within[order] = np.arange(len(codes)) - np.repeat(starts[:-1], np.diff(starts))
        positions = (base[codes] + within - seen_before[codes])[known.num_rows :]
        first = order[starts[:-1]]
        totals = (base - seen_before)[codes[first]] + np.diff(starts)
        self.totals = joint.take(pa.array(first)).append_column("n", pa.array(totals))
        return positions

    def totals_of(self, payload: Payload, *, before: bool = False) -> Ints:
        """How many events the partition of each event has had, or had before the last were added."""
        total, totals = self.before if before else (self.total, self.totals)
        if not self.partition_by or totals is None:
            return np.full(len(payload), total, np.int64)
        own = pa.table([payload.column(k) for k in self.partition_by], self._keys)
        joint = pa.concat_tables([totals.select(self._keys), own])
        codes, groups = codes_of([joint.column(k) for k in self._keys], nulls_match=True)
        counts = np.full(groups, total, np.int64)
        counts[codes[: totals.num_rows]] = totals.column("n").to_numpy()
        return counts[codes[totals.num_rows :]]

    def changed(self, since: int, version: int) -> tuple[pa.Table | None, bool]:
        """The totals that are others than at a version; or all, if it is not the one saved last, and that it is all."""
        at, saved = self._saved
        self._saved = version, self.totals
        if at != since or saved is None or self.totals is None:
            return self.totals, True
        if saved is self.totals:
            return None, False
        keys, codes, groups = self._joined(saved, self.totals)
        then, now = np.full(groups, -1, np.int64), np.full(groups, self.total, np.int64)
        then[codes[: saved.num_rows]] = saved.column("n").to_numpy()
        now[codes[saved.num_rows :]] = self.totals.column("n").to_numpy()
        return self._of_each(keys, codes, np.where(then == now, -1, now)), False

    def restore(self, totals: pa.Table, version: int, *, whole: bool) -> None:
        """Take on saved totals, which lead to a version, in place of those of the same partitions, or of all."""
        # States of version 1 may count no events in all.
        self.total = int(totals.column("n").to_numpy().max(initial=self.total))
        if whole or self.totals is None:
            self.totals = totals
        elif totals.num_rows:
            keys, codes, groups = self._joined(self.totals, totals)
            joint = np.full(groups, -1, np.int64)
            joint[codes] = np.concatenate([table.column("n").to_numpy() for table in (self.totals, totals)])
            self.totals = self._of_each(keys, codes, joint)
        self._saved = version, self.totals

    def _joined(self, *totals: pa.Table) -> tuple[pa.Table, Ints, int]:
        """The keys of totals, one table after the other, a code for each of them, and how many codes there are."""
        keys = pa.concat_tables([table.select(self._keys) for table in totals])
        return keys, *codes_of(keys.columns, nulls_match=True)

    def _of_each(self, keys: pa.Table, codes: Ints, totals: Ints) -> pa.Table:
        """Totals as a table, from a number for each code; without those that are negative."""
        row = np.empty(len(totals), np.int64)
        row[codes] = np.arange(len(codes))
        used = np.zeros(len(totals), np.bool_)
        used[codes] = True
        kept = np.flatnonzero(used & (totals >= 0))
        return keys.take(pa.array(row[kept])).append_column("n", pa.array(totals[kept]))

    def columns(self, events: pa.Schema) -> pa.Schema:
        """The columns of totals, for events with these columns."""
        keys = [pa.field(k, events.field(name).type) for k, name in zip(self._keys, self.partition_by, strict=True)]
        return pa.schema([*keys, pa.field("n", pa.int64())])

    def put_back(self, totals: pa.Table) -> None:
        """Add the totals of partitions that were stored apart."""
        self.totals = totals if self.totals is None else pa.concat_tables([self.totals, totals])

    @property
    def partitions(self) -> int:
        """How many partitions have totals."""
        return 0 if self.totals is None else self.totals.num_rows
