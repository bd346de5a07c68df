"""Packs events for the shuffle: one row, an Arrow stream, for all events of a task or of a bucket.

In a batch, sliced events are in Arrow for slicing anyway, and a few long rows shuffle faster than many short ones. For
events hashed by a key the conversion would cost what it saves, so they stay rows. In a stream all events are packed:
Spark hands rows to a stateful operator one by one.

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
        for events in chunks_of(batches, self.tasks):
            rows, slices, halos = self.slices.assign(events)
            tasks = slices % self.tasks
            order = order_by_task(tasks, self.tasks)
            sliced = events.take(pa.array(rows[order]))
            sliced = sliced.append_column(SLICE, pa.array(slices[order])).append_column(HALO, pa.array(halos[order]))
            yield pack_by_task(sliced, np.bincount(tasks, minlength=self.tasks))


@dataclass(frozen=True, slots=True)
class Spread:
    """How the events of a pass are spread over its buckets: each event has the number of its bucket in a column, null
    if the pass does not take it. In packed rows each bucket has a name, and events have these columns.
    """

    bucket: str
    names: tuple[int, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PackBuckets:
    """Packs events by bucket, for each pass; in all passes but the first a column tells whether one before takes them.

    A bucket that gets no events gets an empty row: all of them run in each micro-batch.
    """

    passes: tuple[Spread, ...]
    other: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of packed events: for each chunk of the input, one row for each bucket that gets some of it."""
        left = {name for spread in self.passes for name in spread.names}
        for events in chunks_of(batches, max(len(spread.names) for spread in self.passes)):
            elsewhere = np.zeros(len(events), np.bool_)
            for place, spread in enumerate(self.passes):
                taken = np.asarray(events.column(spread.bucket).is_valid())
                own = events.select(spread.columns)
                own = own.append_column(self.other, pa.array(elsewhere)) if place else own
                buckets = np.asarray(events.column(spread.bucket).drop_null())
                packed = _packed(own if taken.all() else own.filter(pa.array(taken)), buckets, spread.names)
                left -= {*packed.column(0).to_pylist()}
                yield packed
                elsewhere = elsewhere | taken
        if left:
            rows = [pa.array(sorted(left), pa.int32()), pa.array([b""] * len(left), pa.binary())]
            yield pa.RecordBatch.from_arrays(rows, schema=PACKED)


def _packed(events: pa.Table, buckets: Ints, names: tuple[int, ...]) -> pa.RecordBatch:
    """Events packed by bucket, under the names of these."""
    if len(names) > 1:
        events = events.take(pa.array(order_by_task(buckets, len(names))))
    packed = pack_by_task(events, np.bincount(buckets, minlength=len(names)))
    return pa.RecordBatch.from_arrays(
        [pa.array(names, pa.int32()).take(packed.column(0)), packed.column(1)], schema=PACKED
    )


def chunks_of(batches: Iterator[pa.RecordBatch], tasks: int) -> Iterator[pa.Table]:
    """Batches in chunks of a size that is worth packing for so many tasks, each chunk in one piece."""
    chunk_rows = max(_ROWS, _ROWS_PER_TASK * tasks)
    chunk: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        chunk.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= chunk_rows or size >= _BYTES:
            yield pa.Table.from_batches(chunk).combine_chunks()
            chunk, rows, size = [], 0, 0
    if chunk:
        yield pa.Table.from_batches(chunk).combine_chunks()


def order_by_task(tasks: Ints, count: int) -> Ints:
    """The order of events by task; NumPy sorts small integers by radix, which is fast."""
    return np.argsort(tasks.astype(np.uint16) if count <= 1 << 16 else tasks, kind="stable")


def pack_by_task(events: pa.Table, counts: Ints) -> pa.RecordBatch:
    """The events, sorted by task, as an Arrow stream for each task that has some; `counts` are their numbers."""
    ends = np.cumsum(counts)
    starts = np.concatenate([[0], ends[:-1]])
    present = np.flatnonzero(ends > starts)
    sink = pa.BufferOutputStream()
    offsets = [0]
    for start, end in zip(starts[present].tolist(), ends[present].tolist(), strict=True):
        write_stream(events.slice(start, end - start), sink)
        offsets.append(sink.tell())
    offset_buffer = pa.array(offsets, pa.int32()).buffers()[1]
    packs = pa.Array.from_buffers(pa.binary(), len(present), [None, offset_buffer, sink.getvalue()])
    return pa.RecordBatch.from_arrays([pa.array(present, pa.int32()), packs], schema=PACKED)


def write_stream(table: pa.Table, sink: pa.NativeFile) -> None:
    """Write a table as an Arrow stream, which `unpacked` reads."""
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The events of packed rows."""
    for batch in batches:
        for pack in batch.column(EVENTS):
            yield from pa.ipc.open_stream(pack.as_buffer())
