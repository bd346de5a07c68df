"""`match` on DataFrames: the same answers and columns as in process, nothing before they are asked for."""

from __future__ import annotations

import math
import re
from contextlib import nullcontext
from datetime import datetime
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

import eventcube as ec
from tests.spark.frames import list_of, rows_of, to_frame

WITHIN = "WITHIN 20 ms"


@pytest.fixture(scope="module")
def events() -> pa.Table:
    """Some events in no order, with ties, nulls, NaN, a decimal and nested columns."""
    rng = Random(5)
    count = 1500
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "type": [rng.choice(["A", "B", "C", "D", "E"]) for _ in range(count)],
            "ts": pa.array([rng.randrange(0, 4_000_000) // 500 * 500 for _ in range(count)]).cast(
                pa.timestamp("us", "UTC")
            ),
            "o": [rng.randrange(0, 3) for _ in range(count)],
            "k": pa.array([rng.choice([1, 2, 3, 4, 5, None]) for _ in range(count)], pa.int32()),
            "x": [rng.choice([0.0, -0.0, 1.5, 2.5, float("nan"), None]) for _ in range(count)],
            "name": [rng.choice(["a", "b", "c'", None]) for _ in range(count)],
            "price": pa.array([Decimal(rng.randrange(100)) / 4 for _ in range(count)], pa.decimal128(9, 2)),
            "tags": pa.array([["t"] * rng.randrange(3) for _ in range(count)], pa.list_(pa.string())),
            "place": pa.array([{"room": rng.randrange(3), "floor": None} for _ in range(count)]).cast(
                pa.struct({"room": pa.int64(), "floor": pa.string()})
            ),
        }
    )


@pytest.fixture(scope="module")
def frame(spark: SparkSession, events: pa.Table) -> DataFrame:
    return spark.createDataFrame(events).repartition(3).cache()


QUERIES = {
    "sliced": f"PATTERN SEQ(A a, B b) {WITHIN}",
    "keyed": "PATTERN SEQ(A a, !(B b, b.k = a.k), C c, a.k = c.k) WITHIN 300 ms",
    "keyed by floats": "PATTERN SEQ(A a, B b, a.x = b.x) WITHIN 100 ms",
    "keyed by decimals": "PATTERN SEQ(A a, B b, a.price = b.price) WITHIN 100 ms",
    "trailing negation": f"PATTERN SEQ(A a, B b, !C c) {WITHIN}",
    "negation at both ends": f"PATTERN SEQ(!D d, A a, B b, !C c) {WITHIN}",
    "or": f"PATTERN SEQ(A a, OR(B b, SEQ(C c, D d))) WHERE a.x > 1 {WITHIN}",
    "and": f"PATTERN AND(A a, B b, !C c) WHERE a.price > b.price {WITHIN}",
    "count window": "PATTERN SEQ(A a, B b) WITHIN 5 events",
    "one component": "PATTERN A a WHERE a.name = 'c''' WITHIN 1 s",
    "lone event with a key": f"PATTERN SEQ(A a, !(B b, b.k = a.k)) {WITHIN}",
    "computed": f"PATTERN SEQ(A a, B b) WHERE b.x >= 1 {WITHIN} RETURN a.id AS a, b.ts - a.ts AS d, b.ts + 1 ms AS t, "
    "a.price AS p, b.tags AS g, a.x * 2 AS x, a.k + 1 AS k, a.name AS n",
    "count": f"PATTERN SEQ(A a, B b) {WITHIN} AGG COUNT(*)",
    "count none": f"PATTERN SEQ(A a, Z b) {WITHIN} AGG COUNT(*), SUM(a.k) AS s",
    "groups": f"PATTERN SEQ(A a, B b) {WITHIN} GROUPBY a.k, b.name AGG COUNT(*), SUM(a.o), MIN(b.ts), MAX(b.name), "
    "AVG(b.ts - a.ts) AS d, AVG(a.o) AS m, MIN(a.price) AS p, SUM(b.ts - a.ts) AS s",
    "groups by floats": f"PATTERN SEQ(A a, B b) {WITHIN} GROUPBY a.x, a AGG COUNT(b.k)",
    "groups by time": f"PATTERN SEQ(A a, B b) {WITHIN} GROUPBY b.ts EVERY 250 ms AS t, a.k "
    "AGG COUNT(*) HAVING COUNT(*) > 1",
    "groups by time, keyed": "PATTERN SEQ(A a, C c, a.k = c.k) WITHIN 300 ms GROUPBY a.ts EVERY 1 s AS t AGG COUNT(*)",
    "starts of buckets": f"PATTERN SEQ(A a, B b) {WITHIN} RETURN a.id, b.ts EVERY 70 ms AS t",
    "rows of last events": f"PATTERN SEQ(A a, B b) {WITHIN} AGG COUNT(*) AS n, AVG(a.o) AS m PER b HAVING n > 2",
    "rows of first events": f"PATTERN SEQ(A a, B b) {WITHIN} AGG COUNT(DISTINCT b.name) AS n, MAX(b.ts) AS t PER a",
    "rows of last events, keyed": "PATTERN SEQ(A a, C c, a.k = c.k) WITHIN 300 ms AGG COUNT(*), MIN(a.price) PER c",
    "rows of first events, keyed": "PATTERN SEQ(A a, C c, a.k = c.k) WITHIN 300 ms AGG COUNT(*) PER a",
    "rows, negation at both ends": f"PATTERN SEQ(!D d, A a, B b, !C c) {WITHIN} AGG COUNT(*) PER a",
    "rows, count window": "PATTERN SEQ(A a, B b) WITHIN 9 events AGG COUNT(*) AS n PER a",
    "groups none": f"PATTERN SEQ(A a, Z b) {WITHIN} GROUPBY a.k AGG COUNT(*)",
}


