"""A task's events in pieces that follow each other in time: from memory, or from sorted runs on disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import IO

import numpy as np
import pyarrow as pa

from eventcube.engine.kernels import Ints
from eventcube.runtime.read_columns import order_keys, read_times
from eventcube.schema import EventSchema

PIECE_ROWS = 1 << 20
# Smaller batches are put together, so that a piece is not of very many.
_BATCH_ROWS = 1 << 15
# A batch with more descents than this is sorted.
_FEW_DESCENTS = 8
# One in so many times is looked at to cut events into pieces.
_SAMPLED = 64
# The rows and bytes read at once from each run.
_READ_ROWS = 1 << 16
_READ_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Budget:
    """The rows and bytes that a task sorts in memory before it spills to disk."""

    rows: int = 8_000_000
    bytes: int = 512 << 20


class Sorter:
    """Sorts tables of events by time; with `values`, also by the order columns and these columns.

    Drops rows without a usable time.
    """

    def __init__(self, schema: EventSchema, values: tuple[str, ...] = ()) -> None:
        self.schema = schema
        self.by_value = (
            EventSchema(schema.columns, schema.time, order_by=(*schema.order_by, *values)) if values else None
        )

    def usable(self, table: pa.Table) -> tuple[pa.Table, Ints]:
        """The table without unusable rows, and its times."""
        ts, valid = read_times(table.column(self.schema.time), self.schema)
        return (table, ts) if valid is None else (table.filter(pa.array(valid)), ts[valid])

    def sorted(self, table: pa.Table) -> tuple[pa.Table, Ints]:
        """The table and its times, sorted."""
        table, ts = self.usable(table)
        if self.by_value is not None:
            order = np.lexsort([*order_keys(table, self.by_value)[::-1], ts])
        elif (ts[1:] >= ts[:-1]).all():
            return table, ts
        else:
            order = np.argsort(ts, kind="stable")
        return table.take(pa.array(order)), ts[order]


def in_order(
    batches: Iterator[pa.RecordBatch], sorter: Sorter, budget: Budget, retained: Callable[[], int]
) -> Iterator[pa.Table]:
    """All events in pieces, each later than those before it.

    Pieces from disk are sorted, and so are those in which values order events of equal time; others may be in any
    order. `retained` returns how many events the engine carries from one piece to the next; pieces are no smaller, so
    that these are not scanned too often.
    """
    runs: list[Run] = []
    buffer: list[pa.RecordBatch] = []
    rows = size = 0
    try:
        for batch in batches:
            buffer.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            if rows >= budget.rows or size >= budget.bytes:
                runs.append(Run(*sorter.sorted(_combined(buffer))))
                pa.default_memory_pool().release_unused()
                rows = size = 0
        if runs:
            if buffer:
                runs.append(Run(*sorter.sorted(_combined(buffer))))
            yield from _merged(runs, sorter, min(PIECE_ROWS, budget.rows // 2), retained)
        elif buffer:
            yield from _pieces(buffer, sorter, retained)
    finally:
        for run in runs:
            run.close()


def _combined(batches: list[pa.RecordBatch]) -> pa.Table:
    """The batches as one table with one chunk; clears the list, to free memory."""
    table = pa.Table.from_batches(batches)
    batches.clear()
    return table.combine_chunks()


def _pieces(batches: list[pa.RecordBatch], sorter: Sorter, retained: Callable[[], int]) -> Iterator[pa.Table]:
    """The events of batches in memory; clears the list. Most pieces are parts of batches, which are not copied."""
    parts = [part for table in _joined(batches) for part in _ascending(table, sorter)]
    times = np.sort(np.concatenate([ts[::_SAMPLED] for _, ts in parts])) if parts else np.empty(0, np.int64)
    at = 0
    while parts:
        at += max(PIECE_ROWS, retained()) // _SAMPLED
        piece, rest = [], []
        for table, ts in parts:
            cut = int(ts.searchsorted(times[at])) if at < len(times) else len(ts)
            piece += [(int(ts[0]), table.slice(0, cut))] if cut else []
            rest += [(table.slice(cut), ts[cut:])] if cut < len(ts) else []
        parts = rest
        if piece:
            # Parts of files that follow each other in time are then sorted as they are.
            piece.sort(key=lambda part: part[0])
            events = pa.concat_tables([table for _, table in piece])
            yield events if sorter.by_value is None else sorter.sorted(events.combine_chunks())[0]


def _joined(batches: list[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The batches as tables of one chunk, small ones put together; clears the list."""
    few: list[pa.RecordBatch] = []
    rows = 0
    batches.reverse()
    while batches:
        few.append(batches.pop())
        rows += few[-1].num_rows
        if rows >= _BATCH_ROWS or not batches:
            yield _combined(few)
            rows = 0


def _ascending(table: pa.Table, sorter: Sorter) -> Iterator[tuple[pa.Table, Ints]]:
    """The table in parts whose times ascend, with these."""
    table, ts = sorter.usable(table)
    ends = np.flatnonzero(ts[1:] < ts[:-1]) + 1
    if len(ends) > _FEW_DESCENTS:
        order = np.argsort(ts, kind="stable")
        yield table.take(pa.array(order)), ts[order]
        return
    for start, end in pairwise([0, *ends.tolist(), len(ts)]):
        if start < end:
            yield table.slice(start, end - start), ts[start:end]


class Run:
    """Sorted events in an unnamed temporary file, which is removed even if the process is killed."""

    def __init__(self, table: pa.Table, ts: Ints) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=_folder())  # noqa: SIM115 - closed by `close`
        row_bytes = max(1, table.nbytes // max(1, table.num_rows))
        self.block_rows = max(1, min(_READ_ROWS, _READ_BYTES // row_bytes))
        with pa.ipc.new_stream(self._file, table.schema) as writer:
            for at in range(0, len(ts), self.block_rows):
                writer.write_table(table.slice(at, self.block_rows).combine_chunks())
        self._times = [int(ts[at]) for at in range(0, len(ts), self.block_rows)]
        self._file.seek(0)
        self._reader = pa.ipc.open_stream(self._file)

    @property
    def next_time(self) -> int | None:
        """The time of the first unread event; None at the end."""
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


def _merged(runs: list[Run], sorter: Sorter, size: int, retained: Callable[[], int]) -> Iterator[pa.Table]:
    """The events of sorted runs, merged piece by piece."""
    size = max(size, 2 * sum(run.block_rows for run in runs))
    buffer: list[pa.Table] = []
    rows = leftover = 0
    while open_runs := [r for r in runs if r.next_time is not None]:
        # Read from the earliest run. Events before all unread ones are then complete.
        earliest = min(open_runs, key=lambda r: r.next_time if r.next_time is not None else 0)
        buffer.append(earliest.next())
        rows += buffer[-1].num_rows
        unread = [r.next_time for r in runs if r.next_time is not None]
        # Sort the leftover again only when as much has been added, or many equal times would cost quadratic time.
        if rows < max(size, retained(), 2 * leftover) and unread:
            continue
        table, ts = sorter.sorted(pa.concat_tables(buffer).combine_chunks())
        complete = int(np.searchsorted(ts, min(unread))) if unread else len(ts)
        # A copy, as a slice would keep the whole table alive.
        rest = table.take(pa.array(np.arange(complete, len(ts))))
        buffer, rows, leftover = [rest], rest.num_rows, rest.num_rows
        if complete:
            yield table.slice(0, complete)
        del table


def _folder() -> str | None:
    """Spark's local directory, if there is one that can be written."""
    folders = [f for f in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if f]
    return folders[0] if folders and os.access(folders[0], os.W_OK) else None
