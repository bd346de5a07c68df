"""Clocks that stand still, and clocks that jump."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import eventcube as ec
from tests.faults.processes import wait_until
from tests.faults.session_stream import SessionStream
from tests.faults.workloads import SECOND, SETTINGS, START, Feed, events
from tests.spark.streams import Folder, Sink

DAY = 86_400


@pytest.mark.parametrize("idle_timeout", ["1 second", None])
def test_an_idle_source(idle_timeout: str | None, spark: SparkSession, tmp_path: Path) -> None:
    """With a timeout the clock moves the watermark; without one matches wait for the next event."""
    folder, sink = Folder(spark, tmp_path / "in"), Sink(tmp_path / "checkpoint")
    now = time.time() - START / SECOND
    folder.write(events([now], ["A"], [1]))
    query = "PATTERN SEQ(A a, !C c, a.k = c.k) WITHIN 2 seconds"
    matches = ec.match(folder.stream, query, idle_timeout=idle_timeout, **SETTINGS)
    running = sink.start(matches)
    try:
        if idle_timeout is not None:
            wait_until(lambda: keys_of(sink) or running.exception(), "a match", pause=0.1)
        else:
            running.processAllAvailable()
            assert keys_of(sink) == []
            folder.write(events([now + 3], ["A"], [2]))
            running.processAllAvailable()
    finally:
        running.stop()
    assert keys_of(sink) == [1]


def keys_of(sink: Sink) -> list[int]:
    """The keys of the matches so far."""
    return [match["a"]["k"] for batch in list(sink.batches.values()) for match in batch.to_pylist()]


def test_a_jump_of_a_day(spark: SparkSession, tmp_path: Path) -> None:
    """One event of tomorrow makes all that come today late; they are kept, and tomorrow the stream goes on."""
    stream = SessionStream(spark, tmp_path, "keyed")
    today = Feed(6).tables()
    jump = events([DAY], ["A"], [1], first=6_000)
    tomorrow = Feed(3, begin=DAY + 60, first=6_001, seed=18).tables()
    stream.run(*today[:2], pa.concat_tables([today[2], jump]))
    before = stream.counts["late"]
    stream.run(*today[3:])
    assert stream.counts["late"] == before + 3_000
    after = pa.concat_tables(today[3:]).column("id")
    assert set(after.to_pylist()) <= set(stream.late.column("id").to_pylist())
    stream.run(*tomorrow)
    stream.check()
    last = pa.concat_tables(stream.sink.batches.values()).column("end").cast(pa.int64())
    assert pc.max(last).as_py() > START + (DAY + 120) * SECOND


def test_events_of_tomorrow_can_be_left_out(spark: SparkSession, tmp_path: Path) -> None:
    """The clock of Spark knows better: the watermark stays where it was."""
    now = time.time() - START / SECOND
    pieces = Feed(3, begin=now - 120, jitter=4, behind=0).tables()
    stream = SessionStream(spark, tmp_path, "keyed", where="ts < current_timestamp() + INTERVAL 1 HOUR")
    stream.run(pieces[0], pa.concat_tables([pieces[1], events([now + DAY], ["A"], [1], first=3_000)]), pieces[2])
    assert stream.counts["late"] == 0
    stream.check()
