"""Places of events in the stream or in a partition, for windows that count events."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eventcube.engine.columns import codes_of
from eventcube.engine.kernels import Ints, group
from eventcube.engine.payload import Payload
from eventcube.engine.released import Released


class Positions:
    """The number of events so far: in all (`total`), or for each partition (`totals`).

    Only differences between positions matter. A partition without a number, because it is new or was forgotten, counts
    from `total` on, so that its positions ascend even if it comes again. `before` has the numbers before the last
    events were added: windows that were closed then are done.
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
        base = np.full(groups, self.before[0])
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
            return np.full(len(payload), total, np.int64)
        own = pa.table([payload.column(k) for k in self.partition_by], self._keys)
        joint = pa.concat_tables([totals.select(self._keys), own])
        codes, groups = codes_of([joint.column(k) for k in self._keys], nulls_match=True)
        counts = np.full(groups, total)
        counts[codes[: totals.num_rows]] = totals.column("n").to_numpy()
        return counts[codes[totals.num_rows :]]

    def changed(self, since: int, version: int) -> tuple[pa.Table | None, bool]:
        """The totals that are others than at a version, or all of them if it is not the one saved last; whether all."""
        saved = self._saved[1] if self._saved[0] == since else None
        self._saved = version, self.totals
        if saved is None or self.totals is None:
            return self.totals, True
        if saved is self.totals:
            return self.totals.slice(0, 0), False
        joint = pa.concat_tables([saved, self.totals])
        codes, groups = codes_of([joint.column(k) for k in self._keys], nulls_match=True)
        of_saved, of_now = codes[: saved.num_rows], codes[saved.num_rows :]
        numbers = joint.column("n").to_numpy()
        known = np.full(groups, -1, np.int64)
        known[of_saved] = numbers[: saved.num_rows]
        changed = self.totals.filter(pa.array(known[of_now] != numbers[saved.num_rows :]))
        gone = saved.select(self._keys).filter(pa.array(np.isin(of_saved, of_now, invert=True)))
        forgotten = gone.append_column("n", pa.array(np.full(gone.num_rows, self.total)))
        return pa.concat_tables([changed, forgotten]), False

    def restore(self, total: int, totals: pa.Table | None, *, whole: bool) -> None:
        """Take on saved numbers, in place of those of the same partitions, or as a whole in place of all."""
        self.total = total
        if totals is None or self.totals is None or whole:
            self.totals = self.totals if totals is None else totals
        else:
            joint = pa.concat_tables([totals, self.totals])
            codes, groups = codes_of([joint.column(k) for k in self._keys], nulls_match=True)
            first = np.full(groups, len(codes), np.int64)
            np.minimum.at(first, codes, np.arange(len(codes)))
            self.totals = joint.take(pa.array(np.sort(first[first < len(codes)])))
        if self.totals is not None and self.totals.num_rows:
            # States of version 1 do not count the events of all partitions.
            self.total = max(total, int(self.totals.column("n").to_numpy().max()))

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
