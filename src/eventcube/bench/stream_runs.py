"""Runs streams for benchmarks, and reads what each micro-batch did from Spark's progress."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from eventcube.bench.hospital import SCHEMA, hospital_day

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_DAY_US = 86_400_000_000
_MARKER = "_complete"


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """A micro-batch: its rows, its seconds, the seconds of our work in its buckets, and the bytes that were written.

    `seconds` has all of it, `planning`, `logging` and `committing` are Spark's; `ours` adds up over buckets, which run
    in several workers. `chunk_bytes` are those of our chunks.
    """

    number: int
    rows: int
    seconds: float
    planning: float
    logging: float
    committing: float
    restore: float
    match: float
    save: float
    matches: int
    held: int
    retained: int
    state_bytes: int
    chunk_bytes: int

    @property
    def ours(self) -> float:
        return self.restore + self.match + self.save


def micro_batches(progress: list[Any]) -> list[MicroBatch]:
    """What each micro-batch did, from Spark's progress; those that only looked for input are left out."""
    return [_micro_batch(entry) for entry in progress if entry["stateOperators"] or entry["numInputRows"]]


def _micro_batch(entry: Any) -> MicroBatch:
    observations = (row.asDict() for name, row in entry["observedMetrics"].items() if name.startswith("eventcube"))
    observed: dict[str, Any] = next(observations, {})
    buckets = observed.get("buckets", [])
    restore, match, save = (observed.get(f"{stage}_us", 0) / 1e6 for stage in ("restore", "match", "save"))
    held, retained, state_bytes = (sum(b[name] for b in buckets) for name in ("held", "retained", "state_bytes"))
    seconds = {name: value / 1e3 for name, value in entry["durationMs"].items()}
    return MicroBatch(
        entry["batchId"],
        entry["numInputRows"],
        seconds["triggerExecution"],
        seconds.get("queryPlanning", 0.0),
        sum(seconds.get(name, 0.0) for name in ("latestOffset", "getBatch", "walCommit", "commitOffsets")),
        sum(operator["commitTimeMs"] for operator in entry["stateOperators"]) / 1e3,
        restore,
        match,
        save,
        observed.get("matches", 0),
        held,
        retained,
        state_bytes,
        observed.get("written_bytes", 0),
    )


def run_stream(
    frame: DataFrame,
    checkpoint: Path | None = None,
    *,
    sink: Callable[[DataFrame, int], None] | None = None,
    trigger: Mapping[str, Any] | None = None,
    until: Callable[[StreamingQuery], None] | None = None,
) -> list[MicroBatch]:
    """Run a stream over all that there is to read, or with another trigger as long as `until` takes."""
    with tempfile.TemporaryDirectory() as folder:
        writer = frame.writeStream.option("checkpointLocation", os.fspath(checkpoint or Path(folder) / "checkpoint"))
        writer = writer.format("noop") if sink is None else writer.foreachBatch(sink)
        query = writer.trigger(**(trigger or {"availableNow": True})).start()
        try:
            if until is None:
                query.awaitTermination()
            else:
                until(query)
        finally:
            query.stop()
        return micro_batches(list(query.recentProgress))


@contextmanager
def every_progress(session: SparkSession) -> Iterator[None]:
    """Have Spark remember the progress of all micro-batches, not of the last hundred."""
    name = "spark.sql.streaming.numRecentProgressUpdates"
    before = session.conf.get(name)
    session.conf.set(name, "100000")
    yield
    session.conf.set(name, before or "100")


def files_stream(session: SparkSession, folder: Path) -> DataFrame:
    """The Parquet files of a folder as a stream, one in each micro-batch."""
    schema = session.read.parquet(str(folder)).schema
    return session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def write_days(folder: Path, events: int, *, file_events: int = 1_000_000) -> Path:
    """Days of the hospital one after the other, as many events in all, in files of this size; written once."""
    marker = folder / _MARKER
    wanted = f"{events} {file_events}"
    if marker.exists() and marker.read_text() == wanted:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, first in enumerate(range(0, events, file_events)):
        size = min(file_events, events - first)
        day = hospital_day(size, tools=max(1, size // 100), violations=max(1, size // 2000), seed=number).events
        place = day.schema.get_field_index("ts")
        times = pa.array(day.column("ts").cast(pa.int64()).to_numpy() + number * _DAY_US, pa.timestamp("us"))
        pq.write_table(day.set_column(place, SCHEMA.field("ts"), times), folder / f"part-{number:05d}.parquet")
    marker.write_text(wanted)
    return folder


class NewFiles:
    """The files of a folder that were not there at the last look."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: set[str] = set()

    def size(self) -> int:
        """The bytes of the new files."""
        total = 0
        for place, _, names in os.walk(self.folder):
            for path in (os.path.join(place, name) for name in names):  # noqa: PTH118 - there are thousands
                if path not in self._known:
                    self._known.add(path)
                    with suppress(OSError):
                        total += Path(path).stat().st_size
        return total


def resident_bytes(processes: set[int]) -> int:
    """The memory of processes and of all that they started, as far as they are still there."""
    parents: dict[int, int] = {}
    pages: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                pages[int(entry.name)] = int((entry / "statm").read_text().split()[1])
            except OSError:
                continue
    family = {p for p in parents if _descends(p, processes, parents)}
    return sum(pages[p] for p in family) * os.sysconf("SC_PAGE_SIZE")


def _descends(process: int, ancestors: set[int], parents: Mapping[int, int]) -> bool:
    while process not in ancestors:
        if process not in parents:
            return False
        process = parents[process]
    return True
