"""Places of events in the stream or in a partition, for windows that count events."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eventcube.engine.columns import codes_of
from eventcube.engine.kernels import Ints
from eventcube.engine.order_kernels import group
from eventcube.engine.payload import Payload
from eventcube.engine.released import Released


class Positions:
    """The number of events so far: in all (`total`), or for each partition (`totals`).

    `before` has the numbers before the last events were added: windows that were closed then are done.
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
        order, starts = group(codes, groups)
        # In each group the known total comes first, then the events that follow it.
        base = np.zeros(groups, np.int64)
        base[codes[: known.num_rows]] = known.column("n").to_numpy()
        seen_before = np.zeros(groups, np.int64)
        seen_before[codes[: known.num_rows]] = 1
        within = np.empty(len(codes), np.int64)
        within[order] = np.arange(len(codes)) - np.repeat(starts[:-1], np.diff(starts))
        positions = (base[codes] + within - seen_before[codes])[known.num_rows :]
        used = np.flatnonzero(np.diff(starts))
        totals = base[used] + np.diff(starts)[used] - seen_before[used]
        self.totals = joint.take(pa.array(order[starts[used]])).append_column("n", pa.array(totals))
        return positions

    def totals_of(self, payload: Payload, *, before: bool = False) -> Ints:
        """How many events the partition of each event has had, or had before the last were added."""
        total, totals = self.before if before else (self.total, self.totals)
        if not self.partition_by:
            return np.full(len(payload), total, np.int64)
        if totals is None:
            return np.zeros(len(payload), np.int64)
        own = pa.table([payload.column(k) for k in self.partition_by], self._keys)
        joint = pa.concat_tables([totals.select(self._keys), own])
        codes, groups = codes_of([joint.column(k) for k in self._keys], nulls_match=True)
        counts = np.zeros(groups, np.int64)
        counts[codes[: totals.num_rows]] = totals.column("n").to_numpy()
        return counts[codes[totals.num_rows :]]

    def changed(self, since: int, version: int) -> pa.Table | None:
        """The totals that are others than at a version; all of them if it is not the one saved last."""
        saved = self._saved[1] if self._saved[0] == since else None
        self._saved = version, self.totals
        if saved is None or self.totals is None:
            return self.totals
        if saved is self.totals:
            return self.totals.slice(0, 0)
        joint = pa.concat_tables([saved, self.totals])
        codes, groups = codes_of([joint.column(k) for k in self._keys], nulls_match=True)
        known = np.full(groups, -1, np.int64)
        known[codes[: saved.num_rows]] = saved.column("n").to_numpy()
        return self.totals.filter(pa.array(known[codes[saved.num_rows :]] != self.totals.column("n").to_numpy()))

    def restore(self, total: int, totals: pa.Table | None, version: int) -> None:
        """Take on saved numbers, in place of those of the same partitions; they lead to a version."""
        self.total = total
        if totals is not None:
            self.totals = totals if self.totals is None else self._replaced(self.totals, totals)
        self._saved = version, self.totals

    def _replaced(self, before: pa.Table, totals: pa.Table) -> pa.Table:
        """The totals, and those before of other partitions."""
        joint = pa.concat_tables([totals, before])
        codes, groups = codes_of([joint.column(k) for k in self._keys], nulls_match=True)
        first = np.full(groups, len(codes), np.int64)
        np.minimum.at(first, codes, np.arange(len(codes)))
        return joint.take(pa.array(np.sort(first[first < len(codes)])))

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
