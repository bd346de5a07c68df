"""What a result looks like: its columns and their types, the events and values in it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import eventcube as ec

EVENTS = pa.table(
    {
        "ts": pa.array([1, 2, 3, 4], pa.timestamp("ms", "UTC")),
        "type": ["A", "B", "C", "B"],
        "x": pa.array([1, 2, None, 4], pa.int16()),
        "tags": [["p"], [], None, ["q", "r"]],
        "c": pa.array(["u", "v", None, "u"]).dictionary_encode(),
    }
)


def result(query: str, events: pa.Table = EVENTS, **settings: Any) -> pa.Table:
    return ec.match(events, f"PATTERN {query}", **({"type": "type"} | settings))


def test_without_return_every_positive_variable_is_an_event() -> None:
    found = result("SEQ(A a, !C c, B b) WITHIN 1 s")
    assert found.schema.names == ["start", "end", "a", "b"]
    assert found.schema.field("a").type == pa.struct(list(EVENTS.schema))
    assert found.column("b").to_pylist() == [EVENTS.to_pylist()[1]]


def test_whether_a_column_can_be_null() -> None:
    schema = result("SEQ(A a, OR(B b, C c)) WITHIN 1 s").schema
    assert [schema.field(n).nullable for n in ("start", "end", "a", "b", "c")] == [False, False, False, True, True]


def test_alternatives_not_taken_are_null_events() -> None:
    found = result("SEQ(A a, OR(B b, C c)) WITHIN 1 s RETURN b, c.x AS x, b.x + 1 AS y, c.ts AS t")
    rows = [(None if r["b"] is None else r["b"]["x"], r["x"], r["y"], r["t"]) for r in found.to_pylist()]
    third = EVENTS.column("ts")[2].as_py()
    assert sorted(rows, key=repr) == sorted(
        [(2, None, 3, None), (None, None, None, third), (4, None, 5, None)], key=repr
    )


def test_attributes_keep_their_types_and_values_get_one() -> None:
    found = result(
        "SEQ(A a, B b) WITHIN 1 s RETURN a.x, a.tags, a.c, a.ts, b.ts - a.ts AS delay, a.x * 2 AS twice,"
        " a.x / 2 AS half, a.ts + 1 day AS later, 'k' AS k, 5 AS five, NULL AS nothing, b AS event"
    )
    types = {f.name: f.type for f in found.schema}
    assert types == {
        "start": pa.timestamp("ms", "UTC"),
        "end": pa.timestamp("ms", "UTC"),
        "a.x": pa.int16(),
        "a.tags": pa.list_(pa.string()),
        "a.c": EVENTS.schema.field("c").type,
        "a.ts": pa.timestamp("ms", "UTC"),
        "delay": pa.duration("us"),
        "twice": pa.int64(),
        "half": pa.float64(),
        "later": pa.timestamp("us", "UTC"),
        "k": pa.string(),
        "five": pa.int64(),
        "nothing": pa.null(),
        "event": pa.struct(list(EVENTS.schema)),
    }
    first = found.slice(0, 1).to_pylist()[0]
    assert first["delay"] == timedelta(milliseconds=1)
    assert first["later"] == datetime(1970, 1, 2, 0, 0, 0, 1000, UTC)
    assert (first["a.x"], first["a.tags"], first["a.c"], first["half"]) == (1, ["p"], "u", 0.5)


@pytest.mark.parametrize(
    ("column", "unit", "shown"),
    [
        pytest.param(pa.array([1, 2], pa.timestamp("s")), "us", None, id="seconds"),
        pytest.param(pa.array([1, 2], pa.timestamp("ms", "Asia/Tokyo")), "us", None, id="milliseconds with a zone"),
        pytest.param(pa.array([-2, -1], pa.timestamp("us")), "us", None, id="microseconds before 1970"),
        pytest.param(pa.array([1001, 2999], pa.timestamp("ns")), "us", [1000, 2000], id="nanoseconds are rounded down"),
        pytest.param(pa.array([1, 2], pa.int32()), "us", None, id="whole numbers"),
        pytest.param(pa.array([-1, 2], pa.int64()), "s", None, id="whole numbers of seconds"),
        pytest.param(pa.array([1, 2], pa.uint8()), "ms", None, id="small whole numbers of milliseconds"),
    ],
)
def test_start_and_end_are_as_the_time_column(column: pa.Array, unit: str, shown: list[int] | None) -> None:
    events = pa.table({"ts": column, "type": ["A", "B"]})
    found = result("SEQ(A a, B b) WITHIN 1 hour RETURN a.ts AS a, b.ts AS b", events, time_unit=unit)
    assert found.schema.field("start").type == found.schema.field("a").type == column.type
    raw = [found.column(n).cast(pa.int64())[0].as_py() for n in ("start", "end", "a", "b")]
    own = column.cast(pa.int64()).to_pylist()
    assert raw == [*(shown or own), *own], "the events' own times are not rounded"


def test_text_and_dates_give_timestamps() -> None:
    for column in (pa.array(["2024-01-31 12:00", "2024-02-01"]), pa.array([10, 11], pa.date32())):
        found = result("SEQ(A a, B b) WITHIN 9 days RETURN a.ts", pa.table({"ts": column, "type": ["A", "B"]}))
        assert found.schema.field("start").type == pa.timestamp("us")
        assert found.column("a.ts").to_pylist() == column.to_pylist()[:1]


def test_rows_are_not_made_unique() -> None:
    events = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "B"]})
    assert result("SEQ(A a, B b) WITHIN 9 us RETURN 1 AS one", events).column("one").to_pylist() == [1, 1]


def test_dictionaries_of_several_batches_are_joined() -> None:
    runtime = ec.Runtime("PATTERN SEQ(A a, B b) WITHIN 9 us RETURN a.c, b.c", type="type")
    batches = []
    for ts, type_, text in ((1, "A", "x"), (2, "A", "y"), (3, "B", "z")):
        one = pa.array([text]).dictionary_encode()
        batches += runtime.push(pa.table({"ts": [ts], "type": [type_], "c": one}))
    batches += runtime.finish()
    assert sorted(tuple(r.values())[2:] for b in batches for r in b.to_pylist()) == [("x", "z"), ("y", "z")]


def test_whole_numbers_of_nanoseconds_are_returned_as_they_are() -> None:
    table = pa.table({"ts": pa.array([1_700_000_000_000_001_500, 1_700_000_000_000_009_999], pa.int64())})
    found = ec.match(table, "PATTERN A a WITHIN 1 s RETURN a, a.ts AS ts, a.ts + 0 AS same", time_unit="ns")
    assert found.column("ts").to_pylist() == table.column("ts").to_pylist()
    assert found.column("same").to_pylist() == table.column("ts").to_pylist()