@pytest.mark.parametrize("name", QUERIES)
def test_spark_gives_what_the_engine_gives_in_process(name: str, frame: DataFrame, events: pa.Table) -> None:
    # A frame has no order of arrival, by which windows that count events would tell ties apart.
    order_by = ("o", "id") if "count window" in name else None
    with pytest.warns(ec.EventCubeWarning, match="no event has it") if "none" in name else nullcontext():
        expected = ec.match(events, QUERIES[name], type="type", order_by=order_by)
    found = ec.match(frame, QUERIES[name], type="type", order_by=order_by)
    assert found.schema == from_arrow_schema(expected.schema)
    assert rows_of(found) == rows_of(expected)
    assert expected.num_rows > 0 or "none" in name


@pytest.mark.parametrize(
    ("query", "settings"),
    [
        ("PATTERN SEQ(A a, B b, C c) WITHIN 30 ms LIMIT 25", {"order_by": ("o", "id")}),
        ("PATTERN SEQ(A a, B b, !C c) WITHIN 30 ms LIMIT 25", {"order_by": ("o", "id")}),
        ("PATTERN AND(A a, OR(B b, C c)) WITHIN 30 ms LIMIT 40", {"order_by": ("o", "id")}),
        ("PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 90 ms", {"order_by": ("o", "id"), "limit": 30}),
        (
            "PATTERN SEQ(A a, B b) WITHIN 10 events RETURN b.id, a LIMIT 9",
            {"order_by": ("o", "id"), "partition_by": "k"},
        ),
    ],
)
def test_a_limit_keeps_the_earliest_in_their_order(
    query: str, settings: dict[str, Any], frame: DataFrame, events: pa.Table
) -> None:
    expected = ec.match(events, query, type="type", **settings)
    found = ec.match(frame, query, type="type", **settings).toArrow()
    assert list_of(found) == list_of(expected)


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN OR(A a, B b) WITHIN 9 ms LIMIT 1",
        "PATTERN OR(A a, B b) WITHIN 9 ms LIMIT 7",
        "PATTERN SEQ(A a, OR(B b, A e), !C c) WITHIN 9 ms LIMIT 5",
    ],
)
def test_a_limit_before_1970_with_an_order_of_floats(query: str, spark: SparkSession) -> None:
    orders = [-math.inf, None, math.nan, 0.5, -1.5, math.inf, None, -math.inf, None]
    events = pa.table(
        {
            "ts": pa.array([-2000, -2000, -2000, -2000, -1000, -1000, -1000, 0, 8000], pa.timestamp("us", "UTC")),
            "type": list("ABABBAABC"),
            "o": orders,
            "id": range(9),
        }
    )
    settings: dict[str, Any] = {"type": "type", "order_by": ("o", "id")}
    expected = ec.match(events, query, **settings)
    assert list_of(ec.match(to_frame(spark, events), query, **settings).toArrow()) == list_of(expected)


