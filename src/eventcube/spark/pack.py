"""Sliced events on their way through the shuffle: all that go to one task in one row.

Cut in NumPy, they are out of Spark's rows already, and a few long rows are less to move than many short ones. Events
that are hashed by a key stay in rows: for them the way out and back costs what it saves.

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
# What is packed at once: more rows cost memory, fewer make more and shorter packs.
_ROWS = 1 << 17
_ROWS_PER_TASK = 1 << 11
_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Pack:
    """Cuts events into slices, and packs them for so many tasks."""

    slices: Slices
    tasks: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row for each task that some of the events go to, and again once there are many more events."""
        most = max(_ROWS, _ROWS_PER_TASK * self.tasks)
        held: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in batches:
            held.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            if rows >= most or size >= _BYTES:
                yield self._packed(held)
                held, rows, size = [], 0, 0
        if held:
            yield self._packed(held)

    def _packed(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        events = pa.Table.from_batches(batches).combine_chunks()
        rows, slices, halos = self.slices.places(events)
        tasks = slices % self.tasks
        order = self._order(tasks)
        sliced = events.take(pa.array(rows[order]))
        sliced = sliced.append_column(SLICE, pa.array(slices[order])).append_column(HALO, pa.array(halos[order]))
        return self._rows(sliced, tasks)

    def _order(self, tasks: Ints) -> Ints:
        """What sorts events by task; small numbers are sorted by their digits."""
        return np.argsort(tasks.astype(np.uint16) if self.tasks <= 1 << 16 else tasks, kind="stable")

    def _rows(self, events: pa.Table, tasks: Ints) -> pa.RecordBatch:
        """The events, in order of their tasks, as an Arrow stream for each task."""
        ends = np.cumsum(np.bincount(tasks, minlength=self.tasks))
        starts = np.concatenate([[0], ends[:-1]])
        present = np.flatnonzero(ends > starts)
        sink = pa.BufferOutputStream()
        offsets = [0]
        for start, end in zip(starts[present].tolist(), ends[present].tolist(), strict=True):
            with pa.ipc.new_stream(sink, events.schema) as writer:
                writer.write_table(events.slice(start, end - start))
            offsets.append(sink.tell())
        places = pa.array(offsets, pa.int32()).buffers()[1]
        packs = pa.Array.from_buffers(pa.binary(), len(present), [None, places, sink.getvalue()])
        return pa.RecordBatch.from_arrays([pa.array(present, pa.int32()), packs], schema=PACKED)


def unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The events in rows that were packed."""
    for batch in batches:
        for pack in batch.column(EVENTS):
            yield from pa.ipc.open_stream(pack.as_buffer())
