"""Zones of columns and values, and what clocks show there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from eventcube.language.parse import parse
from eventcube.plan.bind import bind
from eventcube.plan.bind_expressions import zone_of
from eventcube.plan.logical import ValueColumn
from eventcube.plan.zones import column_zone, instant, read_zone
from eventcube.schema import EventSchema

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS = pa.schema(
    [
        ("ts", pa.timestamp("ns", "Europe/Berlin")),
        ("local", pa.timestamp("us")),
        ("day", pa.date32()),
        ("coded", pa.dictionary(pa.int8(), pa.timestamp("us", "America/New_York"))),
        ("x", pa.int64()),
    ]
)
SCHEMA = EventSchema(COLUMNS, "ts")


@pytest.mark.parametrize(
    ("shown", "zone", "expected"),
    [
        pytest.param("2024-01-31 12:00", "Europe/Berlin", "2024-01-31 11:00", id="winter"),
        pytest.param("2024-07-31 12:00", "Europe/Berlin", "2024-07-31 10:00", id="summer"),
        pytest.param("2024-03-31 02:30", "Europe/Berlin", "2024-03-31 01:30", id="skipped: as much later"),
        pytest.param("2024-10-27 02:30", "Europe/Berlin", "2024-10-27 00:30", id="shown twice: the first"),
        pytest.param("2024-03-10 02:30", "America/New_York", "2024-03-10 07:30", id="skipped in New York"),
        pytest.param("2024-11-03 01:30", "America/New_York", "2024-11-03 05:30", id="shown twice in New York"),
        pytest.param("2024-01-31 12:00", "Asia/Kolkata", "2024-01-31 06:30", id="half an hour"),
        pytest.param("2024-01-31 12:00", "+05:30", "2024-01-31 06:30", id="an offset"),
        pytest.param("2024-01-31 12:00", "-0330", "2024-01-31 15:30", id="an offset without a colon"),
        pytest.param("2024-01-31 12:00", "GMT+2", "2024-01-31 10:00", id="an offset as Spark names it"),
        pytest.param("2024-01-31 12:00", "UTC", "2024-01-31 12:00", id="UTC"),
        pytest.param("2024-01-31 12:00", "Z", "2024-01-31 12:00", id="Z"),
    ],
)
def test_an_instant_is_when_clocks_first_show_a_time(shown: str, zone: str, expected: str) -> None:
    read = read_zone(zone)
    assert read is not None
    micros = (datetime.fromisoformat(shown).replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    assert EPOCH + timedelta(microseconds=instant(micros, read)) == datetime.fromisoformat(expected + "Z")


@pytest.mark.parametrize("zone", ["", "Mars/Base", "America", "../etc/passwd", "+24:00", "+99", "PST"])
def test_zones_that_are_none(zone: str) -> None:
    assert read_zone(zone) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [("ts", "Europe/Berlin"), ("local", None), ("day", None), ("coded", "America/New_York"), ("x", None)],
)
def test_the_zone_of_a_column(name: str, expected: str | None) -> None:
    assert column_zone(name, SCHEMA) == expected


def test_whole_numbers_that_are_the_time_count_in_utc() -> None:
    assert column_zone("x", EventSchema(COLUMNS, "x")) == "UTC"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a.ts + 1 hour", "Europe/Berlin"),
        ("1 hour + a.coded", "America/New_York"),
        ("a.local + (a.ts - a.coded)", None),
        ("TIMESTAMP '2024-01-31 12:00Z' + 1 hour", "UTC"),
        ("TIMESTAMP '2024-01-31 12:00' + 1 hour", None),
        ("a.x", None),
    ],
)
def test_the_zone_of_a_value_is_that_of_the_first_time_in_it(value: str, expected: str | None) -> None:
    (column,) = bind(parse(f"PATTERN A a WITHIN 1 s RETURN {value} AS v"), SCHEMA).results.returns
    assert isinstance(column, ValueColumn)
    assert zone_of(column.value, SCHEMA) == expected


def test_the_time_of_a_result_keeps_the_zone_of_a_dictionary() -> None:
    assert EventSchema(COLUMNS, "coded").time_type == pa.timestamp("us", "America/New_York")
