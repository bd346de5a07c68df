"""The words that SQL has, on Spark: the same answers as in process, and the clocks and digits of Spark SQL."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import eventcube as ec
from eventcube.errors import BindError
from eventcube.options import options
from eventcube.plan.planned import plan_query
from eventcube.spark.passes import Keyed, Sliced, passes
from tests.oracle.quals import MOMENTS
from tests.spark.frames import list_of, rows_of

CONCEPTS = {"Letter": ["A", "B"], "Sign": {"Letter": [], "Digit": ["C", "D"]}}


@pytest.fixture(scope="module")
def events() -> pa.Table:
    rng = Random(7)
    count = 1200
    names = ["Anna", "anna", "BEN", "it's", "50%", "ß", "", None]
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "type": [rng.choice(["A", "B", "C", "D", "E", "E", None]) for _ in range(count)],
            "ts": pa.array(sorted(rng.randrange(0, 3_000_000) // 500 * 500 for _ in range(count))).cast(
                pa.timestamp("us", "UTC")
            ),
            "k": pa.array([rng.choice([1, 2, 3, 4, None]) for _ in range(count)], pa.int32()),
            "g": [rng.choice(["north", "south", None]) for _ in range(count)],
            "x": [rng.choice([0.0, -0.0, 1.5, -2.5, float("nan"), None]) for _ in range(count)],
            "name": [rng.choice(names) for _ in range(count)],
            "at": pa.array([rng.choice(MOMENTS) for _ in range(count)]).cast(pa.timestamp("us", "UTC")),
        }
    )


@pytest.fixture(scope="module")
def frame(spark: SparkSession, events: pa.Table) -> DataFrame:
    return spark.createDataFrame(events).repartition(3).cache()


QUERIES = {
    "any": "PATTERN SEQ(ANY a, B b) WITHIN 4 ms",
    "any, counted": "PATTERN SEQ(A a, !ANY x, B b) PARTITION BY k WITHIN 3 events",
    "any by type": "PATTERN SEQ(ANY a, * b) WITHIN 3 ms GROUPBY a, b AGG COUNT(*) AS n",
    "having": "PATTERN SEQ(A a, B b) WITHIN 20 ms GROUPBY a.g AS g AGG COUNT(*) AS n HAVING n > 3 AND g != 'north'",
    "having hidden": "PATTERN SEQ(A a, B b) WITHIN 9 ms GROUPBY a.k AGG MIN(b.x) HAVING MAX(b.x) > 0 AND COUNT(*) > 5",
    "having nothing": "PATTERN SEQ(A a, B b) WITHIN 9 ms AGG COUNT(*) AS n HAVING n < 0",
    "having all": "PATTERN SEQ(A a, `no such` b) WITHIN 9 ms AGG COUNT(*) AS n, MAX(a.x) AS x HAVING n = 0, x IS NULL",
    "distinct": "PATTERN SEQ(A a, B b) WITHIN 20 ms GROUPBY a.g AGG COUNT(DISTINCT b.x), COUNT(DISTINCT b.k), SUM(b.k)",
    "distinct in all": "PATTERN SEQ(A a, B b) WITHIN 20 ms AGG COUNT(DISTINCT b.at), COUNT(DISTINCT b.name) "
    "HAVING COUNT(DISTINCT b.k) > 2",
    "distinct of none": "PATTERN SEQ(A a, `no such` b) WITHIN 20 ms AGG COUNT(DISTINCT b.ts), COUNT(DISTINCT b.name)",
    "distinct lengths": "PATTERN SEQ(A a, B b) WITHIN 20 ms GROUPBY b.k AGG COUNT(DISTINCT b.ts - a.ts) AS n, AVG(b.x)",
    "level": "PATTERN SEQ(Sign a, E b) WITHIN 5 ms "
    "GROUPBY a AT LEVEL 1, a AT LEVEL 2 AS second, b AT LEVEL 2 AGG COUNT(*)",
    "level returned": "PATTERN SEQ(Sign a, E b) WITHIN 5 ms RETURN a AT LEVEL 2 AS sort, b.id",
    "functions": "PATTERN SEQ(A a, OR(B b, C c)) WHERE LOWER(a.name) = 'anna' AND ABS(b.x) > 1 WITHIN 20 ms "
    "RETURN UPPER(a.name) AS upper, LENGTH(a.name) AS length, COALESCE(b.name, c.name, '-') AS name, ROUND(b.x) AS x",
    "grouped by functions": "PATTERN SEQ(A a, B b) WITHIN 20 ms GROUPBY LOWER(a.name) AS name, ROUND(b.x) AGG COUNT(*)",
    "keyed by functions": "PATTERN SEQ(A a, !(C c, LOWER(c.name) = LOWER(a.name), c.k = a.k), B b, "
    "LOWER(a.name) = LOWER(b.name), a.k = b.k) WITHIN 90 ms",
    "like": "PATTERN SEQ(A a, B b) WHERE a.name LIKE '%n%' AND b.name NOT LIKE '__#%' ESCAPE '#' WITHIN 20 ms",
    "like of a function": "PATTERN SEQ(A a, B b) WHERE LOWER(a.name) LIKE 'an_a' WITHIN 20 ms",
}


@pytest.mark.filterwarnings("ignore:.*EC50[12]:eventcube.errors.EventCubeWarning")
@pytest.mark.parametrize("name", QUERIES)
def test_spark_answers_as_in_process(name: str, frame: DataFrame, events: pa.Table) -> None:
    found = ec.match(frame, QUERIES[name], type="type", concepts=CONCEPTS)
    expected = ec.match(events, QUERIES[name], type="type", concepts=CONCEPTS)
    assert rows_of(found) == rows_of(expected)
    assert [f.name for f in found.schema] == expected.schema.names
    assert expected.num_rows or "nothing" in name


PARTITIONED = {
    "by k": "PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 3 events",
    "by k and g": "PATTERN SEQ(A a, B b) PARTITION BY k, g WITHIN 3 events",
    "by g": "PATTERN SEQ(A a, B b, !C c) PARTITION BY g WITHIN 10 ms",
    "by the option": "PATTERN SEQ(A a, B b) WITHIN 2 events",
}


@pytest.mark.filterwarnings("ignore:.*EC502:eventcube.errors.EventCubeWarning")
def test_queries_of_one_run_have_keys_of_their_own(frame: DataFrame, events: pa.Table) -> None:
    found = rows_of(ec.match(frame, PARTITIONED, type="type"))
    assert found == rows_of(ec.match(events, PARTITIONED, type="type"))
    for name, text in PARTITIONED.items():
        alone = ec.match(events, text, type="type")
        assert sum(n for row, n in found.items() if dict(row)["query"] == name) == alone.num_rows > 0


def test_partition_by_in_the_text_is_the_option(frame: DataFrame) -> None:
    said = ec.match(frame, PARTITIONED["by g"], type="type")
    given = ec.match(frame, PARTITIONED["by g"].replace("PARTITION BY g", ""), type="type", partition_by="g")
    assert rows_of(said) == rows_of(given)
    assert rows_of(ec.match(frame, PARTITIONED["by g"], type="type", partition_by=["g"])) == rows_of(given)
    with pytest.raises(BindError, match="the query says PARTITION BY g, and the option partition_by says k"):
        ec.match(frame, PARTITIONED["by g"], type="type", partition_by="k")


def test_queries_with_a_column_in_common_share_a_pass(events: pa.Table) -> None:
    chosen = options(type="type")
    schema = chosen.schema(events.schema)
    plans = {name: plan_query(ec.parse(text), schema, chosen) for name, text in PARTITIONED.items()}
    found = {tuple(p.plans): p.distribution for p in passes(plans)}
    assert found[("by k", "by k and g")] == Keyed(("k",))
    assert len(found) == 3
    in_time = {n: ec.parse(text.replace("3 events", "3 ms")) for n, text in PARTITIONED.items()}
    timed = {n: plan_query(query, schema, chosen) for n, query in in_time.items()}
    assert [type(p.distribution) for p in passes({n: timed[n] for n in ("by k", "by g")})] == [Sliced]


@pytest.fixture(params=["UTC", "America/New_York"])
def zone(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before or "UTC")


PARTS = {"YEAR": "year", "MONTH": "month", "DAY": "day", "HOUR": "hour", "MINUTE": "minute"}


def test_clocks_are_those_of_spark(zone: str, frame: DataFrame) -> None:
    shown = ", ".join(f"{part}(a.at) AS {part}" for part in PARTS)
    found = ec.match(
        frame, f"PATTERN A a RETURN a.id AS id, {shown}, WEEKDAY(a.at) AS WEEKDAY, DATE(a.at) AS DATE", type="type"
    )
    own = [F.expr(f"{sql}(at)").cast("bigint").alias(part) for part, sql in PARTS.items()]
    weekday = (F.weekday("at") + 1).cast("bigint").alias("WEEKDAY")
    expected = frame.where("type = 'A'").select("id", *own, weekday, F.date_trunc("day", "at").alias("DATE"))
    assert rows_of(found.drop("start", "end")) == rows_of(expected)


def test_a_clock_in_a_condition_is_that_of_spark(zone: str, frame: DataFrame) -> None:
    found = ec.match(frame, "PATTERN A a WHERE HOUR(a.at) = 1 RETURN a.id AS id", type="type").select("id")
    expected = frame.where("type = 'A' AND hour(at) = 1").select("id")
    assert rows_of(found) == rows_of(expected)
    assert (found.count() > 0) is (zone != "UTC")


def test_numbers_are_rounded_as_by_spark(spark: SparkSession) -> None:
    rng = Random(3)
    floats: list[Any] = [
        0.5,
        1.5,
        2.5,
        -0.5,
        2.675,
        1.005,
        1e300,
        5e-324,
        0.285,
        -2.345,
        1e15 + 0.5,
        float("inf"),
        None,
    ]
    floats += [rng.uniform(-1000, 1000) for _ in range(300)]
    floats += [round(rng.uniform(-1000, 1000), 3) + 0.0005 for _ in range(300)]
    whole = [15, -15, 25, 4, 5, -5, 10**17 + 5, None]
    table = pa.table(
        {
            "ts": range(len(floats)),
            "y": floats,
            "x": pa.array([whole[i % len(whole)] for i in range(len(floats))], pa.int64()),
        }
    )
    digits = (0, 1, 2, 3, 10, -1, -2)
    shown = ", ".join(f"ROUND(a.{n}, {d}) AS `{n}{d}`" for n in "xy" for d in digits)
    found = ec.match(table, f"PATTERN A a RETURN a.ts AS ts, {shown}").drop_columns(["start", "end"])
    own = [F.expr(f"round({n}, {d})").alias(f"{n}{d}") for n in "xy" for d in digits]
    expected = spark.createDataFrame(table).select("ts", *own).orderBy("ts").toArrow()
    assert list_of(found.sort_by("ts")) == list_of(expected)


def test_text_is_changed_and_compared_as_by_spark(spark: SparkSession) -> None:
    texts = ["Straße", "ÀÉ", "ΑΣ", "ΑΣ Β", "ǆ", "İ", "ﬁ", "a\nb", "😀x", "50%", "a_b", "", None]
    table = pa.table({"ts": range(len(texts)), "s": texts})
    patterns = ["%", "_", "__", "a%b", "a_b", "a\\_b", "50\\%", "%ß%", "", "_x"]
    frame = spark.createDataFrame(table)
    shown = "LOWER(a.s) AS lower, UPPER(a.s) AS upper, LENGTH(a.s) AS length"
    found = ec.match(table, f"PATTERN A a RETURN a.ts AS ts, {shown}").drop_columns(["start", "end"])
    own = [F.lower("s").alias("lower"), F.upper("s").alias("upper"), F.length("s").cast("bigint").alias("length")]
    assert list_of(found) == list_of(frame.select("ts", *own).orderBy("ts").toArrow())
    likes = [F.col("s").like(pattern).alias(pattern) for pattern in patterns]
    by_spark = frame.select("ts", *likes).orderBy("ts").toArrow()
    for pattern in patterns:
        for not_ in ("", "NOT "):
            fits = ec.match(table, f"PATTERN A a WHERE a.s {not_}LIKE '{pattern}' RETURN a.ts AS ts").column("ts")
            wanted = [ts for ts, like in enumerate(by_spark.column(pattern).to_pylist()) if like is (not not_)]
            assert fits.to_pylist() == wanted, (pattern, not_)


def test_like_reaches_the_scan_where_it_can(frame: DataFrame) -> None:
    def plan(condition: str) -> str:
        found = ec.match(frame, f"PATTERN SEQ(A a, A b) WHERE {condition} WITHIN 1 ms", type="type")
        return str(found._jdf.queryExecution().optimizedPlan().toString())

    assert "StartsWith(name" in plan("a.name LIKE 'an%' AND b.name LIKE 'an%'")
    assert "LIKE" in plan("a.name NOT LIKE 'a_b' AND b.name LIKE 'a_'")
    assert "StartsWith" not in plan("LOWER(a.name) LIKE 'an%' AND b.name LIKE 'an%'")


def test_a_day_is_compared_with_a_day(zone: str, frame: DataFrame) -> None:
    found = ec.match(
        frame,
        "PATTERN SEQ(A a, B b) WHERE DATE(a.at) = DATE(b.at) WITHIN 50 ms RETURN a.id AS a, b.id AS b",
        type="type",
    )
    one, other = frame.where("type = 'A'").alias("a"), frame.where("type = 'B'").alias("b")
    near = (F.col("a.ts") < F.col("b.ts")) & (F.col("b.ts") <= F.col("a.ts") + F.expr("INTERVAL 50 MILLISECONDS"))
    days = F.to_date("a.at") == F.to_date("b.at")
    expected = one.join(other, near & days).select(F.col("a.id").alias("a"), F.col("b.id").alias("b"))
    assert rows_of(found.select("a", "b")) == rows_of(expected)


def test_a_day_begins_when_clocks_show_its_first_moment(spark: SparkSession) -> None:
    # In Beirut, clocks went from midnight to one on 26 March 2023.
    moment = datetime.fromisoformat("2023-03-26T12:00:00+03:00")
    table = pa.table({"ts": pa.array([moment], pa.timestamp("us", "Asia/Beirut"))})
    found = ec.match(table, "PATTERN A a RETURN DATE(a.ts) AS day").column("day")[0].as_py()
    assert found == datetime.fromisoformat("2023-03-26T01:00:00+03:00")