def test_a_limit_with_a_trailing_negation_does_not_make_every_match_in_a_task(spark: SparkSession) -> None:
    half = 3000
    events = pa.table({"ts": pa.array(range(2 * half), pa.timestamp("us")), "type": ["A"] * half + ["B"] * half})
    counts = ec.Counts()
    query = "PATTERN SEQ(A a, B b, !C c) WITHIN 1 hour LIMIT 5"
    found = ec.match(to_frame(spark, events), query, type="type", counters=counts)
    assert found.count() == 5
    assert counts["candidates"] < half * half / 5


def test_names_that_are_kept_for_eventcubes_own_columns_are_refused(frame: DataFrame) -> None:
    for name in ("__eventcube_halo", "__EVENTCUBE_slice"):
        with pytest.raises(ec.InputError, match="EC317"):
            ec.match(frame.withColumn(name, F.lit(1)), QUERIES["and"], type="type")
    with pytest.raises(ec.InputError, match="EC317"):
        ec.match(frame, "PATTERN A a WITHIN 1 s RETURN a.id AS __eventcube_order LIMIT 1", type="type")


@pytest.mark.parametrize(
    "query", ["PATTERN SEQ(A a, B b) WITHIN 30 ms LIMIT 50", "PATTERN SEQ(A a, B b) WITHIN 4 events"]
)
def test_what_twins_give_does_not_depend_on_how_rows_are_spread(query: str, frame: DataFrame) -> None:
    once, again = (ec.match(frame.repartition(n).orderBy(F.rand(n)), query, type="type").toArrow() for n in (1, 4))
    assert rows_of(once) == rows_of(again)
    if "LIMIT" in query:
        assert list_of(once) == list_of(again)


def test_several_queries_share_a_pass_or_not(frame: DataFrame, events: pa.Table) -> None:
    queries = {
        "ab": f"PATTERN SEQ(A a, B b) {WITHIN}",
        "none after": "PATTERN SEQ(A a, B b, !C c) WITHIN 10 ms",
        "keyed": "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 30 ms RETURN b",
        "either": f"PATTERN SEQ(A a, OR(B b, C c)) {WITHIN}",
        "first": f"PATTERN SEQ(A a, B b) {WITHIN} LIMIT 7",
        "count": "PATTERN SEQ(A a, B b) WITHIN 4 events",
    }
    settings: dict[str, Any] = {"type": "type", "order_by": ("o", "id")}
    for chosen in (["ab", "none after", "keyed", "either"], ["ab", "first", "count"]):
        asked = {name: queries[name] for name in chosen}
        expected = ec.match(events, asked, **settings)
        found = ec.match(frame, asked, **settings).cache()
        assert found.schema == from_arrow_schema(expected.schema)
        assert rows_of(found) == rows_of(expected)
        for name in chosen:
            assert rows_of(ec.wide(found, name, asked[name])) == rows_of(ec.wide(expected, name, asked[name]))
        found.unpersist()


def test_partition_by_takes_nulls_for_a_group(frame: DataFrame, events: pa.Table) -> None:
    for query in (f"PATTERN SEQ(A a, B b) {WITHIN}", "PATTERN SEQ(A a, B b) WITHIN 3 events"):
        settings = {"type": "type", "partition_by": "k", "order_by": ["o", "id"]}
        expected = ec.match(events, query, **settings)
        found = ec.match(frame, query, **settings)
        assert rows_of(found) == rows_of(expected)
        assert any(row["a"]["k"] is None for row in expected.to_pylist())


@pytest.mark.parametrize("unit", ["us", "ms", "s"])
def test_times_can_be_whole_numbers(unit: str, spark: SparkSession) -> None:
    times = [-5, -2, -1, 0, 1, 3, 2**62, None, 100]
    table = pa.table({"at": pa.array(times, pa.int64()), "type": ["A", "B"] * 4 + ["A"]})
    window = {"us": "3 us", "ms": "3 ms", "s": "3 s"}[unit]
    settings = {"time": "at", "type": "type", "time_unit": unit}
    expected = ec.match(table, f"PATTERN SEQ(A a, B b) WITHIN {window}", **settings)
    assert rows_of(ec.match(spark.createDataFrame(table), f"PATTERN SEQ(A a, B b) WITHIN {window}", **settings)) == (
        rows_of(expected)
    )


