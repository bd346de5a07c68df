"""Packs sliced events for the shuffle: one row, an Arrow stream, for all events of a task.

Events are in Arrow for slicing anyway, and a few long rows shuffle faster than many short ones. For events hashed by a
key the conversion would cost what it saves, so they stay rows.

Nothing here needs Spark, so it can be tested without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventcube.engine.kernels import Ints
from eventcube.schema import HALO, INTERNAL
from eventcube.spark.slices import SLICE, Slices

TASK = INTERNAL + "task"
EVENTS = INTERNAL + "events"
PACKED = pa.schema([pa.field(TASK, pa.int32(), nullable=False), pa.field(EVENTS, pa.binary(), nullable=False)])
# The rows and bytes packed at once: more cost memory, fewer make more and shorter packs.
_ROWS = 1 << 17
_ROWS_PER_TASK = 1 << 11
_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Pack:
    """Cuts events into slices, and packs them by task; `tasks` is the number of tasks."""

    slices: Slices
    tasks: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of packed events: for each chunk of the input, one row for each task that gets some of it."""
        chunk_rows = max(_ROWS, _ROWS_PER_TASK * self.tasks)
        chunk: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in batches:
            chunk.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            if rows >= chunk_rows or size >= _BYTES:
                yield self._pack(chunk)
                chunk, rows, size = [], 0, 0
        if chunk:
            yield self._pack(chunk)

    def _pack(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        events = pa.Table.from_batches(batches).combine_chunks()
        rows, slices, halos = self.slices.assign(events)
        tasks = slices % self.tasks
        order = self._order(tasks)
        sliced = events.take(pa.array(rows[order]))
        sliced = sliced.append_column(SLICE, pa.array(slices[order])).append_column(HALO, pa.array(halos[order]))
        return self._rows(sliced, tasks)

    def _order(self, tasks: Ints) -> Ints:
        """The order of events by task; NumPy sorts small integers by radix, which is fast."""
        return np.argsort(tasks.astype(np.uint16) if self.tasks <= 1 << 16 else tasks, kind="stable")

    def _rows(self, events: pa.Table, tasks: Ints) -> pa.RecordBatch:
        """The events, sorted by task, as an Arrow stream for each task."""
        ends = np.cumsum(np.bincount(tasks, minlength=self.tasks))
        starts = np.concatenate([[0], ends[:-1]])
        present = np.flatnonzero(ends > starts)
        sink = pa.BufferOutputStream()
        offsets = [0]
        for start, end in zip(starts[present].tolist(), ends[present].tolist(), strict=True):
            with pa.ipc.new_stream(sink, events.schema) as writer:
                writer.write_table(events.slice(start, end - start))
            offsets.append(sink.tell())
        offset_buffer = pa.array(offsets, pa.int32()).buffers()[1]
        packs = pa.Array.from_buffers(pa.binary(), len(present), [None, offset_buffer, sink.getvalue()])
        return pa.RecordBatch.from_arrays([pa.array(present, pa.int32()), packs], schema=PACKED)


def unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The events of packed rows."""
    for batch in batches:
        for pack in batch.column(EVENTS):
            yield from pa.ipc.open_stream(pack.as_buffer())
