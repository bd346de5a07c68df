"""Streams on Spark that go on from a checkpoint with other queries, or are refused with what differs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

import eventcube as ec
from eventcube.spark.columns import ZONE_SETTING
from eventcube.spark.settings import PARTITIONS
from tests.faults.processes import wait_until
from tests.spark.frames import rows_of
from tests.spark.streams import Folder, Sink, cut
from tests.spark.test_streaming import (
    KEYED,
    LATENESS,
    SECOND,
    SETTINGS,
    START,
    UNKEYED,
    decided,
    last_watermark,
    random_table,
)

PAIR, NESTED, UNUSED = (KEYED[name] for name in ("pair", "nested", "unused"))


@pytest.fixture(autouse=True)
def _few_tasks(spark: SparkSession) -> Iterator[None]:
    settings = {PARTITIONS: "2", "spark.sql.shuffle.partitions": "2"}
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Folder:
    return Folder(spark, tmp_path / "in")


@pytest.fixture
def sink(tmp_path: Path) -> Sink:
    return Sink(tmp_path / "checkpoint")


def of_query(matches: pa.Table, name: str) -> pa.Table:
    """The matches of a query, without a column for late rows."""
    return matches.filter(pc.equal(matches.column("query"), name)).select(["query", "start", "end", "events"])


def test_queries_are_added_and_removed_and_the_others_go_on(folder: Folder, sink: Sink) -> None:
    events = random_table(600, 200)
    pieces = cut(events, 6)
    folder.write(*pieces[:2])
    sink.run(ec.match(folder.stream, {"pair": PAIR, "unused": UNUSED}, lateness=LATENESS, **SETTINGS))
    read = pa.concat_tables(pieces[:2])
    folder.write(*pieces[2:4])
    # Another order and lateness, and late rows are kept.
    changed = {"nested": NESTED, "pair": PAIR}
    found = sink.run(ec.match(folder.stream, changed, lateness="7 seconds", keep_late=True, **SETTINGS))
    removed = of_query(found, "unused")
    folder.write(*pieces[4:])
    found = sink.run(ec.match(folder.stream, {"pair": PAIR, "nested": NESTED}, lateness=LATENESS, **SETTINGS))
    end = last_watermark(events)
    # All events that are later than the latest that was read before, in milliseconds.
    since = pc.max(read.column("ts").cast(pa.int64())).as_py() // 1000 * 1000 + 1000
    later = events.filter(pc.greater_equal(events.column("ts").cast(pa.int64()), since))
    for name, query, seen in (("pair", PAIR, events), ("nested", NESTED, later)):
        complete = decided(ec.match(seen, {name: query}, **SETTINGS), end, 0)
        assert rows_of(of_query(found, name)) == rows_of(complete), name
        assert complete.num_rows > 20
    complete = decided(ec.match(events, {"unused": UNUSED}, **SETTINGS), last_watermark(read), 15)
    assert rows_of(of_query(found, "unused")) == rows_of(removed) == rows_of(complete)
    assert complete.num_rows > 0


@pytest.mark.parametrize(
    ("queries", "settings", "code", "message"),
    [
        ({"pair": UNUSED}, {}, "EC412", "query 'pair' was PATTERN"),
        ({"pair": PAIR}, {"order_by": "id"}, "EC412", "setting 'order_by' was none, and is id"),
        ({"pair": PAIR}, {"concepts": {"P": ["A"]}}, "EC412", "type 'A' is new"),
        ({"pair": PAIR, "unkeyed": UNKEYED}, {}, "EC495", "spread over buckets not at all and by k, and in the checkp"),
        ({"unkeyed": UNKEYED}, {}, "EC495", "not at all, and in the checkpoint by k"),
        # One Spark source more than in the checkpoint: Spark says so itself.
        ({"pair": PAIR}, {"idle_timeout": "1 hour"}, "", r"There are \[1\] sources in the checkpoint offsets and now"),
    ],
)
def test_what_cannot_change(
    queries: dict[str, str], settings: dict[str, Any], code: str, message: str, folder: Folder, sink: Sink
) -> None:
    folder.write(random_table(40, 20))
    sink.run(ec.match(folder.stream, {"pair": PAIR}, lateness=LATENESS, **SETTINGS))
    folder.write(random_table(40, 20))
    with pytest.raises(StreamingQueryException, match=f"(?s){code}.*{message}"):
        sink.run(ec.match(folder.stream, queries, lateness=LATENESS, **SETTINGS, **settings))


def test_another_zone_of_the_session_is_refused(folder: Folder, sink: Sink, spark: SparkSession) -> None:
    """Conditions read moments in it; with the zone of before the stream goes on."""
    for zone in ("UTC", "Europe/Berlin", "UTC"):
        spark.conf.set(ZONE_SETTING, zone)
        folder.write(random_table(40, 20))
        matches = ec.match(folder.stream, {"pair": PAIR}, lateness=LATENESS, **SETTINGS)
        if zone == "UTC":
            sink.run(matches)
        else:
            with pytest.raises(StreamingQueryException, match=r"EC412.*column 'ts' was timestamp\[us, tz=UTC\]"):
                sink.run(matches)


def test_an_idle_timeout_longer_than_a_backlog_lets_it_be_read_piece_by_piece(folder: Folder, sink: Sink) -> None:
    """With a short one the clock would move the watermark past what is left; it can be short at the next start."""
    events = random_table(300, 100)
    ago = int(time.time()) - 7200 - START // SECOND
    moved = pc.add(events.column("ts").cast(pa.int64()), ago * SECOND)
    events = events.set_column(0, "ts", moved.cast(events.schema.field("ts").type))
    complete = rows_of(ec.match(events, {"pair": PAIR}, **SETTINGS))
    assert len(complete) > 20
    folder.write(*cut(events, 4))

    def run(idle_timeout: str, is_done: Callable[[StreamingQuery], bool]) -> None:
        running = sink.start(
            ec.match(folder.stream, {"pair": PAIR}, lateness=LATENESS, idle_timeout=idle_timeout, **SETTINGS)
        )
        try:
            wait_until(lambda: is_done(running) or running.exception(), "the end", pause=0.1)
        finally:
            running.stop()

    run("1 day", lambda query: sum(p.sources[0].numInputRows for p in query.recentProgress) == 300)
    assert len(sink.batches) >= 4
    run("1 second", lambda _: sum(batch.num_rows for batch in [*sink.batches.values()]) >= len(complete))
    assert rows_of(pa.concat_tables(sink.batches.values())) == complete


@pytest.mark.parametrize("partitions", [1, 3, 5])
def test_another_number_of_buckets_is_seen_whatever_the_keys(
    partitions: int, folder: Folder, sink: Sink, spark: SparkSession
) -> None:
    table = random_table(40, 20)
    for i, key in enumerate((1, 2, 3)):
        events = table.set_column(2, "k", pa.array([key] * table.num_rows, pa.int64()))
        spark.conf.set(PARTITIONS, "2" if i == 0 else str(partitions))
        folder.write(events)
        matches = ec.match(folder.stream, {"pair": PAIR}, lateness=LATENESS, **SETTINGS)
        if i == 0:
            sink.run(matches)
        else:
            with pytest.raises(StreamingQueryException, match=f"EC494.*in 2 buckets, and now there are {partitions}"):
                sink.run(matches)
