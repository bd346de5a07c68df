"""The stateful operator of a stream: a bucket in each state group.

The engine of a bucket lives on in its worker from one micro-batch to the next, so that nothing is built anew. But Spark
does not tie buckets to workers, and attempts can fail: a copy is used if it has the chunks that the state has. Else the
engine is built from the chunks of the state, of which only those are read that the worker does not have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic, perf_counter_ns
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from eventcube.runtime.snapshot import damaged
from eventcube.spark.bucket import Bucket, BucketTask
from eventcube.spark.bucket_names import place_of
from eventcube.spark.chunks import Manifest
from eventcube.spark.groups_stream import check_mode
from eventcube.spark.origin import Origin
from eventcube.spark.pack import EVENTS, write_stream

if TYPE_CHECKING:
    import pandas as pd

# No bucket tells of more, so that what all of them did fits 64 bits.
_MOST_TOLD = 2**53


@dataclass(slots=True)
class Copy:
    """A bucket in this worker, the data of its chunks as far as they were written or read here, and when it ran."""

    bucket: Bucket
    data: dict[int, bytes] = field(default_factory=dict)
    used: float = field(default_factory=monotonic)


# The state that says what the others are of.
ORIGIN = "origin"
# The copies of this worker, by stream and bucket.
LIVE: dict[tuple[str, int], Copy] = {}
# After so many seconds a copy is of a stream that has ended, or of a bucket that runs elsewhere.
_UNUSED = 600.0
# What leaves the operator: packed rows of the result; or what a bucket did in a micro-batch, and has then.
DID = ("rows", "late", "set_aside", "matches", "restored", "written_bytes", "restore_us", "match_us", "save_us")
HAS = ("held", "retained", "view_bytes", "state_bytes")
BUCKET = "bucket"
_TYPES = {EVENTS: "binary", BUCKET: "int", **dict.fromkeys(DID + HAS, "bigint")}
OUTPUT = ", ".join(f"{name} {type_}" for name, type_ in _TYPES.items())


class BucketProcessor(StatefulProcessor):
    """Runs the buckets of all passes; gives their results and late rows, packed as Arrow streams, and what they did.

    `grouped`: there are groups among the results, which only a query in update mode may write.
    """

    def __init__(self, tasks: Sequence[BucketTask], *, grouped: bool = False) -> None:
        self.tasks, self.grouped = tasks, grouped

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._origin = handle.getValueState(ORIGIN, "data binary")
        self._manifest = handle.getValueState("manifest", "data binary")
        self._chunks = handle.getMapState("chunks", "number bigint", "data binary")

    def handleInputRows(  # noqa: N802 - as Spark calls it
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        # The last column, by its place: on their way here columns lose names that begin with an underscore.
        packs = [bytes(pack) for frame in rows for pack in frame.iloc[:, -1] if len(pack)]
        return self._run(key[0], packs, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        return self._run(key[0], [], timerValues.getCurrentWatermarkInMs(), fired=True)

    def close(self) -> None:
        pass

    def _run(self, number: int, packs: list[bytes], watermark: int, *, fired: bool = False) -> Iterator[pd.DataFrame]:
        """Run a bucket, as its timer has `fired` or there is input; the watermark is in milliseconds, as Spark's is."""
        if self.grouped:
            check_mode()
        clock = Stopwatch()
        stored = self._manifest.get()
        manifest = Manifest.from_bytes(bytes(stored[0])) if stored is not None else None
        copy, is_restored = self._copy(number, manifest, watermark)
        bucket = copy.bucket
        did = Counter(restored=int(is_restored), restore_us=clock.lap())
        for batch in bucket.run(packs, watermark * 1000):
            packed = _packed(batch)
            did["match_us"] += clock.lap()
            yield packed
            # What Spark does with the rows is not ours.
            clock.lap()
        did["match_us"] += clock.lap()
        # Not the counters of a live copy: it may be of a micro-batch before, whose counters Spark no longer collects.
        counted = bucket.take_counters()
        if (add := self.tasks[place_of(number)].add_counters) is not None:
            add(counted)
        if manifest is not None and manifest.timer is not None and not fired:
            self._handle.deleteTimer(manifest.timer)
        written = self._save(copy, watermark)
        _keep((bucket.task.name, number), copy)
        # Spark adds up those of all buckets.
        counted = {name: min(number, _MOST_TOLD) for name, number in counted.items()}
        did.update(counted, written_bytes=written, save_us=clock.lap())
        yield _report(number, {name: did[name] for name in DID} | bucket.sizes)

    def _copy(self, number: int, manifest: Manifest | None, watermark: int) -> tuple[Copy, bool]:
        """The copy of a bucket, if it has the state of the manifest; else one built from that state, and True.

        It is not live while it runs: of a run that fails nothing remains.
        """
        origin = self.tasks[0].origin
        copy = LIVE.pop((self.tasks[0].name, number), None)
        if manifest is None:
            self._origin.update((origin.to_bytes(),))
            return Copy(Bucket(self.tasks[place_of(number)], number)), False
        if copy is not None and copy.bucket.chunks == manifest.chunks:
            return copy, False
        if (before := self._origin.get()) is None:
            raise damaged("it does not say what it is of")
        former = Origin.from_bytes(bytes(before[0]))
        if (data := former.followed_by(origin).to_bytes()) != bytes(before[0]):
            self._origin.update((data,))
        known = {} if copy is None else copy.data
        saved = {c.number: known.get(c.number) or self._chunk(c.number) for c in manifest.chunks}
        task = self.tasks[place_of(number)]
        return Copy(Bucket(task, number, manifest.chunks, saved.values(), former, former.after(watermark)), saved), True

    def _chunk(self, number: int) -> bytes:
        stored = self._chunks.getValue((number,))
        if stored is None:
            raise damaged("one of its chunks is missing")
        return bytes(stored[0])

    def _save(self, copy: Copy, watermark: int) -> int:
        """Write a new chunk, and remove those that it takes the place of; gives the bytes that were written."""
        bucket = copy.bucket
        before = bucket.chunks
        chunk, data = bucket.save()
        self._chunks.updateValue((chunk.number,), (data,))
        for old in set(before) - set(bucket.chunks):
            self._chunks.removeKey((old.number,))
            copy.data.pop(old.number, None)
        copy.data[chunk.number] = data
        timer = self._set_timer(watermark) if bucket.awaits_watermark else None
        self._manifest.update((Manifest(bucket.chunks, timer).to_bytes(),))
        return len(data)

    def _set_timer(self, watermark: int) -> int:
        """Have the bucket run as soon as the watermark moves on, also without input."""
        self._handle.registerTimer(watermark + 1)
        return watermark + 1


def _keep(name: tuple[str, int], copy: Copy) -> None:
    """Keep a copy for the next micro-batch, and let those go that are not used any more."""
    copy.used = monotonic()
    LIVE[name] = copy
    for other in [other for other, kept in LIVE.items() if kept.used < copy.used - _UNUSED]:
        del LIVE[other]


class Stopwatch:
    """Measures the time of stages that follow each other."""

    def __init__(self) -> None:
        self._at = perf_counter_ns()

    def lap(self) -> int:
        """The microseconds since the last call."""
        before, self._at = self._at, perf_counter_ns()
        return (self._at - before) // 1000


def _packed(batch: pa.RecordBatch) -> pd.DataFrame:
    sink = pa.BufferOutputStream()
    write_stream(pa.Table.from_batches([batch]), sink)
    return _row({EVENTS: sink.getvalue().to_pybytes()})


def _report(number: int, numbers: Mapping[str, int]) -> pd.DataFrame:
    return _row({BUCKET: number, **numbers})


def _row(values: Mapping[str, Any]) -> pd.DataFrame:
    """A row of output, null where it has no value."""
    import pandas as pd

    return pd.DataFrame({name: pd.Series([values.get(name)], dtype=object) for name in _TYPES})
