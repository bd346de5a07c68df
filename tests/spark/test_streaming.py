"""Streams on Spark: their matches are those of a batch, each once, and they can be stopped at any point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import eventcube as ec
from eventcube.errors import OptionError
from eventcube.spark.bucket_names import group_names, place_of, spark_hash
from eventcube.spark.java import find_java
from eventcube.spark.settings import PARTITIONS
from eventcube.spark.state_store import PROVIDER, ROCKSDB
from tests.differential.compare import oracle_matches, read_settings
from tests.oracle.brute import positive_variables
from tests.oracle.generate import Case, random_case, to_arrow
from tests.spark import ask_plain_stream
from tests.spark.frames import rows_of
from tests.spark.streams import Folder, Sink, cut

ROOT = Path(__file__).parents[2]
SECOND = 1_000_000
START = 1_767_600_000 * SECOND
LATENESS = "5 seconds"
SETTINGS: dict[str, Any] = {"time": "ts", "type": "kind"}
KEYED = {
    "pair": "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 20 seconds",
    "unused": "PATTERN SEQ(A a, !C c, a.k = c.k) WITHIN 15 seconds",
    "nested": "PATTERN SEQ(A a, !AND(B b, C c, b.k = c.k), D d, a.k = d.k = b.k) WITHIN 30 seconds",
}
UNKEYED = "PATTERN SEQ(A a, B b, !D d, C c) WITHIN 6 events"


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


def table_of(kinds: Any, seconds: Any, keys: Any) -> pa.Table:
    """Events at some seconds, numbered as they arrive."""
    micros = START + (np.array(seconds) * SECOND).astype(np.int64)
    return pa.table(
        {
            "ts": pa.array(micros, pa.timestamp("us", "UTC")),
            "kind": pa.array(kinds, pa.string()),
            "k": pa.array(keys, pa.int64()),
            "id": pa.array(range(len(micros)), pa.int64()),
        }
    )


def random_table(count: int, seconds: int, jitter: float = 4.9) -> pa.Table:
    """Events that arrive up to some seconds after their time; many at the same time."""
    rng = np.random.default_rng(17)
    times = np.round(np.sort(rng.uniform(0, seconds, count)), 1)
    order = np.argsort(times + rng.uniform(0, jitter, count), kind="stable")
    kinds, keys = rng.choice(list("ABCD"), count), rng.integers(0, 8, count)
    return table_of(kinds[order], times[order], keys[order])


def decided(matches: pa.Table, watermark: int, ahead: int) -> pa.Table:
    """The matches that a watermark decides, if they may have to wait some seconds after their first event."""
    start, end = (matches.column(name).cast(pa.int64()) for name in ("start", "end"))
    return matches.filter(pc.and_(pc.less(end, watermark), pc.less(start, watermark - ahead * SECOND)))


def last_watermark(table: pa.Table, lateness: int = 5) -> int:
    latest: int = pc.max(table.column("ts").cast(pa.int64())).as_py()
    return (latest - lateness * SECOND) // 1000 * 1000


class TestMatches:
    def test_keyed_queries_with_late_rows(self, folder: Folder, sink: Sink) -> None:
        events = random_table(400, 200)
        pieces = [*cut(events, 4)]
        # Later than any watermark that the first three pieces make, by a second and more.
        late = table_of(["A", "B", "C", "D", "B"], [50, 51, 52, 53, 90], [1, 1, 1, 1, 2])
        folder.write(*pieces[:3], pa.concat_tables([pieces[3], late]))
        counts = ec.Counts()
        found = sink.run(ec.match(folder.stream, KEYED, lateness=LATENESS, counters=counts, **SETTINGS))
        expected = ec.match(events, KEYED, **SETTINGS)
        by_query = {"pair": 0, "unused": 15, "nested": 0}
        for name, ahead in by_query.items():
            own = expected.filter(pc.equal(expected.column("query"), name))
            complete = decided(own, last_watermark(events), ahead)
            assert rows_of(found.filter(pc.equal(found.column("query"), name))) == rows_of(complete), name
            assert complete.num_rows > 20
        assert counts["late"] == late.num_rows
        assert counts["matches"] == found.num_rows
        assert len(sink.batches) >= 5

    def test_a_window_of_events_and_no_key(self, folder: Folder, sink: Sink) -> None:
        events = random_table(300, 100)
        folder.write(*cut(events, 3))
        found = sink.run(ec.match(folder.stream, UNKEYED, lateness=LATENESS, **SETTINGS))
        complete = decided(ec.match(folder.table, UNKEYED, **SETTINGS).toArrow(), last_watermark(events), 0)
        assert rows_of(found) == rows_of(complete)
        assert complete.num_rows > 10

    def test_queries_with_and_without_a_key_together(self, folder: Folder, sink: Sink) -> None:
        queries = {"keyed": KEYED["pair"], "unkeyed": UNKEYED}
        events = random_table(200, 60)
        folder.write(*cut(events, 2))
        found = sink.run(ec.match(folder.stream, queries, lateness=LATENESS, **SETTINGS))
        expected = ec.match(folder.table, queries, **SETTINGS).toArrow()
        assert rows_of(found) == rows_of(decided(expected, last_watermark(events), 0))
        assert Counter(found.column("query").to_pylist()).keys() == queries.keys()

    def test_the_watermark_moves_while_no_event_of_the_query_comes(self, folder: Folder, sink: Sink) -> None:
        first = table_of(["A", "A", "C"], [10, 11, 20], [1, 2, 2])
        folder.write(first, table_of(["other"], [24], [1]), table_of(["other"], [30], [1]))
        matches = ec.match(folder.stream, KEYED["unused"], lateness=LATENESS, **SETTINGS)
        # A trailing negation looks ahead to the end of the window, and that is the watermark, not before it.
        assert sink.run(matches).num_rows == 0
        folder.write(table_of(["other"], [30.001], [1]))
        assert sink.run(matches).column("a").to_pylist()[0]["k"] == 1

    def test_rows_at_the_watermark_and_micro_batches_that_are_late_as_a_whole(self, folder: Folder, sink: Sink) -> None:
        query = "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 20 seconds"
        folder.write(
            table_of(["A", "other"], [9, 15], [1, 1]),
            # The watermark is at 10 seconds.
            table_of(["B"], [10], [1]),
            table_of(["B", "B"], [9.999, 9.5], [1, 1]),
            table_of(["other"], [100], [1]),
        )
        counts = ec.Counts()
        found = sink.run(ec.match(folder.stream, query, lateness=LATENESS, counters=counts, **SETTINGS))
        assert [event["ts"].second for event in found.column("b").to_pylist()] == [10]
        assert counts["late"] == 2
        assert all(p["stateOperators"][0]["numRowsDroppedByWatermark"] == 0 for p in sink.progress)

    def test_text_as_time_and_rows_that_cannot_be_used(self, folder: Folder, sink: Sink) -> None:
        times = ["2026-01-05T08:00:00Z", "2026-01-05 08:00:05", None, "soon", "2026-01-05T08:00:06Z", "2026-01-06"]
        events = pa.table({"ts": times, "kind": ["A", "B", "A", "A", None, "other"]})
        folder.write(events)
        counts = ec.Counts()
        query = "PATTERN SEQ(A a, B b) WITHIN 20 seconds"
        found = sink.run(ec.match(folder.stream, query, counters=counts, **SETTINGS))
        assert rows_of(found) == rows_of(ec.match(events, query, **SETTINGS))
        assert found.num_rows == 1
        assert counts["set_aside"] == 3


class TestRestart:
    def test_a_stream_goes_on_from_its_checkpoint(self, folder: Folder, sink: Sink) -> None:
        events = random_table(400, 200)
        pieces = cut(events, 4)
        expected = ec.match(events, KEYED["pair"], **SETTINGS)
        folder.write(pieces[0])
        matches = ec.match(folder.stream, KEYED["pair"], lateness=LATENESS, **SETTINGS)
        sink.run(matches)
        folder.write(pieces[1])
        # The same frame, whose live copies may be there still.
        sink.run(matches)
        folder.write(*pieces[2:])
        # Another one, which finds none.
        found = sink.run(ec.match(folder.stream, KEYED["pair"], lateness=LATENESS, **SETTINGS))
        assert rows_of(found) == rows_of(decided(expected, last_watermark(events), 0))

    def test_what_the_checkpoint_does_not_fit_is_refused(self, folder: Folder, sink: Sink, spark: SparkSession) -> None:
        folder.write(random_table(40, 20))
        sink.run(ec.match(folder.stream, KEYED["pair"], lateness=LATENESS, **SETTINGS))
        folder.write(random_table(40, 20))
        with pytest.raises(StreamingQueryException, match=r"EC412.*was PATTERN"):
            sink.run(ec.match(folder.stream, KEYED["nested"], lateness=LATENESS, **SETTINGS))
        spark.conf.set(PARTITIONS, "3")
        with pytest.raises(StreamingQueryException, match=r"EC494.*in 2 buckets"):
            sink.run(ec.match(folder.stream, KEYED["pair"], lateness=LATENESS, **SETTINGS))


class TestLateRows:
    def test_late_rows_come_with_the_matches(self, folder: Folder, sink: Sink) -> None:
        folder.write(
            table_of(["A", "other"], [9, 15], [1, 1]),
            # The watermark is at 10 seconds.
            table_of(["B", "B", "other"], [9.5, 10, 9], [1, 1, 1]),
            table_of(["other"], [100], [1]),
        )
        query = "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 20 seconds RETURN a.id AS a, b.id AS b"
        frame = ec.match(folder.stream, query, lateness=LATENESS, keep_late=True, **SETTINGS)
        found = sink.run(frame)
        matches = found.filter(found.column("late").is_null())
        assert matches.select(["a", "b"]).to_pylist() == [{"a": 0, "b": 1}]
        late = folder.spark.createDataFrame(found)
        rows = ec.late_rows(late).collect()
        # Not the row whose type no query names.
        assert [(row["kind"], row["ts"].second, row["k"], row["id"]) for row in rows] == [("B", 9, 1, 0)]

    def test_each_late_row_comes_once_however_the_queries_are_spread(self, folder: Folder, sink: Sink) -> None:
        queries = {"keyed": KEYED["pair"], "unkeyed": UNKEYED}
        late = table_of(["A", "B", "D", "other"], [1, 2, 3, 4], [1, 2, 3, 4])
        folder.write(table_of(["A", "B"], [50, 51], [1, 1]), late, table_of(["other"], [100], [1]))
        counts = ec.Counts()
        found = sink.run(ec.match(folder.stream, queries, keep_late=True, counters=counts, **SETTINGS))
        rows = ec.late_rows(folder.spark.createDataFrame(found)).collect()
        # The window of events of the query without a key counts events of any type.
        assert Counter(row["kind"] for row in rows) == Counter({"A": 1, "B": 1, "D": 1, "other": 1})
        assert counts["late"] == 4

    def test_a_flat_result_has_them_too(self, folder: Folder, sink: Sink) -> None:
        folder.write(table_of(["A", "B"], [10, 50], [1, 1]), table_of(["B"], [11], [1]))
        query = "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 20 seconds"
        found = sink.run(ec.match(folder.stream, query, flat=True, keep_late=True, match_id=True, **SETTINGS))
        assert [row["id"] for row in found.column("late").to_pylist()] == [0]
        assert found.column_names[-2:] == ["match_id", "late"]
        assert "a_id" in found.column_names

    def test_a_column_called_late_is_in_the_way(self, folder: Folder) -> None:
        folder.write(table_of(["A"], [1], [1]))
        query = "PATTERN SEQ(A a, B b) WITHIN 20 seconds RETURN a.k AS late"
        with pytest.raises(OptionError, match="EC496"):
            ec.match(folder.stream, query, keep_late=True, **SETTINGS)

    def test_there_must_be_late_rows_to_ask_for(self, folder: Folder) -> None:
        folder.write(table_of(["A"], [1], [1]))
        with pytest.raises(OptionError, match="EC497"):
            ec.late_rows(ec.match(folder.stream, KEYED["pair"], **SETTINGS))


class TestGroups:
    QUERY = (
        "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 20 seconds "
        "GROUPBY a.k AS k AGG COUNT(*) AS n, AVG(b.ts - a.ts) AS wait"
    )

    def test_a_group_comes_again_when_it_changes(self, folder: Folder, sink: Sink) -> None:
        events = random_table(300, 150)
        last = table_of(["other"], [1000], [1])
        folder.write(*cut(events, 3))
        frame = ec.match(folder.stream, self.QUERY, lateness=LATENESS, **SETTINGS)
        sink.run(frame, mode="update")
        folder.write(last)
        # Another frame, and so no live copies: groups go on from the checkpoint.
        sink.run(ec.match(folder.stream, self.QUERY, lateness=LATENESS, **SETTINGS), mode="update")
        changes = [batch for _, batch in sorted(sink.batches.items()) if batch.num_rows]
        assert len(changes) > 2
        latest = {row["k"]: row for batch in changes for row in batch.to_pylist()}
        expected = ec.match(events, self.QUERY, **SETTINGS)
        assert list(map(str, sorted(latest.values(), key=lambda row: row["k"]))) == [
            str(row) for row in sorted(expected.to_pylist(), key=lambda row: row["k"])
        ]

    def test_groups_of_a_column_that_is_not_the_key_are_whole(self, folder: Folder, sink: Sink) -> None:
        events = random_table(300, 150)
        query = "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 20 seconds GROUPBY MINUTE(a.ts) AS minute AGG COUNT(*) AS n"
        folder.write(*cut(events, 2), table_of(["other"], [1000], [1]))
        sink.run(ec.match(folder.stream, query, lateness=LATENESS, **SETTINGS), mode="update")
        latest = {row["minute"]: row["n"] for _, batch in sorted(sink.batches.items()) for row in batch.to_pylist()}
        assert latest == {row["minute"]: row["n"] for row in ec.match(events, query, **SETTINGS).to_pylist()}

    def test_append_mode_is_refused(self, folder: Folder, tmp_path: Path) -> None:
        folder.write(table_of(["A"], [1], [1]))
        writer = ec.match(folder.stream, self.QUERY, **SETTINGS).writeStream.format("noop")
        with pytest.raises(OptionError, match="EC498"):
            writer.option("checkpointLocation", str(tmp_path / "c")).start()
        with pytest.raises(OptionError, match="EC498"):
            writer.outputMode("complete").start()

    @pytest.mark.parametrize("derive", ["select", "view", "where"])
    def test_append_mode_is_refused_for_what_is_made_of_groups(
        self, derive: str, folder: Folder, sink: Sink, spark: SparkSession
    ) -> None:
        folder.write(random_table(100, 60), table_of(["other"], [1000], [1]))
        groups = ec.match(folder.stream, self.QUERY, **SETTINGS)
        groups.createOrReplaceTempView("some_groups")
        derived = {
            "select": lambda: groups.select("k", "n"),
            "view": lambda: spark.sql("SELECT k, n FROM some_groups"),
            "where": lambda: groups.where("n > 0"),
        }[derive]()
        with pytest.raises(StreamingQueryException, match=r"EC498.*in append mode"):
            sink.run(derived)
        assert not any(batch.num_rows for batch in sink.batches.values())
        assert sink.run(derived, mode="update").num_rows


class TestWatermarks:
    QUERY = "PATTERN SEQ(A a, B b) WITHIN 20 seconds"

    def test_one_before_is_refused(self, folder: Folder) -> None:
        folder.write(table_of(["A"], [1], [1]))
        events = folder.stream.withWatermark("ts", "1 minute").dropDuplicatesWithinWatermark(["k"]).where("k > 0")
        with pytest.raises(OptionError, match=r"EC499.*a watermark already"):
            ec.match(events, self.QUERY, **SETTINGS)
        table = folder.table.withWatermark("ts", "1 minute")
        assert ec.match(table, self.QUERY, **SETTINGS).count() == 0

    def test_one_after_is_refused(self, folder: Folder) -> None:
        folder.write(table_of(["A"], [1], [1]))
        matches = ec.match(folder.stream, self.QUERY, flat=True, **SETTINGS)
        with pytest.raises(OptionError, match=r"EC499.*a second watermark"):
            matches.withWatermark("end", "1 minute")
        ends = matches.select(F.col("end").alias("ts"), F.lit("A").alias("kind"))
        with pytest.raises(OptionError, match=r"EC499.*are matches of another"):
            ec.match(ends, self.QUERY, **SETTINGS)

    def test_late_rows_of_a_result_as_it_is(self, folder: Folder) -> None:
        folder.write(table_of(["A"], [1], [1]))
        matches = ec.match(folder.stream, self.QUERY, keep_late=True, **SETTINGS)
        assert ec.late_rows(matches).isStreaming


class TestRowsThatEnd:
    """Rows of events, and groups by buckets of time: each is written once."""

    PAIR = "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 20 seconds"

    @pytest.mark.parametrize(
        "query",
        [
            pytest.param(f"{PAIR} AGG COUNT(*) AS n, AVG(b.ts - a.ts) AS wait PER b HAVING n > 1", id="last"),
            pytest.param(f"{PAIR} AGG COUNT(*) AS n, COUNT(DISTINCT b.id) AS d PER a", id="first"),
            pytest.param("PATTERN SEQ(A a, B b, !C c) WITHIN 3 seconds AGG COUNT(*) AS n PER a", id="looking ahead"),
            pytest.param(f"{PAIR} GROUPBY b.ts EVERY 20 seconds AS t AGG COUNT(*) AS n HAVING n > 2", id="groups"),
            pytest.param(f"{PAIR} GROUPBY a.k AS k, a.ts EVERY 20 seconds AS t AGG COUNT(*) AS n", id="groups, keyed"),
            pytest.param(
                "PATTERN SEQ(A a, B b) WITHIN 5 events GROUPBY b.ts EVERY 20 seconds AS t AGG COUNT(*) AS n",
                id="groups, count window",
            ),
        ],
    )
    def test_each_row_is_written_once(self, query: str, folder: Folder, sink: Sink) -> None:
        events = random_table(300, 150)
        order = {"order_by": "id"} if "events" in query else {}
        folder.write(*cut(events, 3))
        found = sink.run(ec.match(folder.stream, query, lateness=LATENESS, **SETTINGS, **order))
        # Some are final before the input ends.
        assert found.num_rows > 0
        # Another frame, and so no live copies: what is left goes on from the checkpoint.
        folder.write(table_of(["other"], [1000], [1]), table_of(["other"], [1100], [1]))
        found = sink.run(ec.match(folder.stream, query, lateness=LATENESS, **SETTINGS, **order))
        assert rows_of(found) == rows_of(ec.match(events, query, **SETTINGS, **order))

    @pytest.mark.parametrize(
        "groups",
        [
            pytest.param("WITHIN 9 events GROUPBY a.ts EVERY 1 minute", id="not the last event of a window of events"),
            pytest.param("WITHIN 9 s GROUPBY b.ts + 1 s EVERY 1 minute", id="a computed time"),
        ],
    )
    def test_groups_by_time_that_have_no_end(self, groups: str, folder: Folder, tmp_path: Path) -> None:
        folder.write(table_of(["A"], [1], [1]))
        query = f"PATTERN SEQ(A a, B b) {groups} AGG COUNT(*) AS n"
        with pytest.raises(OptionError, match="EC492"):
            ec.match(folder.stream, f"{query} HAVING n > 1", **SETTINGS)
        writer = ec.match(folder.stream, query, **SETTINGS).writeStream.format("noop")
        with pytest.raises(OptionError, match="EC498"):
            writer.option("checkpointLocation", str(tmp_path / "c")).start()


class TestCube:
    CUBE = ec.Cube(
        {"any": "PATTERN SEQ(X x, B b, x.k = b.k) WITHIN 20 seconds"}, concepts={"X": ["A", "C"]}, type="kind"
    )

    def test_a_cube_over_a_stream(self, folder: Folder, sink: Sink) -> None:
        cube = self.CUBE.copy()
        cube.concept_drill_down("any", ("X", "A", 1), name="narrow")
        events = random_table(200, 60)
        folder.write(*cut(events, 2), table_of(["other"], [1000], [1]))
        found = sink.run(cube.match(folder.stream, lateness=LATENESS))
        assert rows_of(found) == rows_of(cube.match(events))
        assert set(found.column("query").to_pylist()) == {"any", "narrow"}

    def test_each_query_has_a_stream_of_its_own(self, folder: Folder, tmp_path: Path) -> None:
        events = random_table(100, 60)
        folder.write(events, table_of(["other"], [1000], [1]))
        queries = {"pair": KEYED["pair"], "groups": TestGroups.QUERY}
        frames = ec.match_all(folder.stream, queries, lateness=LATENESS, **SETTINGS)
        found = Sink(tmp_path / "pair").run(frames["pair"])
        assert rows_of(found) == rows_of(ec.match(events, KEYED["pair"], **SETTINGS))
        assert frames["groups"].columns == ["k", "n", "wait"]

    def test_counts_are_of_tables(self, folder: Folder) -> None:
        folder.write(table_of(["A"], [1], [1]))
        with pytest.raises(OptionError, match="EC409"):
            self.CUBE.counts(folder.stream)


def test_a_session_made_with_nothing_but_get_or_create(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    events = pa.concat_tables([random_table(300, 150), table_of(["other"], [1000], [1])])
    pq.write_table(events, tmp_path / "in" / "events.parquet")
    command = [sys.executable, "-m", "tests.spark.ask_plain_stream", str(tmp_path / "in"), str(tmp_path / "checkpoint")]
    environment = {**os.environ, "JAVA_HOME": str(find_java().home), "PYSPARK_PYTHON": sys.executable, "TZ": "UTC"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    expected = ec.match(events, ask_plain_stream.QUERY, **SETTINGS)
    assert json.loads(done.stdout) == sorted(map(str, expected.to_pylist()))
    assert expected.num_rows > 20


class TestSettings:
    PAIR = "PATTERN SEQ(A a, B b) WITHIN 1 minute"

    @pytest.mark.parametrize(
        ("query", "settings", "code"),
        [
            ("PATTERN SEQ(A a, B b)", {}, "EC490"),
            (f"{PAIR} LIMIT 3", {}, "EC491"),
            (PAIR, {"limit": 3}, "EC491"),
            (f"{PAIR} AGG COUNT(*) HAVING COUNT(*) > 1", {}, "EC492"),
            (PAIR, {"until": 5}, "EC604"),
        ],
    )
    def test_queries_that_a_stream_cannot_answer(
        self, query: str, settings: dict[str, Any], code: str, spark: SparkSession
    ) -> None:
        stream = spark.readStream.format("rate").load().withColumn("kind", F.lit("A"))
        with pytest.raises(OptionError, match=code):
            ec.match(stream, query, time="timestamp", type="kind", **settings)

    @pytest.mark.parametrize(
        ("query", "code"),
        [
            (f"{PAIR} AGG COUNT(*)", "EC485"),
            (f"{PAIR} RETURN a.kind AS match_id", "EC486"),
        ],
    )
    def test_queries_whose_matches_have_no_ids(self, query: str, code: str, spark: SparkSession) -> None:
        stream = spark.readStream.format("rate").load().withColumn("kind", F.lit("A"))
        with pytest.raises(OptionError, match=code):
            ec.match(stream, query, time="timestamp", type="kind", match_id=True)

    def test_a_flat_column_called_match_id_is_in_the_way(self, spark: SparkSession) -> None:
        stream = spark.readStream.format("rate").load().selectExpr("timestamp", "value AS id", "'A' AS kind")
        query = "PATTERN SEQ(A match, B b) WITHIN 1 minute"
        with pytest.raises(OptionError, match="EC433"):
            ec.match(stream, query, time="timestamp", type="kind", match_id=True, flat=True)

    def test_the_state_store_is_set_unless_the_user_has_set_it(self, spark: SparkSession) -> None:
        stream = spark.readStream.format("rate").load().withColumn("kind", F.lit("A"))
        spark.conf.unset(PROVIDER)
        ec.match(stream, self.PAIR, time="timestamp", type="kind")
        assert spark.conf.get(PROVIDER) == ROCKSDB
        spark.conf.set(PROVIDER, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
        with pytest.raises(OptionError, match=PROVIDER):
            ec.match(stream, self.PAIR, time="timestamp", type="kind")
        spark.conf.unset(PROVIDER)

    def test_buckets_are_spread_evenly(self, spark: SparkSession) -> None:
        numbers = spark.range(-5, 50).select(F.col("id").cast("int"), F.hash(F.col("id").cast("int"))).collect()
        assert [spark_hash(number) for number, _ in numbers] == [hashed for _, hashed in numbers]
        for count in (1, 2, 4, 7, 16):
            for place in (0, 3):
                names = group_names(count, place)
                assert [spark_hash(name) % count for name in names] == list(range(count))
                assert place * 1_000_000 in names
                assert {place_of(name) for name in names} == {place}


def streamed_cases(count: int) -> Iterator[tuple[int, Case]]:
    """Cases with matches that a later watermark decides."""
    for seed in range(10_000):
        case = random_case(seed)
        case = case._replace(events=[replace(e, zones={"ts": None, "t": "UTC"}) for e in case.events])
        window = case.query.within
        if case.query.limit is not None or window is None or "!" in case.query.text[-20:]:
            continue
        if len(oracle_matches(*case)) > 2 and min(e.ts for e in case.events) >= 0:
            yield seed, case
            count -= 1
            if not count:
                return


@pytest.mark.filterwarnings("ignore::eventcube.errors.EventCubeWarning")
@pytest.mark.parametrize(("seed", "case"), list(streamed_cases(4)))
def test_random_streams(seed: int, case: Case, folder: Folder, sink: Sink) -> None:
    table = to_arrow(case.events)
    times = table.column("ts").cast(pa.int64()).to_pylist()
    lateness = max(max(times[: i + 1]) - time for i, time in enumerate(times))
    last = table.slice(0, 1).set_column(
        table.schema.get_field_index("ts"), "ts", pa.array([10**12], table.schema.field("ts").type)
    )
    place = Random(seed).randrange(table.num_rows)
    folder.write(table.slice(0, place), table.slice(place), last)
    settings = {**read_settings(case.options), "lateness": timedelta(microseconds=lateness)}
    found = sink.run(ec.match(folder.stream, case.query, **settings))
    columns = [found.column(name).cast(pa.int64()).to_pylist() for name in ("start", "end")]
    columns += [pc.struct_field(found.column(v), "id").to_pylist() for v in positive_variables(case.query.pattern)]
    assert Counter(zip(*columns, strict=True)) == Counter(oracle_matches(*case)), f"seed {seed}: {case.query.text}"
