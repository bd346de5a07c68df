"""Metrics of the streams of a session: a line of JSON for each micro-batch, and figures for Prometheus."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from eventcube.errors import OptionError
from eventcube.spark.prometheus import Labels, Metric, MetricsServer, metrics_text
from eventcube.spark.stream_progress import StreamProgress

# What adds up over micro-batches, and what it is; a name ends in _total, as Prometheus has it.
COUNTED = {
    "input_rows": "Rows that Spark has read.",
    "rows": "Rows that queries can use, which reached the buckets.",
    "late": "Rows that came after the watermark, and were left out.",
    "set_aside": "Rows that were skipped: late ones, and those without a time or a type.",
    "matches": "Matches found.",
    "restored": "Times that a bucket was built from its saved state.",
    "dropped": "Packs of rows that Spark dropped by its watermark: anything but 0 is a loss, and a mistake of ours.",
    "written_bytes": "Bytes of state written.",
}
_STAGES = ("restore", "match", "save")
# What holds after the last micro-batch.
MEASURED: dict[str, tuple[str, Callable[[StreamProgress], float | None]]] = {
    "last_batch": ("Number of the last micro-batch.", lambda p: p.batch),
    "last_batch_seconds": ("Duration of the last micro-batch.", lambda p: p.seconds),
    "watermark_seconds": ("The watermark, in seconds since 1970.", lambda p: _seconds(p.watermark)),
    "newest_event_seconds": (
        "The latest time of an event so far, in seconds since 1970.",
        lambda p: _seconds(p.newest),
    ),
    "watermark_lag_seconds": ("How far the watermark is behind the newest event.", lambda p: p.lag_seconds),
    "held_rows": ("Rows that wait for the watermark.", lambda p: p.held),
    "retained_rows": ("Rows that can be in a match to come.", lambda p: p.retained),
    "view_bytes": ("Bytes of the views of nested parts.", lambda p: p.view_bytes),
    "state_bytes": ("Bytes of the saved state.", lambda p: p.state_bytes),
    "buckets": ("Buckets that have run.", lambda p: p.buckets),
    "largest_bucket_state_rows": ("Rows that the largest bucket holds.", lambda p: p.largest_state_rows),
    "largest_bucket_state_bytes": ("Bytes of state of the largest bucket.", lambda p: p.largest_state_bytes),
    "largest_bucket_match_seconds": (
        "Time that the slowest bucket matched in the last micro-batch.",
        lambda p: p.largest_match_seconds,
    ),
    "spark_state_rows": ("Entries in Spark's state store.", lambda p: p.spark_state_rows),
    "spark_state_bytes": ("Memory that Spark's state store uses.", lambda p: p.spark_state_bytes),
}


@dataclass(slots=True)
class StreamTotals:
    """A query so far: its last micro-batch, and what adds up; the seconds of buckets and of Spark are by stage."""

    last: StreamProgress
    totals: Counter[str] = field(default_factory=Counter)
    bucket_seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    spark_seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    seconds: float = 0.0
    batches: int = 0

    def add(self, progress: StreamProgress) -> None:
        """Take a micro-batch more."""
        self.last = progress
        self.batches += 1
        self.seconds += progress.seconds
        for name in COUNTED:
            self.totals[name] += getattr(progress, name)
        for stage in _STAGES:
            self.bucket_seconds[stage] += getattr(progress, f"{stage}_seconds")
        for stage, seconds in progress.spark_seconds.items():
            self.spark_seconds[stage] += seconds

    @property
    def labels(self) -> Labels:
        """What tells the query from others."""
        return {"query": self.last.name or "", "id": self.last.id}


class StreamMetrics(StreamingQueryListener):
    """Metrics of all streams of a session with queries of eventcube, from now until `close`.

    `log` is a file that gets a line of JSON for each micro-batch of a query. With `port` Prometheus can read
    http://host:port/metrics; 0 takes a port that is free, which `port` then says.
    """

    def __init__(
        self,
        spark: SparkSession,
        *,
        log: str | os.PathLike[str] | None = None,
        port: int | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self._queries: dict[str, StreamTotals] = {}
        self._ended: set[str] = set()
        self._lock = threading.Lock()
        self._log = None if log is None else Path(log)
        if self._log is not None:
            try:
                self._log.open("a").close()
            except OSError as error:
                raise OptionError(
                    f"cannot write to {self._log}: {error.strerror}", code="EC601", hint="choose another file"
                ) from None
        self._server = None if port is None else MetricsServer(self.text, host, port)
        self.port = None if self._server is None else self._server.port
        self._streams = spark.streams
        self._streams.addListener(self)

    def of(self, query: str) -> StreamTotals | None:
        """The figures of a query so far, by its id; None before its first micro-batch is known."""
        return self._queries.get(str(query))

    def has_ended(self, query: str) -> bool:
        """Whether a query has ended, and all its micro-batches are known."""
        return str(query) in self._ended

    def text(self) -> str:
        """All metrics so far, as Prometheus reads them."""
        with self._lock:
            return metrics_text(_metrics([*self._queries.values()], self._ended))

    def close(self) -> None:
        """End logging and serving; the streams go on."""
        if self._server is not None:
            self._server.close()
        # The JVM may have ended.
        with suppress(Py4JError, OSError):
            self._streams.removeListener(self)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - as Spark calls it
        """A query that has ended may start again."""
        with self._lock:
            self._ended.discard(str(event.id))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Add a micro-batch."""
        with self._lock:
            query = self._queries.get(str(event.progress.id))
            progress = StreamProgress.of(event.progress, None if query is None else query.last)
            if progress is None:
                return
            if query is None:
                query = self._queries[progress.id] = StreamTotals(progress)
            query.add(progress)
        if self._log is not None:
            # Opened for each line, so that a file that was moved away is made anew.
            with self._log.open("a") as file:
                file.write(json.dumps(progress.as_dict()) + "\n")

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Keep what the query did, and that it has ended."""
        with self._lock:
            self._ended.add(str(event.id))


def _metrics(queries: list[StreamTotals], ended: set[str]) -> Iterator[Metric]:
    def of_each(value: Callable[[StreamTotals], float]) -> list[tuple[Labels, float]]:
        return [(query.labels, value(query)) for query in queries]

    def staged(seconds: Callable[[StreamTotals], Mapping[str, float]]) -> list[tuple[Labels, float]]:
        return [({**q.labels, "stage": stage}, n) for q in queries for stage, n in sorted(seconds(q).items())]

    yield Metric("eventcube_active", "gauge", "Whether the query runs.", of_each(lambda q: int(q.last.id not in ended)))
    yield Metric("eventcube_batches_total", "counter", "Micro-batches.", of_each(lambda q: q.batches))
    yield Metric("eventcube_seconds_total", "counter", "Duration of all micro-batches.", of_each(lambda q: q.seconds))
    for name, meaning in COUNTED.items():
        yield Metric(f"eventcube_{name}_total", "counter", meaning, [(q.labels, q.totals[name]) for q in queries])
    yield Metric(
        "eventcube_bucket_seconds_total",
        "counter",
        "Time of the buckets, a sum over tasks that run beside each other.",
        staged(lambda q: q.bucket_seconds),
    )
    yield Metric(
        "eventcube_spark_seconds_total", "counter", "Time of Spark's own stages.", staged(lambda q: q.spark_seconds)
    )
    for name, (meaning, value) in MEASURED.items():
        samples = [(q.labels, number) for q in queries if (number := value(q.last)) is not None]
        yield Metric(f"eventcube_{name}", "gauge", meaning, samples)


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
