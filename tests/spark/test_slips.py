"""Slips on Spark: told at once where the query or the plan shows them, counted where only the rows do."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import eventcube as ec
from eventcube.errors import EventCubeWarning
from eventcube.spark.source import source_names

QUERY = "PATTERN SEQ(A a, B b) WITHIN 10 ms"
# Of the 200 rows, 20 have no time, and 26 of the others no type.
SKIPPED = 46

# A part of the events has no type or no time, which Counts tells when it is read.
pytestmark = pytest.mark.filterwarnings("ignore:.*EC502:eventcube.errors.EventCubeWarning")


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    rows = [(i * 1000 if i % 10 else None, "AB"[i % 2] if i % 7 else None, i) for i in range(200)]
    return spark.createDataFrame(rows, "ts bigint, kind string, x int")


def test_conditions_are_told_before_anything_runs(events: DataFrame) -> None:
    with pytest.warns(EventCubeWarning, match="`a.ts > b.ts` never holds") as caught:
        ec.match(events, "PATTERN SEQ(A a, B b) WHERE a.ts > b.ts WITHIN 10 ms", type="kind")
    assert [w.filename for w in caught] == [__file__]


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(QUERY, id="sliced"),
        pytest.param("PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 10 ms", id="keyed"),
        pytest.param("PATTERN SEQ(A a, B b) WITHIN 5 events", id="a window of events"),
        pytest.param("PATTERN SEQ(A a, B b) WITHIN 10 ms LIMIT 3", id="limited"),
        pytest.param("PATTERN SEQ(A a, B b) WITHIN 10 ms AGG COUNT(*)", id="counted"),
    ],
)
@pytest.mark.parametrize("text", [False, True], ids=["numbers", "text"])
def test_skipped_rows_are_counted(events: DataFrame, query: str, text: bool) -> None:
    skipped = SKIPPED
    if text:
        # Of those with a time and a type, x < 50 are unreadable.
        moment = F.concat(F.lit("2026-01-01 00:00:00."), F.lpad(F.col("x").cast("string"), 6, "0"))
        events = events.withColumn(
            "ts", F.when(F.col("ts").isNotNull(), F.when(F.col("x") < 50, "noon").otherwise(moment))
        )
        skipped += sum(1 for i in range(50) if i % 10 and i % 7)
    counts = ec.Counts()
    found = ec.match(events, query, type="kind", counters=counts)
    assert counts["rows"] == 0, "nothing ran"
    assert counts.missing_types == ()
    found.collect()
    assert (counts["rows"], counts["set_aside"]) == (200, skipped)
    assert sum(counts.set_aside_reasons.values()) == skipped
    assert counts.missing_types == ()


# What the engine reads, and what it does not.
TEXTS = """
2026-03-01|2026-02-29|2024-02-29|1900-02-29|2000-02-29|2026-13-01|2026-00-10|2026-04-31|26-03-01|2026-3-1
20260301|01.03.2026|2026-03-01 09|2026-03-01 09:00|2026-03-01T09:00:59|2026-03-01 24:00:00|2026-03-01 09:60
2026-03-01 09:00:60|2026-03-01  09:00|2026-03-01 09:00:00.1|2026-03-01 09:00:00.123456
2026-03-01 09:00:00.1234567|2026-03-01 09:00:00.|2026-03-01 09:00:00,5|2026-03-01 09:00Z
2026-03-01T09:00:00+02:00|2026-03-01 09:00:00-0530|2026-03-01 09:00:00+02|2026-03-01 09:00:00+24:00
2026-03-01Z|2026-03-01 09:00:00 Z|2026-03-01 09:00:00z|2026-03-01 09:00:00 Europe/Berlin|now|noon|0000-01-01
9999-12-31 23:59:59|-2026-03-01|٢٠٢٦-٠٣-٠١|2026-03-01x|x2026-03-01|1767258000
"""


def test_text_that_is_no_time_is_counted_whatever_its_type_is(spark: SparkSession) -> None:
    texts = [text for line in TEXTS.strip().splitlines() for text in line.split("|")]
    blanks = ["", " ", "\t", "\n", "\r\n", "\u00a0", "\u2003", "\u2028", "\x1c", "\x85", "\u200b", "_"]
    rows = [(left + text + right, "XAB"[i % 3]) for i, text in enumerate(texts) for left in blanks for right in blanks]
    events = spark.createDataFrame(rows, "ts string, kind string")
    here, there = ec.Counts(), ec.Counts()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ec.match(events.toArrow(), QUERY, type="kind", counters=here)
    ec.match(events, QUERY, type="kind", counters=there).count()
    assert there["rows"] == len(rows)
    assert there.set_aside_reasons == here.set_aside_reasons
    assert 0.2 < there["set_aside"] / len(rows) < 0.9


def test_rows_that_are_all_skipped_are_told_when_the_counts_are_read(events: DataFrame) -> None:
    counts = ec.Counts()
    german = events.withColumn("ts", F.lit("01.03.2026")).withColumn(
        "kind", F.when(F.col("x") < 50, "A").otherwise("X")
    )
    ec.match(german, QUERY, type="kind", counters=counts).count()
    assert counts.set_aside_reasons == {"the time cannot be read": 200}
    with pytest.warns(EventCubeWarning, match="all 200 rows are skipped; the most common reason is: the time") as told:
        assert counts["set_aside"] == 200
    assert [w.filename for w in told] == [__file__]
    assert "as in '01.03.2026'" in str(told[0].message)
    assert counts["events"] == 0, "it is told once"


@pytest.mark.parametrize("rows", [True, False])
def test_whole_numbers_in_another_unit_are_told_when_the_counts_are_read(events: DataFrame, rows: bool) -> None:
    seconds = events.withColumn("ts", F.lit(1_767_258_000) + F.col("x")).fillna("C", ["kind"])
    counts = ec.Counts(rows=rows)
    found = ec.match(seconds, QUERY, type="kind", counters=counts)
    assert counts.warnings == (), "nothing ran"
    found.count()
    if not rows:
        assert counts["rows"] == 0, "the rows were not looked at"
        return
    (problem,) = counts.warnings
    assert (problem.code, problem.hint) == ("EC503", "with time_unit='s' they would be in 2026")
    for shown in (repr(counts), str(counts), counts._repr_html_()):
        assert "with time_unit='us' the times in ts are in early 1970" in shown
    with pytest.warns(EventCubeWarning, match="EC503") as told:
        assert counts["rows"] == 200
    assert [w.filename for w in told] == [__file__]
    right = ec.Counts()
    ec.match(seconds, "PATTERN SEQ(A a, B b) WITHIN 10 s", type="kind", time_unit="s", counters=right).count()
    assert (right["rows"], right.warnings) == (200, ())


def test_types_that_were_not_seen_are_told(events: DataFrame) -> None:
    counts = ec.Counts()
    queries = ["PATTERN SEQ(A a, !Bx b, C c) WITHIN 10 ms", "PATTERN SEQ(A a, Sub s) WITHIN 5 events"]
    ec.match(events, queries, type="kind", concepts={"Sub": ["B"]}, counters=counts).collect()
    assert counts.missing_types == ("Bx", "C")


def test_rows_need_not_be_counted(spark: SparkSession, events: DataFrame, tmp_path: Path) -> None:
    events.write.parquet(str(tmp_path / "events"))
    frame = spark.read.parquet(str(tmp_path / "events"))
    found = {}
    for rows in (False, True):
        counts = ec.Counts(rows=rows)
        matches = ec.match(frame, QUERY, type="kind", counters=counts)
        plan = matches._jdf.queryExecution().executedPlan().toString()
        found[rows] = "PushedFilters: [IsNotNull(ts)" in plan, matches.count(), counts["rows"]
    assert found[False][0]
    assert (found[False][1], found[False][2], found[True][2]) == (found[True][1], 0, 200)


def told(frame: Any, source: str) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ec.match(frame, f"{QUERY} FROM {source}", type="kind")
    return [str(w.message) for w in caught]


def test_from_names_a_table_or_view_that_is_read(spark: SparkSession, events: DataFrame) -> None:
    events.createOrReplaceTempView("flights")
    view = spark.table("flights")
    assert source_names(view.where("x > 3").alias("late")) == {"flights", "late"}
    for frame in (view, view.where("x > 3"), view.union(view)):
        assert told(frame, "flights") == told(frame, "Flights") == told(frame, "lake.flights") == []
        (found,) = told(frame, "trips")
        assert "[EC504]: the query is FROM trips, but the input is flights" in found
    assert told(events, "trips") == [], "it has no name"
    spark.catalog.dropTempView("flights")


def test_check_reads_no_rows(spark: SparkSession, events: DataFrame) -> None:
    events.createOrReplaceTempView("flights")
    query = "PATTERN SEQ(A a, Never b) FROM trips WHERE a.x = NULL WITHIN 10 ms"
    found = ec.check(query, spark.table("flights"), type="kind")
    assert [w.code for w in found.warnings] == ["EC510", "EC504"]
    assert "with the columns of the events" in str(found)
    spark.catalog.dropTempView("flights")


def test_a_type_column_that_was_not_named_is_told_before_anything_runs(events: DataFrame) -> None:
    with pytest.warns(EventCubeWarning, match="no type column is named, so every event matches A") as caught:
        ec.match(events, QUERY)
    (told,) = caught
    assert (told.message.code, told.filename) == ("EC505", __file__)  # type: ignore[union-attr]
    assert "as in type='kind'; text columns: kind" in str(told.message)
    found = ec.check(QUERY, events)
    assert [w.code for w in found.warnings] == ["EC505"]
    assert "whole numbers in ts are read as microseconds, time_unit='us'" in str(found)
    ec.match(events, "PATTERN SEQ(A a, B b) WHERE a.kind = 'A' AND b.x > 3 WITHIN 10 ms")


@pytest.mark.filterwarnings("ignore:.*EC502:eventcube.errors.EventCubeWarning")
def test_nanoseconds(events: DataFrame) -> None:
    times = F.lit(1_767_258_000_000_000_999) + F.col("x").cast("bigint") * F.lit(1000)
    frame = events.withColumn("ts", times)
    query = "PATTERN SEQ(A a, B b) WITHIN 2 us RETURN a.x AS a, b.x AS b"
    local = ec.match(frame.toArrow(), query, type="kind", time_unit="ns")
    found = ec.match(frame, query, type="kind", time_unit="ns").toArrow()
    assert local.num_rows == 71
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, local.to_pylist()))
    before = events.withColumn("ts", -F.col("x").cast("bigint") * F.lit(500) - 1)
    local = ec.match(before.toArrow(), query, type="kind", time_unit="ns")
    found = ec.match(before, query, type="kind", time_unit="ns").toArrow()
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, local.to_pylist()))
