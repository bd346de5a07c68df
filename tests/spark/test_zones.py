"""Times without a zone mean the same here as in Spark SQL, and the same on every kind of frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import eventcube as ec

SETTING = "spark.sql.session.timeZone"
SESSIONS = ("UTC", "America/New_York", "Europe/Berlin")
# Clocks go forward and back in New York, then forward and back in Berlin.
CHANGES = [
    datetime(2024, 3, 10, 7),
    datetime(2024, 11, 3, 6),
    datetime(2024, 3, 31, 1),
    datetime(2024, 10, 27, 1),
]
LITERALS, EACH = 300, 8


@contextmanager
def session_zone(spark: SparkSession, zone: str) -> Iterator[None]:
    before = spark.conf.get(SETTING)
    spark.conf.set(SETTING, zone)
    try:
        yield
    finally:
        spark.conf.set(SETTING, before or "UTC")


def some_literal(rng: Random) -> tuple[str, datetime]:
    """A moment as both languages write it, and about when it is; clocks skip many of them, or show them twice."""
    moment = rng.choice(CHANGES) + timedelta(minutes=rng.randint(-540, 540))
    if rng.random() < 0.1:
        moment = datetime(1950, 1, 1) + timedelta(minutes=rng.randrange(90 * 365 * 24 * 60))
    zone = rng.choice(["", "", "", "", "Z", "+02:00", "-05:30"])
    form = rng.choice(["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.000001", "%Y-%m-%dT%H:%M:%S"])
    return moment.strftime("%Y-%m-%d" if rng.random() < 0.02 else form + zone), moment


def some_events(rng: Random, moments: list[datetime]) -> pa.Table:
    """Events around each of the moments, and at it in whole hours from UTC; `n` and `d` say the same without a zone."""
    hours = [rng.choice([-5, -4, 0, 1, 2]) for _ in moments for _ in range(EACH)]
    places = [i for i in range(len(moments)) for _ in range(EACH)]
    times = [
        moments[i] - timedelta(hours=h) + timedelta(minutes=rng.choice([0, 0, 0, rng.randint(-90, 90)]))
        for i, h in zip(places, hours, strict=True)
    ]
    micros = pa.array(times, pa.timestamp("us"))
    return pa.table(
        {
            "id": pa.array(range(len(times)), pa.int64()),
            "i": pa.array(places, pa.int64()),
            "ts": micros.cast(pa.timestamp("us", "UTC")),
            "n": micros,
            "d": micros.cast(pa.date32(), safe=False),
        }
    )


@pytest.mark.parametrize("zone", SESSIONS)
def test_random_moments_are_those_of_spark_sql(zone: str, spark: SparkSession) -> None:
    rng = Random(f"moments in {zone}")
    ours, theirs, moments = [], [], []
    for i in range(LITERALS):
        column, op = rng.choice(["ts", "ts", "ts", "n", "d"]), rng.choice(["=", "!=", "<", "<=", ">", ">="])
        text, moment = some_literal(rng)
        if column != "ts":
            # Spark SQL would read a time with a zone in that of the session.
            text = text.removesuffix("Z").removesuffix("+02:00").removesuffix("-05:30")
        kind = "TIMESTAMP_LTZ" if column == "ts" else "TIMESTAMP_NTZ"
        ours.append(f"(a.i = {i} AND a.{column} {op} TIMESTAMP '{text}')")
        theirs.append(f"(i = {i} AND {column} {op} {kind} '{text}')")
        moments.append(moment)
    with session_zone(spark, zone):
        schema = "id long, i long, ts timestamp, n timestamp_ntz, d date"
        frame = spark.createDataFrame(some_events(rng, moments), schema)
        frame.createOrReplaceTempView("moments")
        told = spark.sql(f"SELECT id, i FROM moments WHERE {' OR '.join(theirs)}").collect()
        query = f"PATTERN A a WHERE {' OR '.join(ours)} WITHIN 1 us RETURN a.id AS id, a.i AS i"
        found = ec.match(frame, query).select("id", "i").collect()
    wrong = {ours[row["i"]] for row in set(found) ^ set(told)}
    assert not wrong, f"in {zone}"
    assert len(told) > LITERALS


KINDS: dict[str, Callable[[pa.Table], Any]] = {
    "Arrow": lambda table: table,
    "Arrow, in seconds": lambda table: table.set_column(
        1, "ts", table["ts"].cast(pa.timestamp("s", table["ts"].type.tz))
    ),
    "pandas, us": lambda table: table.to_pandas(),
    "pandas, ns": lambda table: table.to_pandas().assign(ts=lambda frame: frame["ts"].dt.as_unit("ns")),
    "polars": pl.from_arrow,
}
QUERY = """
PATTERN SEQ(A a, !(C c, c.ts > TIMESTAMP '2024-03-31 03:10:00'), B b)
WHERE a.ts >= TIMESTAMP '2024-03-31 01:30:00' AND b.ts < '2024-03-31 04:00'
  AND b.ts - TIMESTAMP '2024-03-31 02:30:00' BETWEEN -1 hour AND 20 minutes
  AND a.ts NOT IN ('2024-03-31 01:40', '2024-03-31T00:45:00Z')
