"""`eventcube demo --stream`: the hospital day arrives live, and violations are shown once they are certain."""

from __future__ import annotations

import shutil
import time as clock
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventcube.bench.hospital import QUERY, Day
from eventcube.cli.compiling import compile_loops
from eventcube.cli.demo import Round, make_day, planted_rounds, report, round_text, rounds
from eventcube.cli.on_spark import Spark
from eventcube.cli.progress import working
from eventcube.cli.stream_status import StatusLine, StreamSummary
from eventcube.cli.watch_stream import watch_stream
from eventcube.errors import OptionError
from eventcube.match import match
from eventcube.signals import signals_wait
from eventcube.spark import files
from eventcube.spark.metrics import StreamMetrics, StreamTotals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# How long the day takes to arrive, and how many files a second.
ARRIVAL_SECONDS, FILES_A_SECOND = 40, 2
# Readings arrive up to so many seconds after their time.
DELAY_SECONDS = 240
LATENESS = "5 minutes"
SHOWN = 3


def demo_stream(events: int, seed: int, out: Path, master: str) -> int:
    """Show the violations of a day as it arrives; returns 1 if they are not those that were planted."""
    with working("generating a hospital day"):
        day, tools = make_day(events, seed)
        incoming = _new_folders(out)
    click.echo(
        f"A hospital day: {events:,} RFID readings of {tools:,} tools (seed {seed}), which arrive in files within"
    )
    click.echo(
        f"{ARRIVAL_SECONDS} s, each reading up to {DELAY_SECONDS // 60} minutes late. A violation is certain as soon as"
    )
    click.echo(f"nothing that comes can change it: {LATENESS} after the operation, in the time of the day. One more")
    click.echo("reading, of the day after, lets the stream decide the last ones.\n")
    click.secho(QUERY, fg="cyan")
    if master.startswith("local"):
        compile_loops()
    spark = Spark(master, {}, quiet=False)
    try:
        with signals_wait() as signals:
            arrivals = Arrivals(day, incoming, seed)
            status = StatusLine(quiet=False)
            violations = Violations(day, status)
            metrics = StreamMetrics(spark.session)
            begun = clock.monotonic()
            try:
                with spark.plain_failures(), arrivals:
                    schema = files.stream_schema(spark.session, [str(arrivals.first)], "parquet")
                    stream = files.stream_files(spark.session, str(incoming.resolve()), "parquet", schema, {}, {})
                    matches = match(stream, QUERY, time="ts", type="kind", lateness=LATENESS)
                    writer = matches.writeStream.foreachBatch(violations)
                    query = writer.option("checkpointLocation", str((out / "checkpoint").resolve())).start()
                    totals = watch_stream(query, metrics, status, signals, arrivals.are_decided)
            finally:
                metrics.close()
            summary = StreamSummary.of(totals, clock.monotonic() - begun, spark.start_seconds, stopped=bool(signals))
            click.echo(f"\n{summary.as_text()}\n")
            agree = not signals and report(day, violations.found)
    finally:
        spark.close()
    return 0 if agree else 1


def _new_folders(out: Path) -> Path:
    """An empty folder for files to arrive in, without the checkpoint of an earlier run."""
    incoming = out / "incoming"
    try:
        for folder in (incoming, out / "checkpoint"):
            shutil.rmtree(folder, ignore_errors=True)
        incoming.mkdir(parents=True)
    except OSError as error:
        raise OptionError(f"cannot write to {out}: {error.strerror}", code="EC425") from None
    return incoming


class Arrivals:
    """Files of a day's events, in about the order of time; they arrive in a thread of their own.

    A last event, of the day after, lets the watermark pass all others.
    """

    def __init__(self, day: Day, folder: Path, seed: int) -> None:
        times = day.events["ts"].cast(pa.int64()).to_numpy()
        delays = np.random.default_rng(seed).integers(0, DELAY_SECONDS * 1_000_000, len(times))
        arriving = day.events.take(pa.array(np.argsort(times + delays, kind="stable")))
        count = max(1, ARRIVAL_SECONDS * FILES_A_SECOND)
        size = -(-arriving.num_rows // count)
        self._last = day.events["ts"][-1].as_py()
        after = day.events.slice(0, 1).set_column(
            1, "ts", pa.array([self._last + timedelta(hours=1)], pa.timestamp("us"))
        )
        self._tables = [*(arriving.slice(at, size) for at in range(0, arriving.num_rows, size)), after]
        self._folder = folder
        self._ended = Event()
        self._thread = Thread(target=self._arrive, name="eventcube-arrivals", daemon=True)
        self.first = self._write(0)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def are_decided(self, totals: StreamTotals) -> bool:
        """Whether the watermark has passed all events of the day."""
        watermark = totals.last.watermark
        end: datetime = self._last.replace(tzinfo=UTC)
        return watermark is not None and watermark > end

    def _arrive(self) -> None:
        for number in range(1, len(self._tables)):
            if self._ended.wait(1 / FILES_A_SECOND):
                return
            self._write(number)

    def _write(self, number: int) -> Path:
        """Write a file under a name that readers pass over, and rename it when it is whole."""
        file = self._folder / f"{number:04}.parquet"
        hidden = self._folder / f".{number:04}"
        pq.write_table(self._tables[number], hidden)
        return hidden.rename(file)


class Violations:
    """The violations of each micro-batch, which are shown as they come; one that runs again gives the same."""

    def __init__(self, day: Day, status: StatusLine) -> None:
        self._planted = planted_rounds(day)
        self._status = status
        self._batches: dict[int, list[Round]] = {}

    @property
    def found(self) -> list[Round]:
        """All violations so far."""
        return [one for batch in self._batches.values() for one in batch]

    def __call__(self, matches: DataFrame, batch: int) -> None:
        found = self._batches[batch] = rounds(matches.toArrow())
        if found:
            with self._status.cleared():
                for one in sorted(found, key=lambda one: one[3])[:SHOWN]:
                    click.echo(round_text(one, self._planted))
                if len(found) > SHOWN:
                    click.secho(f"… and {len(found) - SHOWN} more", dim=True)
