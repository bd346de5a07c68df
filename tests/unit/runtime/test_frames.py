"""Results as frames: what is in them, whatever the events were."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.runtime.frames import from_arrow

START = pd.Timestamp("2026-01-01 09:00:00.000000001")
PAIR = "PATTERN SEQ(A a, B b) WITHIN 1 hour"


def events(zone: str | None, unit: str = "ns") -> pd.DataFrame:
    ts = pd.Series(pd.date_range(START, periods=3, freq="1min", tz=zone)).dt.as_unit(unit)
    return pd.DataFrame({"ts": ts, "type": ["A", "B", "B"], "seen": ts.where(ts.index != 1), "took": ts - ts[0]})


@pytest.mark.parametrize("zone", [None, "America/New_York", "UTC"])
def test_events_of_pandas_frames_have_times_to_the_nanosecond(zone: str | None) -> None:
    given = events(zone)
    found = ec.match(given, PAIR, type="type")
    start = START if zone is None else START.tz_localize(zone)
    assert [a["ts"] for a in found["a"]] == [start, start]
    assert [b["took"] for b in found["b"]] == [pd.Timedelta("1min"), pd.Timedelta("2min")]
    assert [b["seen"] for b in found["b"]] == [None, start + pd.Timedelta("2min")]
    assert {type(b["ts"]) for b in found["b"]} == {pd.Timestamp}
    assert str(found["a"][0]["ts"].tz) == str(zone)
    assert found["start"].dtype == given["ts"].dtype
    assert list(found["a"][0]) == ["ts", "type", "seen", "took"], "in the order of the columns"


def test_events_of_several_queries_have_times() -> None:
    found = ec.match(events("Europe/Berlin"), {"pairs": PAIR, "one": "PATTERN A a WITHIN 1 s"}, type="type")
    start = START.tz_localize("Europe/Berlin")
    assert sorted([e["ts"] for e in row] for row in found["events"]) == [
        [start],
        [start, start + pd.Timedelta("1min")],
        [start, start + pd.Timedelta("2min")],
    ]
    wide = ec.wide(found, "pairs", PAIR)
    assert [a["ts"] for a in wide["a"]] == [start.floor("us")] * 2


def test_an_alternative_that_is_not_taken_is_null() -> None:
    found = ec.match(events(None), "PATTERN OR(A a, B b) WITHIN 1 s", type="type")
    assert [a is None for a in found["a"]] == [False, True, True]
    assert found["b"][1]["ts"] == START + pd.Timedelta("1min")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_every_unit_are_times(unit: str) -> None:
    found = ec.match(events("Asia/Kolkata", unit), PAIR, type="type")
    assert found["a"][0]["ts"] == events("Asia/Kolkata", unit)["ts"][0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({"in": {"t": 5}}, {"in": {"t": pd.Timestamp(5)}}, id="a struct in a struct"),
        pytest.param({"in": None}, {"in": None}, id="none there"),
        pytest.param(None, None, id="no struct"),
    ],
)
def test_times_deep_inside(value: Any, expected: Any) -> None:
    inner = pa.struct({"t": pa.timestamp("ns")})
    column = pa.array([value, None], pa.struct({"in": inner}))
    table = pa.table({"x": pa.chunked_array([column.slice(0, 1), column.slice(1)])})
    assert from_arrow(table, pd.DataFrame())["x"].tolist() == [expected, None]
