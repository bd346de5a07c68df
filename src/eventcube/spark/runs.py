"""Events of one task in order of time, whatever their number: sorted in memory, or in runs on disk that are merged."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np
import pyarrow as pa

from eventcube.engine.kernels import Ints
from eventcube.runtime.ingest import order_keys, read_times
from eventcube.schema import EventSchema

PIECE_ROWS = 1 << 20
# What is read at once of each run: so many rows, or fewer if they are wide.
_READ_ROWS = 1 << 16
_READ_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Budget:
    """How many events a task holds in memory before it writes them to disk."""

    rows: int = 8_000_000
    bytes: int = 512 << 20


class Sorter:
    """Sorts tables of events by time; with `values`, events of equal rank by those columns too.

    Rows without a usable time are left out.
    """

    def __init__(self, schema: EventSchema, values: tuple[str, ...] = ()) -> None:
        self.schema = schema
        self.by_value = (
            EventSchema(schema.columns, schema.time, order_by=(*schema.order_by, *values)) if values else None
        )

    def sort(self, table: pa.Table) -> tuple[pa.Table, Ints, Ints | None]:
        """The table without unusable rows, its times, and the order that sorts both (None: they are sorted)."""
        ts, valid = read_times(table.column(self.schema.time), self.schema)
        if valid is not None:
            table, ts = table.filter(pa.array(valid)), ts[valid]
        if self.by_value is not None:
            return table, ts, np.lexsort([*order_keys(table, self.by_value)[::-1], ts])
        return table, ts, None if (ts[1:] >= ts[:-1]).all() else np.argsort(ts, kind="stable")

    def sorted(self, table: pa.Table) -> tuple[pa.Table, Ints]:
        """The table and its times, sorted."""
        table, ts, order = self.sort(table)
        return (table, ts) if order is None else (table.take(pa.array(order)), ts[order])


def in_order(
    batches: Iterator[pa.RecordBatch], sorter: Sorter, budget: Budget, kept: Callable[[], int]
) -> Iterator[pa.Table]:
    """All the events in pieces, each later in time than the one before.

    `kept` says how many events are carried from one piece to the next: pieces are no smaller, so that what is carried
    is not gone over too often.
    """
    runs: list[Run] = []
    held: list[pa.RecordBatch] = []
    rows = size = 0
    try:
        for batch in batches:
            held.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            if rows >= budget.rows or size >= budget.bytes:
                runs.append(Run(*sorter.sorted(_joined(held))))
                pa.default_memory_pool().release_unused()
                rows = size = 0
        if runs:
            if held:
                runs.append(Run(*sorter.sorted(_joined(held))))
            yield from _merged(runs, sorter, min(PIECE_ROWS, budget.rows // 2), kept)
        elif held:
            yield from _pieces(_joined(held), sorter, kept)
    finally:
        for run in runs:
            run.close()


def _joined(batches: list[pa.RecordBatch]) -> pa.Table:
    """The batches as one table of single chunks; the list is emptied, so that nothing is held twice."""
    table = pa.Table.from_batches(batches)
    batches.clear()
    return table.combine_chunks()


def _pieces(table: pa.Table, sorter: Sorter, kept: Callable[[], int]) -> Iterator[pa.Table]:
    table, ts, order = sorter.sort(table)
    at = 0
    while at < len(ts):
        size = max(PIECE_ROWS, kept())
        yield table.slice(at, size) if order is None else table.take(pa.array(order[at : at + size]))
        at += size


class Run:
    """Sorted events in a file without a name: it is gone as soon as nothing reads it, even if the process is killed."""

    def __init__(self, table: pa.Table, ts: Ints) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=_folder())  # noqa: SIM115 - closed by `close`
        row_bytes = max(1, table.nbytes // max(1, table.num_rows))
        self.step = max(1, min(_READ_ROWS, _READ_BYTES // row_bytes))
        with pa.ipc.new_stream(self._file, table.schema) as writer:
            for at in range(0, len(ts), self.step):
                writer.write_table(table.slice(at, self.step).combine_chunks())
        self._times = [int(ts[at]) for at in range(0, len(ts), self.step)]
        self._file.seek(0)
        self._reader = pa.ipc.open_stream(self._file)

    @property
    def ahead(self) -> int | None:
        """The time of the first event that is not read yet; None at the end."""
        return self._times[0] if self._times else None

    def next(self) -> pa.Table:
        """The next events."""
        batch = self._reader.read_next_batch()
        del self._times[0]
        if not self._times:
            self.close()
        return pa.Table.from_batches([batch])

    def close(self) -> None:
        self._file.close()


def _merged(runs: list[Run], sorter: Sorter, size: int, kept: Callable[[], int]) -> Iterator[pa.Table]:
    """The events of sorted runs, merged piece by piece."""
    size = max(size, 2 * sum(run.step for run in runs))
    read: list[pa.Table] = []
    rows = left = 0
    while open_runs := [r for r in runs if r.ahead is not None]:
        # What lies furthest behind is read first; all that is before what is still unread is complete.
        behind = min(open_runs, key=lambda r: r.ahead if r.ahead is not None else 0)
        read.append(behind.next())
        rows += read[-1].num_rows
        unread = [r.ahead for r in runs if r.ahead is not None]
        # What was left over is not sorted again until as much has come, or a crowded moment would be sorted for ever.
        if rows < max(size, kept(), 2 * left) and unread:
            continue
        table, ts = sorter.sorted(pa.concat_tables(read).combine_chunks())
        complete = int(np.searchsorted(ts, min(unread))) if unread else len(ts)
        # A slice would keep the whole piece alive.
        rest = table.take(pa.array(np.arange(complete, len(ts))))
        read, rows, left = [rest], rest.num_rows, rest.num_rows
        if complete:
            yield table.slice(0, complete)
        del table


def _folder() -> str | None:
    """Spark's own scratch space where there is one."""
    folders = [f for f in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if f]
    return folders[0] if folders and os.access(folders[0], os.W_OK) else None
