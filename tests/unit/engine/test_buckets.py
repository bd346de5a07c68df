"""Buckets of time: where they start and end, also where clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from tests.oracle.zones import bucket_start

import eventcube as ec
from eventcube.engine.columns import Column
from eventcube.engine.functions import bucket_ends, bucket_starts
from eventcube.plan.expressions import Clock

MINUTE = 60_000_000
HOUR, DAY = 60 * MINUTE, 1440 * MINUTE
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(text: str) -> int:
    """Microseconds of a time with a zone, or in UTC."""
    moment = datetime.fromisoformat(text)
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - EPOCH) // timedelta(microseconds=1)


def bounds(text: str, length: int, zone: str | None) -> tuple[str, str]:
    """The start and the end of a time's bucket, in UTC."""
    starts = bucket_starts(Column(np.array([instant(text)])), length, Clock(zone)).values
    return tuple(
        str(EPOCH + int(t[0]) * timedelta(microseconds=1))[:16] for t in (starts, bucket_ends(starts, length, zone))
    )  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("text", "length", "zone", "expected"),
    [
        pytest.param("2024-05-15 12:34", HOUR, None, ("2024-05-15 12:00", "2024-05-15 13:00"), id="an hour"),
        pytest.param("1969-12-31 23:59", 15 * MINUTE, None, ("1969-12-31 23:45", "1970-01-01 00:00"), id="before 1970"),
        pytest.param("2024-05-15 12:34", 7 * DAY, None, ("2024-05-13 00:00", "2024-05-20 00:00"), id="from Monday"),
        pytest.param("2024-05-15 12:34", 6 * HOUR, None, ("2024-05-15 12:00", "2024-05-15 18:00"), id="from midnight"),
        pytest.param(
            "2024-05-15 12:34", HOUR, "Asia/Kolkata", ("2024-05-15 12:30", "2024-05-15 13:30"), id="half hours"
        ),
        pytest.param(
            "2024-05-15 23:30", DAY, "Europe/Berlin", ("2024-05-15 22:00", "2024-05-16 22:00"), id="a day there"
        ),
        pytest.param(
            "2024-03-31 12:00", DAY, "Europe/Berlin", ("2024-03-30 23:00", "2024-03-31 22:00"), id="a short day"
        ),
        pytest.param(
            "2024-10-27 12:00", DAY, "Europe/Berlin", ("2024-10-26 22:00", "2024-10-27 23:00"), id="a long day"
        ),
        pytest.param(
            "2024-10-27 00:30", HOUR, "Europe/Berlin", ("2024-10-27 00:00", "2024-10-27 01:00"), id="first hour"
        ),
        pytest.param(
            "2024-10-27 01:30", HOUR, "Europe/Berlin", ("2024-10-27 01:00", "2024-10-27 02:00"), id="second hour"
        ),
        # From 02:00 to 04:00 there, which clocks show in one hour, or in three.
        pytest.param(
            "2024-03-31 01:30", 2 * HOUR, "Europe/Berlin", ("2024-03-31 01:00", "2024-03-31 02:00"), id="skipped"
        ),
        pytest.param(
            "2024-10-27 01:30", 2 * HOUR, "Europe/Berlin", ("2024-10-27 00:00", "2024-10-27 03:00"), id="twice"
        ),
        # From 02:00 to 02:40 there, which come twice, and from 02:40 on.
        pytest.param(
            "2024-10-27 00:10", 40 * MINUTE, "Europe/Berlin", ("2024-10-27 00:00", "2024-10-27 01:40"), id="back"
        ),
        pytest.param(
            "2024-10-27 00:40", 40 * MINUTE, "Europe/Berlin", ("2024-10-27 00:40", "2024-10-27 02:20"), id="on"
        ),
        pytest.param(
            "2011-12-31 12:00", DAY, "Pacific/Apia", ("2011-12-31 10:00", "2012-01-01 10:00"), id="a skipped day"
        ),
    ],
)
def test_buckets_follow_the_clock(text: str, length: int, zone: str | None, expected: tuple[str, str]) -> None:
    assert bounds(text, length, zone) == expected


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", None]
)
@pytest.mark.parametrize("minutes", [1, 7, 30, 50, 60, 90, 120, 150, 1440, 10080])
def test_around_changes_of_clocks(zone: str | None, minutes: int) -> None:
    length = minutes * MINUTE
    changes = ("2024-03-31 01:00", "2024-10-27 01:00", "2024-11-03 06:00", "2024-04-06 15:00", "2018-11-04 03:00")
    for change in map(instant, changes):
        times = change + np.arange(-300, 300, 5) * MINUTE
        starts = bucket_starts(Column(times), length, Clock(zone)).values
        ends = bucket_ends(starts, length, zone)
        assert starts.tolist() == [bucket_start(t, length, zone) for t in times.tolist()]
        # No time is in a bucket before its start or from its end on.
        assert ((starts <= times) & (times < ends)).all()
        # A bucket starts with itself, and its end is not later than it must be: the time before it is in the bucket.
        assert bucket_starts(Column(ends - 1), length, Clock(zone)).values.tolist() == starts.tolist()