WITHIN 2 hours
RETURN a.id AS a, b.id AS b, b.ts - TIMESTAMP '2024-03-31 02:30:00' AS since
"""


def as_rows(found: Any) -> list[tuple[Any, ...]]:
    """The rows, times as instants, or as they stand if they have no zone."""
    table = (
        found if isinstance(found, pa.Table) else pa.Table.from_pandas(found) if _is_pandas(found) else found.to_arrow()
    )
    times = [table[name].cast(pa.timestamp("us", table[name].type.tz)).cast(pa.int64()) for name in ("start", "end")]
    since = table["since"].cast(pa.duration("us")).cast(pa.int64())
    return sorted(zip(*(c.to_pylist() for c in (*times, table["a"], table["b"], since)), strict=True))


def _is_pandas(frame: Any) -> bool:
    return isinstance(frame, pd.DataFrame)


@pytest.mark.filterwarnings("ignore:.*EC5(21|01):eventcube.errors.EventCubeWarning")
@pytest.mark.parametrize("zone", [*SESSIONS, None])
def test_every_kind_of_frame_gives_the_same_rows(zone: str | None, spark: SparkSession) -> None:
    start = datetime(2024, 3, 30, 23, 0)
    if zone is not None:
        # So that clocks of the zone show the hours that the query speaks of.
        offset = {"UTC": 0, "America/New_York": 4, "Europe/Berlin": -1}[zone]
        start += timedelta(hours=offset)
    table = pa.table(
        {
            "id": pa.array(range(300), pa.int64()),
            "ts": pa.array([start + timedelta(minutes=i) for i in range(300)], pa.timestamp("us")),
            "type": [("A", "B", "A", "B", "B", "A", "C")[i * i % 7] for i in range(300)],
        }
    )
    if zone is not None:
        table = table.set_column(1, "ts", table["ts"].cast(pa.timestamp("us", zone)))
    rows = {name: as_rows(ec.match(make(table), QUERY, type="type")) for name, make in KINDS.items()}
    with session_zone(spark, zone or "America/New_York"):
        frame = spark.createDataFrame(table, f"id long, ts {'timestamp' if zone else 'timestamp_ntz'}, type string")
        rows["Spark"] = as_rows(ec.match(frame, QUERY, type="type").toArrow())
    assert len(rows["Arrow"]) > 100
    assert {name: found == rows["Arrow"] for name, found in rows.items()} == dict.fromkeys(rows, True)


def test_a_moment_keeps_the_zone_of_the_session_it_was_asked_in(spark: SparkSession) -> None:
    table = pa.table(
        {"ts": pa.array([datetime(2014, 1, 1, h, tzinfo=UTC) for h in range(9)], pa.timestamp("us", "UTC"))}
    )
    with session_zone(spark, "America/New_York"):
        matches = ec.match(spark.createDataFrame(table), "PATTERN A a WHERE a.ts >= '2013-12-31 23:00' WITHIN 1 us")
    assert matches.count() == 5
