"""Functions over columns: rounding, clocks, text that is computed, and what is null."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.engine.columns import Column
from eventcube.engine.functions import absolute, clock_part, coalesced, rounded
from eventcube.errors import BindError
from eventcube.plan.expressions import Clock

LEAST = -(2**63)


def values(expression: str, **columns: Any) -> list[Any]:
    """What an expression comes to for events with these columns."""
    size = len(next(iter(columns.values())))
    table = pa.table({"ts": range(size), **columns})
    return list(ec.match(table, f"PATTERN A a RETURN {expression} AS v").column("v").to_pylist())


def held(condition: str, **columns: Any) -> list[int]:
    """The places of the events for which a condition holds."""
    size = len(next(iter(columns.values())))
    table = pa.table({"ts": range(size), **columns})
    return list(ec.match(table, f"PATTERN A a WHERE {condition} RETURN a.ts AS v").column("v").to_pylist())


def test_the_sign_is_taken_away() -> None:
    assert values("ABS(a.x)", x=[-3, 0, None, LEAST, 2**63 - 1]) == [3, 0, None, None, 2**63 - 1]
    assert values("ABS(a.x)", x=[-0.5, None, float("-inf")]) == [0.5, None, float("inf")]
    assert values("ABS(a.x - a.y)", x=pa.array([1], pa.timestamp("us")), y=pa.array([3], pa.timestamp("us"))) == [
        timedelta(microseconds=2)
    ]


@pytest.mark.parametrize(
    ("number", "digits", "expected"),
    [
        *((0.5, 0, 1.0), (1.5, 0, 2.0), (2.5, 0, 3.0), (-2.5, 0, -3.0), (0.49999999999999994, 0, 0.0)),
        *((2.675, 2, 2.68), (1.005, 2, 1.01), (-1.005, 2, -1.01), (0.285, 2, 0.29), (1e300, 2, 1e300)),
        *((1234.5, -2, 1200.0), (1250.0, -2, 1300.0), (5e-324, 400, 5e-324), (1e308, -400, 0.0)),
        *((float("inf"), 1, float("inf")), (123456789012345.675, 2, 123456789012345.67)),
    ],
)
def test_floats_are_rounded_by_their_digits(number: float, digits: int, expected: float) -> None:
    assert rounded(Column(np.array([number])), digits).values.tolist() == [expected]


@pytest.mark.parametrize(
    ("number", "digits", "expected"),
    [
        *((15, -1, 20), (-15, -1, -20), (14, -1, 10), (15, 3, 15), (15, 0, 15), (5, -1, 10), (4, -1, 0)),
        *((2**63 - 1, -1, None), (2**63 - 8, -1, 2**63 - 8), (LEAST, -1, None), (LEAST, -18, -9 * 10**18)),
        *((5 * 10**18, -19, None), (5 * 10**18 - 1, -19, 0), (2**63 - 1, -20, 0), (2**63 - 1, -400, 0)),
    ],
)
def test_whole_numbers_stay_whole(number: int, digits: int, expected: int | None) -> None:
    assert values(f"ROUND(a.x, {digits})", x=pa.array([number], pa.int64())) == [expected]


def test_the_first_that_is_not_null() -> None:
    assert values("COALESCE(a.x, a.y, 7)", x=[None, 1, None], y=[2, 3, None]) == [2, 1, 7]
    assert values("COALESCE(a.x, a.y)", x=pa.array([None, 1], pa.int64()), y=[float("nan"), 0.5]) == [None, 1.0]
    assert values("COALESCE(NULL, a.s, 'x')", s=["a", None]) == ["a", "x"]
    assert values("COALESCE(a.b, FALSE)", b=[True, None]) == [True, False]
    assert held("COALESCE(a.b, TRUE)", b=[True, None, False]) == [0, 1]
    assert values("COALESCE(NULL, NULL)", x=[1]) == [None]
    times = pa.array([None, 1_000_000], pa.timestamp("us"))
    assert values("COALESCE(a.t, '1970-01-02')", t=times) == [datetime(1970, 1, 2), datetime(1970, 1, 1, 0, 0, 1)]


def test_nothing_is_computed_in_place() -> None:
    column = Column(np.array([-1, 2]), np.array([True, False]))
    for result in (absolute(column), coalesced([column]), rounded(column, -1)):
        assert result.values is not column.values
    assert column.values.tolist() == [-1, 2]


def test_text_is_computed_wherever_it_stands() -> None:
    names = ["Anna", "ANNA", "Straße", None, "é"]
    assert values("LOWER(a.s)", s=names) == ["anna", "anna", "straße", None, "é"]
    assert values("UPPER(LOWER(a.s))", s=names) == ["ANNA", "ANNA", "STRASSE", None, "É"]
    assert values("LENGTH(UPPER(a.s)) + 1", s=names) == [5, 5, 8, None, 2]
    assert values("LENGTH(a.s)", s=["😀", ""]) == [1, 0]
    assert values("LOWER('ABC')", s=names) == ["abc"] * 5
    assert values("LOWER(NULL)", s=names) == [None] * 5
    assert held("LOWER(a.s) = 'anna'", s=names) == [0, 1]
    assert held("UPPER(a.s) > 'B' AND UPPER(a.s) < 'Z'", s=names) == [2]
    assert held("LENGTH(a.s) IS NULL", s=names) == [3]


def test_text_of_two_events_is_compared_in_order() -> None:
    table = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "B"], "s": ["b", "A", "C"]})
    query = "PATTERN SEQ(A a, B b) WHERE COALESCE(a.s, 'x') < LOWER(b.s) WITHIN 9 us RETURN b.s AS s"
    assert ec.match(table, query, type="type").column("s").to_pylist() == ["C"]
    equal = "PATTERN SEQ(A a, B b) WHERE LOWER(a.s) != LOWER(b.s) WITHIN 9 us RETURN LOWER(b.s) AS s, MONTH(b.t) AS m"
    table = table.append_column("t", pa.array([0, 0, None], pa.timestamp("us")))
    found = ec.match(table, equal, type="type").select(["s", "m"]).to_pylist()
    assert sorted(found, key=str) == [{"s": "a", "m": 1}, {"s": "c", "m": None}]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        *(("%", [0, 1, 2, 3, 4]), ("", [4]), ("_", []), ("a%", [0, 1]), ("%b", [0, 1]), ("a_b", [0, 1])),
        *((r"a\_b", [0]), ("50%", [2]), (r"50\%", [2]), ("A%", []), ("%\n%", [3]), ("x_y", [3])),
    ],
)
def test_like(pattern: str, expected: list[int]) -> None:
    texts = ["a_b", "acb", "50%", "x\ny", "", None]
    assert held(f"a.s LIKE '{pattern}'", s=texts) == expected
    assert held(f"a.s NOT LIKE '{pattern}'", s=texts) == [i for i in range(5) if i not in expected]
    assert held(f"NOT (a.s LIKE '{pattern}')", s=texts) == [i for i in range(5) if i not in expected]


def test_another_escape() -> None:
    assert held("a.s LIKE '##%' ESCAPE '#'", s=["#", "#1", "%"]) == [0, 1]
    assert held(r"a.s LIKE 'a\b' ESCAPE '%'", s=["a\\b", "ab"]) == [0]


# Around both changes of the clocks in New York, and in a year before there were rules.
INSTANTS = [
    "2024-03-10T06:59:59",
    "2024-03-10T07:00:00",
    "2024-11-03T05:30:00",
    "2024-11-03T06:30:00",
    "1850-01-01T04:00:00",
]


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York", "Asia/Kolkata", "+05:30", "Pacific/Apia"])
def test_clocks_show_what_they_show_in_the_zone(zone: str | None) -> None:
    moments = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in INSTANTS]
    here = ZoneInfo("Asia/Kolkata" if zone == "+05:30" else zone or "UTC")
    clock = [m.astimezone(here) for m in moments if zone != "+05:30" or m.year > 1950]
    stored = pa.array([int(m.timestamp()) * 1_000_000 for m in clock], pa.int64()).cast(pa.timestamp("us", zone))
    for function, part in (
        ("YEAR", "year"),
        ("MONTH", "month"),
        ("DAY", "day"),
        ("HOUR", "hour"),
        ("MINUTE", "minute"),
    ):
        assert values(f"{function}(a.t)", t=stored) == [getattr(m, part) for m in clock]
    assert values("WEEKDAY(a.t)", t=stored) == [m.isoweekday() for m in clock]
    days = [m.replace(hour=0, minute=0, second=0) for m in clock]
    assert [d if zone else d.replace(tzinfo=UTC) for d in values("DATE(a.t)", t=stored)] == days


def test_dates_text_and_whole_numbers_have_clocks() -> None:
    assert values("DAY(a.d)", d=pa.array([0, 31], pa.date32())) == [1, 1]
    text = pa.table({"ts": ["2024-02-29 23:59:59", "2024-03-01T00:00:00Z"]})
    with pytest.warns(ec.EventCubeWarning, match="EC524"):
        assert ec.match(text, "PATTERN A a RETURN DAY(a.ts) AS d").column("d").to_pylist() == [29, 1]
    whole = pa.table({"ts": [86_400 * 3 + 3_600]})
    found = ec.match(whole, "PATTERN A a RETURN HOUR(a.ts) AS h, DATE(a.ts) AS d", time_unit="s").to_pylist()
    assert found[0]["h"] == 1
    assert found[0]["d"] == datetime(1970, 1, 4)


@pytest.mark.parametrize("value", ["a.x", "a.ts + 1", "7", "COALESCE(a.ts, a.x)", "LENGTH('a')"])
def test_other_whole_numbers_have_none(value: str) -> None:
    table = pa.table({"ts": [1], "x": [1]})
    with pytest.raises(BindError, match="HOUR takes a time, and this is a whole number"):
        ec.match(table, f"PATTERN A a WHERE HOUR({value}) = 1")


def test_times_beyond_all_calendars_are_null() -> None:
    far = Column(np.array([2**62, -(2**63), 0]))
    assert clock_part("YEAR", far, Clock("America/New_York")).valid.tolist() == [False, False, True]
    nearer = clock_part("HOUR", Column(np.array([2**62 - 1, 1 - 2**62])), Clock("America/New_York"))
    assert nearer.valid is None


def test_an_unknown_zone_is_told() -> None:
    table = pa.table({"ts": [1], "t": pa.array([1], pa.timestamp("us", "Mars/Olympus"))})
    with pytest.raises(BindError, match="unknown time zone 'Mars/Olympus'"):
        ec.match(table, "PATTERN A a WHERE HOUR(a.t) = 1")