@pytest.mark.parametrize(
    ("times", "type_"),
    [
        pytest.param([3_700, 10], pa.timestamp("s", "Europe/Oslo"), id="seconds"),
        pytest.param([3_700_000_000_999, 10_000_000_000], pa.timestamp("ns", "Europe/Oslo"), id="nanoseconds"),
        pytest.param([3_700_000_000, 10_000_000], pa.timestamp("us"), id="without a zone"),
    ],
)
def test_the_column_is_a_time_in_microseconds(times: list[int], type_: pa.DataType) -> None:
    events = pa.table({"ts": pa.array(sorted(times), type_), "x": [1, 2]})
    found = ec.match(events, "PATTERN A a WITHIN 1 s GROUPBY a.ts EVERY 1 hour AS hour AGG COUNT(*) AS n")
    assert found.schema.field("hour").type == pa.timestamp("us", type_.tz)
    assert sorted(found.column("hour").cast(pa.int64()).to_pylist()) == [0, HOUR]


@pytest.mark.parametrize(
    ("times", "unit"), [([10, 3_700], "s"), ([10_000, 3_700_000], "ms"), ([10**10, 37 * 10**11], "ns")]
)
def test_whole_numbers_of_the_time_are_times(times: list[int], unit: str) -> None:
    events = pa.table({"ts": times})
    found = ec.match(events, "PATTERN A a WITHIN 1 s GROUPBY a.ts EVERY 1 hour AGG COUNT(*) AS n", time_unit=unit)
    assert found.column("a.ts EVERY 1 hour").to_pylist() == [datetime(1970, 1, 1), datetime(1970, 1, 1, 1)]


def test_text_and_dates_and_nothing() -> None:
    text = pa.table({"ts": ["2024-05-15 12:34:56", "2024-05-15 13:00:00"], "d": pa.array([19858, None], pa.date32())})
    query = "PATTERN A a WITHIN 1 s GROUPBY a.{} EVERY 1 week AS week AGG COUNT(*) AS n"
    assert ec.match(text, query.format("ts")).to_pylist() == [{"week": datetime(2024, 5, 13), "n": 2}]
    weeks: list[Any] = ec.match(text, query.format("d")).column("week").to_pylist()
    assert sorted(weeks, key=str) == [datetime(2024, 5, 13), None]


def test_a_bucket_is_a_value_of_a_match_too() -> None:
    events = pa.table({"ts": pa.array([1, 5 * HOUR], pa.timestamp("us", "Europe/Oslo"))})
    found = ec.match(events, "PATTERN A a WITHIN 1 s RETURN a.ts EVERY 1 day AS day")
    assert found.column("day").to_pylist() == [datetime(1970, 1, 1, tzinfo=ZoneInfo("Europe/Oslo"))] * 2
