"""Flat tables: names, types, nulls, and two columns that would have one name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eventcube.errors import OptionError
from eventcube.language.parse import parse
from eventcube.plan.event_columns import event_columns, flat_columns, plain_batch, plain_columns, plain_schema

EVENT = pa.struct([pa.field("ts", pa.int64(), False), pa.field("id", pa.string())])
SCHEMA = pa.schema([pa.field("start", pa.int64(), False), pa.field("a", EVENT, False), pa.field("b", EVENT)])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("PATTERN SEQ(A a, !C c, OR(B b, D)) WITHIN 1 s", ["a", "b", "D"]),
        ("PATTERN SEQ(A a, B b) WITHIN 1 s RETURN a AS x, b.id AS y, b", ["x", "b"]),
        ("PATTERN SEQ(A a, B b) WITHIN 1 s RETURN a.id AS a", []),
        ("PATTERN A a AGG COUNT(*)", []),
    ],
)
def test_columns_that_hold_events(query: str, expected: list[str]) -> None:
    assert event_columns(parse(query)) == expected


def test_a_column_for_each_field_of_an_event() -> None:
    columns = flat_columns(SCHEMA, ["a", "b"])
    assert [c.name for c in columns] == ["start", "a_ts", "a_id", "b_ts", "b_id"]
    schema = plain_schema(SCHEMA, columns)
    assert [f.nullable for f in schema] == [False, False, True, True, True]
    rows = [{"start": 1, "a": {"ts": 1, "id": "x"}, "b": None}]
    flat = plain_batch(pa.RecordBatch.from_pylist(rows, SCHEMA), columns)
    assert flat.schema.equals(schema)
    assert flat.to_pylist() == [{"start": 1, "a_ts": 1, "a_id": "x", "b_ts": None, "b_id": None}]


def test_structs_that_are_no_events_stay() -> None:
    assert [c.name for c in flat_columns(SCHEMA, ["b"])] == ["start", "a", "b_ts", "b_id"]


CLASHES = {
    "a_b.c and a.b_c": pa.schema([("a_b", pa.struct([("c", pa.int64())])), ("a", pa.struct([("b_c", pa.int64())]))]),
    "a_ts and a.ts": pa.schema([("a_ts", pa.int64()), ("a", EVENT)]),
    "a.ts and a_ts": pa.schema([("a", EVENT), ("a_ts", pa.int64())]),
}


@pytest.mark.parametrize("shown", CLASHES)
def test_two_columns_of_one_name_are_told(shown: str) -> None:
    schema = CLASHES[shown]
    events = [f.name for f in schema if pa.types.is_struct(f.type)]
    with pytest.raises(OptionError, match=f"in a flat table {shown} would both be called") as caught:
        flat_columns(schema, events)
    assert caught.value.code == "EC433"
    assert "AS other_name" in str(caught.value)


def test_case_tells_names_apart_unless_it_is_ignored() -> None:
    schema = pa.schema([("a", EVENT), ("A_TS", pa.int64())])
    assert [c.name for c in flat_columns(schema, ["a"])] == ["a_ts", "a_id", "A_TS"]
    with pytest.raises(OptionError, match="EC433"):
        flat_columns(schema, ["a"], ignore_case=True)


def test_another_separator_for_csv() -> None:
    assert [c.name for c in plain_columns(SCHEMA, ["a"], ".")] == ["start", "a.ts", "a.id", "b"]