@pytest.mark.parametrize(
    "pattern", ["SEQ(A a, B b)", "SEQ(A a, !C c, B b)", "SEQ(A a, B b, !C c)", "SEQ(!C d, A a, B b, !C c)"]
)
def test_matches_across_borders_of_slices_are_found_once(pattern: str, spark: SparkSession) -> None:
    # Slices of 64 windows: ties and neighbours on their borders, before and after the epoch, and as far as times go.
    last = 2**62 - 1
    borders = [64_000 * n for n in (-3, -1, 0, 1, 2)]
    times = [b + d for b in borders for d in (-1000, -999, -1, -1, 0, 0, 1, 999, 1000)]
    times += [last - 500, last - 1, last, last, last + 1, 2**63 - 1, -last, 500 - last, -last - 1, -(2**63)]
    rng = Random(7)
    table = pa.table(
        {
            "at": pa.array(times * 3, pa.int64()),
            "type": [rng.choice(["A", "B", "C"]) for _ in range(3 * len(times))],
            "k": [rng.choice([1, 2, None]) for _ in range(3 * len(times))],
        }
    )
    frame = spark.createDataFrame(table).repartition(3)
    query = f"PATTERN {pattern} WITHIN 1 ms RETURN a.at AS a, b.at AS b"
    for settings in ({}, {"partition_by": "k"}):
        expected = ec.match(table, query, time="at", type="type", **settings)
        assert expected.num_rows > 0
        assert rows_of(ec.match(frame, query, time="at", type="type", **settings)) == rows_of(expected)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_times_can_be_text_dates_or_without_zone(zone: str, spark: SparkSession) -> None:
    # 02:30 does not exist in New York that day.
    text = [
        "2024-03-10 01:59:59.999999",
        "2024-03-10T02:30:00",
        "2024-03-10 03:00:00.000001",
        "soon",
        None,
        "2024-03-11",
    ]
    table = pa.table({"at": text, "type": ["A", "B", "B", "A", "A", "B"]})
    query = "PATTERN SEQ(A a, B b) WITHIN 1 hour RETURN b.at AS b"
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        as_text = spark.createDataFrame(table)
        as_ntz = as_text.select(
            F.try_to_timestamp("at").alias("x"), "type", F.expr("try_cast(at AS timestamp_ntz) AS at")
        )
        expected = ec.match(table, query, time="at", type="type")
        assert [r["b"] for r in expected.to_pylist()] == ["2024-03-10T02:30:00"]
        found = ec.match(as_text, query, time="at", type="type")
        assert found.schema == from_arrow_schema(expected.schema)
        assert rows_of(found) == rows_of(expected)
        assert [r["b"] for r in ec.match(as_ntz, query, time="at", type="type").collect()] == [
            datetime(2024, 3, 10, 2, 30)
        ]
        days = as_text.select(F.expr("try_cast(at AS date) AS at"), "type")
        assert ec.match(days, "PATTERN SEQ(A a, B b) WITHIN 1 day", time="at", type="type").count() == 1
        aside = ec.set_aside(as_text, time="at", type="type")
        assert rows_of(aside) == rows_of(ec.set_aside(table, time="at", type="type"))
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_rows_that_cannot_be_used_are_set_aside_with_the_reason(spark: SparkSession) -> None:
    table = pa.table(
        {
            "ts": pa.array([1, None, 2**62, 3, None], pa.int64()),
            "type": ["A", "A", "A", None, None],
            "x": [1, 2, 3, 4, 5],
        }
    )
    expected = ec.set_aside(table, type="type")
    found = ec.set_aside(spark.createDataFrame(table), type="type")
    assert found.schema == from_arrow_schema(expected.schema)
    assert rows_of(found) == rows_of(expected)
    assert expected.num_rows == 4


@pytest.mark.parametrize("name", ["sliced", "groups"])
def test_large_arrow_types_make_no_difference(
    name: str, spark: SparkSession, frame: DataFrame, events: pa.Table
) -> None:
    setting = "spark.sql.execution.arrow.useLargeVarTypes"
    spark.conf.set(setting, "true")
    try:
        found = rows_of(ec.match(frame, QUERIES[name], type="type"))
    finally:
        spark.conf.unset(setting)
    assert found == rows_of(ec.match(events, QUERIES[name], type="type"))


