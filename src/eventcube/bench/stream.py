"""Measures streams on Spark: throughput beside a stream that only stores its events, latency, and state over time."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventcube.bench.hospital import QUERY
from eventcube.bench.measure import Column, judged, listed, machine, save, screen
from eventcube.bench.stream_runs import (
    MicroBatch,
    NewFiles,
    every_progress,
    files_stream,
    resident_bytes,
    run_stream,
    write_days,
)
from eventcube.bench.trades import Trades
from eventcube.bench.workload import Q3
from eventcube.match import match
from eventcube.spark.session import start_session
from eventcube.spark.storing import storing_dataframe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PARTS = ("throughput", "keys", "latency", "day", "least")
_FILE_EVENTS = 1_000_000
# The least part of the store-only operator's throughput.
GOALS = {"keyed": 0.7, "nested": 0.6}


@dataclass(frozen=True, slots=True)
class Throughput:
    """A query over all events, beside the same stream that only stores them: events a second, and their ratio."""

    query: str
    events: int
    keys: int
    matches: int
    rate: float
    storing_rate: float

    @property
    def ratio(self) -> float:
        return self.rate / self.storing_rate


@dataclass(frozen=True, slots=True)
class Latency:
    """Steady input: percentiles of the seconds from an event to its match in the output."""

    rate: int
    trigger: float
    matches: int
    median: float
    p99: float
    most: float
    micro_batch: float


@dataclass(frozen=True, slots=True)
class Period:
    """A part of a day of events: state for each buffered event, bytes written for each event, and memory."""

    events: int
    buffered: int
    state_bytes: int
    arrow_bytes: int
    written_for_event: float
    memory_mib: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Least:
    """Where the time of a small micro-batch goes, in milliseconds, and how long one of a stream without state takes."""

    kind: str
    total: float
    ours: float
    planning: float
    logging: float
    committing: float


def bench_stream(
    out: Path,
    data: Path,
    parts: Iterable[str] = PARTS,
    *,
    events: int = 20_000_000,
    master: str = "local[2]",
    repetitions: int = 2,
) -> None:
    """Measure the parts, print a table for each, and save it as `stream-<part>.json` and `.csv` in the folder."""
    console = screen()
    header = {"machine": machine("pyspark"), "master": master, "repetitions": repetitions}
    session = start_session(master, {"spark.driver.memory": "4g"})
    try:
        with every_progress(session):
            for part in parts:
                rows = _PARTS[part](session, data, events, repetitions)
                console.print(listed(_TITLES[part], _COLUMNS[part], rows))
                console.print(f"Saved: {save(out, f'stream-{part}', header, rows)}")
    finally:
        session.stop()


def _throughput(session: SparkSession, data: Path, events: int, repetitions: int) -> list[Throughput]:
    trades = Trades(events).write(data / f"stream-{events}", file_events=_FILE_EVENTS)
    days = write_days(data / f"days-{events}", events)
    shapes = [("keyed", Q3.text, trades, "symbol", 1000), ("nested", QUERY, days, "kind", events // 100)]
    # The JVM compiles while the first micro-batches run.
    run_stream(match(files_stream(session, trades).limit(0), Q3.text, time="ts", type="symbol"))
    return [
        _beside_storing(session, name, query, folder, type_, events, keys, repetitions)
        for name, query, folder, type_, keys in shapes
    ]


def _keys(session: SparkSession, data: Path, events: int, repetitions: int) -> list[Throughput]:
    rows = []
    for keys in (100, 1000, 10_000, 100_000, 1_000_000):
        folder = Trades(events, accounts=keys).write(data / f"stream-{events}-{keys}", file_events=_FILE_EVENTS)
        # As many matches for each event, however many keys there are; the window of the most keys fills, too.
        query = f"PATTERN SEQ(INTC a, DELL b, a.account = b.account) WITHIN {8 * keys} ms"
        rows.append(_beside_storing(session, "keyed", query, folder, "symbol", events, keys, repetitions))
    return rows


def _beside_storing(
    session: SparkSession, name: str, query: str, folder: Path, type_: str, events: int, keys: int, repetitions: int
) -> Throughput:
    """The medians of runs in turns."""
    sides: dict[str, Callable[..., DataFrame]] = {"match": match, "store": storing_dataframe}
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    matches = 0
    for _ in range(repetitions):
        for side, frame in sides.items():
            begun = time.perf_counter()
            found = run_stream(frame(files_stream(session, folder), query, time="ts", type=type_))
            seconds[side].append(time.perf_counter() - begun)
            matches = max(matches, sum(batch.matches for batch in found))
    rates = {side: events / statistics.median(times) for side, times in seconds.items()}
    return Throughput(name, events, keys, matches, rates["match"], rates["store"])


def _latency(session: SparkSession, data: Path, events: int, repetitions: int) -> list[Latency]:
    """Events of a clock, whose time is when they come; a match is there when its micro-batch has written it."""
    rate, trigger, keys = 50_000, 2.0, 1000
    clock = session.readStream.format("rate").option("rowsPerSecond", rate).load()
    kinds = "element_at(array('A', 'B', 'C', 'D'), CAST(value % 4 AS INT) + 1)"
    frame = clock.selectExpr("timestamp AS ts", f"{kinds} AS kind", f"pmod(hash(value), {keys}) AS k")
    matches = match(frame, "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 100 ms RETURN b.ts AS b", time="ts", type="kind")
    waits: list[tuple[int, np.ndarray[Any, Any]]] = []

    def write(found: DataFrame, batch: int) -> None:
        ends = found.toArrow().column("b").cast(pa.int64()).to_numpy()
        waits.append((batch, time.time() - ends / 1e6))

    def wait(query: StreamingQuery) -> None:
        query.awaitTermination(30 + 4 * events // 1_000_000)

    found = run_stream(matches, sink=write, trigger={"processingTime": f"{trigger} seconds"}, until=wait)
    # The first ones wait for the workers to start, and for what came meanwhile.
    settled = [waits_ for batch, waits_ in waits if batch >= 5 and len(waits_)]
    seconds = np.concatenate(settled)
    steady = [batch.seconds for batch in found if batch.number >= 5]
    median, p99, most = (float(np.quantile(seconds, q)) for q in (0.5, 0.99, 1))
    return [Latency(rate, trigger, len(seconds), median, p99, most, statistics.median(steady))]


def _day(session: SparkSession, data: Path, events: int, repetitions: int) -> list[Period]:
    """A day, of which each micro-batch has ten minutes, in twelve periods."""
    minutes, step = 24 * 60, 86_400_000_000 // (events // 4)
    size = events // 4 // (minutes // 10)
    trades = Trades(size * (minutes // 10), step_us=step)
    folder = trades.write(data / f"day-{trades.events}", file_events=size, group_events=size)
    query = "PATTERN SEQ(INTC a, DELL b, QQQ c, a.account = b.account = c.account) WITHIN 30 minutes"
    matches = match(files_stream(session, folder), query, time="ts", type="symbol", lateness="1 minute")
    samples: list[tuple[int, int]] = []
    with tempfile.TemporaryDirectory() as temporary:
        files = NewFiles(Path(temporary))

        def sample(found: DataFrame, batch: int) -> None:
            found.write.format("noop").mode("overwrite").save()
            samples.append((files.size(), resident_bytes({os.getpid()})))

        batches = run_stream(matches, Path(temporary) / "checkpoint", sink=sample)
    # The last one has no input.
    batches, samples = batches[:-1], samples[: len(batches) - 1]
    row_bytes = _arrow_bytes(folder)
    periods = []
    for places in np.array_split(np.arange(len(batches)), 12):
        part, last = [batches[i] for i in places], batches[places[-1]]
        rows = sum(batch.rows for batch in part)
        buffered = last.held + last.retained
        periods.append(
            Period(
                rows,
                buffered,
                last.state_bytes,
                int(buffered * row_bytes),
                sum(samples[i][0] for i in places) / rows,
                max(samples[i][1] for i in places) / 2**20,
                statistics.median(batch.seconds for batch in part),
            )
        )
    return periods


def _arrow_bytes(folder: Path) -> float:
    """The bytes of an event in Arrow, with the columns that the query needs."""
    import pyarrow.parquet as pq

    table = pq.read_table(min(folder.glob("*.parquet")), columns=["symbol", "ts", "account", "price", "volume"])
    table = table.filter(pc.is_in(table.column("symbol"), pa.array(["INTC", "DELL", "QQQ"]))).combine_chunks()
    return float(table.nbytes / table.num_rows)


def _least(session: SparkSession, data: Path, events: int, repetitions: int) -> list[Least]:
    """Micro-batches of a few hundred events, one after the other."""
    clock = session.readStream.format("rate").option("rowsPerSecond", 500).load()
    frame = clock.selectExpr(
        "timestamp AS ts", "CASE value % 2 WHEN 0 THEN 'A' ELSE 'B' END AS kind", "value % 50 AS k"
    )
    query = "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 1 second"

    def wait(running: StreamingQuery) -> None:
        running.awaitTermination(40)

    frames: dict[str, Callable[[], DataFrame]] = {
        "no state": lambda: frame.where("kind = 'A'"),
        "ec.match": lambda: match(frame, query, time="ts", type="kind"),
        "store only": lambda: storing_dataframe(frame, query, time="ts", type="kind"),
    }
    rows = []
    for kind, make in frames.items():
        found = run_stream(make(), until=wait, trigger={"processingTime": "0 seconds"})[5:]
        rows.append(
            Least(
                kind, *(1e3 * _median(found, part) for part in ("seconds", "ours", "planning", "logging", "committing"))
            )
        )
    return rows


def _median(batches: Sequence[MicroBatch], part: str) -> float:
    return float(statistics.median(getattr(batch, part) for batch in batches))


_PARTS: dict[str, Callable[[SparkSession, Path, int, int], list[Any]]] = {
    "throughput": _throughput,
    "keys": _keys,
    "latency": _latency,
    "day": _day,
    "least": _least,
}
_TITLES = {
    "throughput": "Throughput, all of the input read at once, beside a stream that only stores its events",
    "keys": "Throughput over the number of keys",
    "latency": "Steady input: seconds from an event to its match in the output",
    "day": "A day of events in twelve periods",
    "least": "A micro-batch of few events, in milliseconds",
}
_RATES = [
    Column("query", lambda r: r.query),
    Column("events", lambda r: f"{r.events:,}"),
    Column("keys", lambda r: f"{r.keys:,}"),
    Column("matches", lambda r: f"{r.matches:,}"),
    Column("M events/s", lambda r: f"{r.rate / 1e6:.2f}"),
    Column("storing M/s", lambda r: f"{r.storing_rate / 1e6:.2f}"),
    Column("ratio", lambda r: judged(f"{r.ratio:.2f}", met=r.ratio >= GOALS[r.query])),
]
_COLUMNS = {
    "throughput": _RATES,
    "keys": _RATES,
    "latency": [
        Column("events/s", lambda r: f"{r.rate:,}"),
        Column("trigger s", lambda r: f"{r.trigger:g}"),
        Column("matches", lambda r: f"{r.matches:,}"),
        Column("median", lambda r: f"{r.median:.2f}"),
        Column("99 %", lambda r: judged(f"{r.p99:.2f}", met=r.p99 <= 3 * r.trigger)),
        Column("most", lambda r: f"{r.most:.2f}"),
        Column("micro-batch s", lambda r: f"{r.micro_batch:.2f}"),
    ],
    "day": [
        Column("events", lambda r: f"{r.events:,}"),
        Column("buffered", lambda r: f"{r.buffered:,}"),
        Column(
            "state / Arrow",
            lambda r: judged(f"{r.state_bytes / r.arrow_bytes:.2f}", met=r.state_bytes < 2 * r.arrow_bytes),
        ),
        Column("written B/event", lambda r: f"{r.written_for_event:.1f}"),
        Column("memory MiB", lambda r: f"{r.memory_mib:,.0f}"),
        Column("micro-batch s", lambda r: f"{r.seconds:.2f}"),
    ],
    "least": [
        Column("stream", lambda r: r.kind),
        Column("all", lambda r: f"{r.total:.0f}"),
        Column("ours, of all buckets", lambda r: f"{r.ours:.0f}"),
        Column("planning", lambda r: f"{r.planning:.0f}"),
        Column("logs", lambda r: f"{r.logging:.0f}"),
        Column("state commits", lambda r: f"{r.committing:.0f}"),
    ],
}