def test_no_events_no_matches(spark: SparkSession, frame: DataFrame) -> None:
    nothing = spark.createDataFrame([], frame.schema)
    assert ec.match(nothing, QUERIES["sliced"], type="type").collect() == []
    assert [tuple(r) for r in ec.match(nothing, QUERIES["count"], type="type").collect()] == [(0,)]


def test_names_that_need_quotes_and_types_arrow_lacks(spark: SparkSession) -> None:
    rows = "(1, 'A', 1, INTERVAL 1 MONTH), (2, 'B', 1, INTERVAL 2 MONTH)"
    odd = spark.sql(f"SELECT * FROM VALUES {rows} AS t(`a.ts`, `the type`, `k``k`, m)")
    settings = {"time": "a.ts", "type": "the type"}
    query = "PATTERN SEQ(A a, B b, a.`k``k` = b.`k``k`) WITHIN 5 us"
    assert ec.match(odd.drop("m"), query, **settings).count() == 1
    assert ec.match(odd, query + " RETURN b.`k``k` AS k", **settings).count() == 1
    with pytest.raises(ec.InputError, match="'m' of type interval"):
        ec.match(odd, query, **settings)


@pytest.mark.parametrize(
    ("query", "settings", "message"),
    [
        ("PATTERN SEQ(A a, B b) WHERE a.prce > 1 WITHIN 1 s", {}, "did you mean 'price'"),
        ("PATTERN SEQ(A a, B b) WHERE a.name > 1 WITHIN 1 s", {}, "cannot compare text with"),
        ("PATTERN SEQ(A a, B b) WITHIN 1 s", {"time": "when"}, "no column 'when' for time"),
        ("PATTERN SEQ(A a B b) WITHIN 1 s", {}, "EC1"),
        ("PATTERN SEQ(A a, B b) WITHIN 1 s", {"partition_by": "tags"}, "cannot be sorted by"),
        ("PATTERN SEQ(A a, B b) WITHIN 1 s", {"strategy": "guess"}, "guess"),
    ],
)
def test_mistakes_are_said_at_once(query: str, settings: dict[str, Any], message: str, frame: DataFrame) -> None:
    with pytest.raises(ec.EventCubeError) as raised:
        ec.match(frame, query, **{"type": "type", **settings})
    assert re.search(message, str(raised.value))


def test_columns_that_spark_takes_for_the_same_are_refused_if_they_are_needed(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, "A", 1, 2)], "ts long, type string, x int, X int")
    assert ec.match(frame, "PATTERN SEQ(A a) WITHIN 1 s RETURN a.ts AS t", type="type").count() == 1
    with pytest.raises(ec.InputError, match="Spark takes the columns 'x' and 'X' for the same"):
        ec.match(frame, "PATTERN SEQ(A a) WITHIN 1 s RETURN a.x AS x", type="type")


def test_matches_of_a_stream_cannot_be_counted(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(ec.OptionError, match="EC409"):
        ec.Cube({"q": "PATTERN SEQ(A a, B b) WITHIN 1 s"}, time="timestamp").counts(stream)


@pytest.mark.filterwarnings("ignore")
def test_a_frame_of_pandas_on_spark_is_refused_before_it_is_read(spark: SparkSession, frame: DataFrame) -> None:
    unreadable = frame.select("ts", "type").where(F.raise_error(F.lit("it was read")).cast("boolean")).pandas_api()
    with pytest.raises(ec.InputError, match=r"give frame\.to_spark\(\)") as caught:
        ec.match(unreadable, "PATTERN SEQ(A a, B b) WITHIN 1 s", type="type")
    assert caught.value.code == "EC307"


@pytest.mark.parametrize("strategy", ["iterative", "balanced", {"b": "passive"}])
def test_counters_come_back_from_the_tasks(spark: SparkSession, events: pa.Table, strategy: Any) -> None:
    query = f"PATTERN SEQ(A a, SEQ(B b, C c), D d) {WITHIN}"
    counts = ec.Counts()
    frame = spark.createDataFrame(events.select(["ts", "type"]).to_pandas())
    found = ec.match(frame, query, type="type", strategy=strategy, counters=counts)
    assert counts["matches"] == 0
    matches = found.count()
    assert counts["matches"] == matches > 0
    assert counts["inner_computed"] + counts["inner_reused"] - counts["inner_unused"] == matches
