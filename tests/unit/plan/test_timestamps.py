"""Timestamps in a query, read in the time zones of columns, and the warnings about them."""

from __future__ import annotations

import warnings
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.language.parse import parse
from eventcube.language.printer import print_qual, print_query
from eventcube.plan.bind import bind
from eventcube.plan.logical import LogicalQuery
from eventcube.schema import EventSchema

COLUMNS = pa.schema(
    [
        ("ts", pa.timestamp("us", "America/New_York")),
        ("berlin", pa.timestamp("ms", "Europe/Berlin")),
        ("local", pa.timestamp("us")),
        ("day", pa.date32()),
        ("name", pa.string()),
        ("x", pa.int64()),
    ]
)


def bound(where: str, time: str = "ts", unit: str = "us") -> LogicalQuery:
    query = parse(f"PATTERN SEQ(A a, B b) WHERE {where} WITHIN 1 hour")
    return bind(query, EventSchema(COLUMNS, time, time_unit=unit))


def read(where: str, time: str = "ts", unit: str = "us") -> str:
    return " AND ".join(print_qual(qual) for qual in bound(where, time, unit).query.where)


NOON = "'2024-01-31 12:00'"


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (f"a.ts > {NOON}", "a.ts > TIMESTAMP '2024-01-31 17:00:00Z'"),
        (f"a.ts > TIMESTAMP {NOON}", "a.ts > TIMESTAMP '2024-01-31 17:00:00Z'"),
        (f"{NOON} < a.ts", "TIMESTAMP '2024-01-31 17:00:00Z' < a.ts"),
        ("a.ts > '2024-01-31 12:00+02:00'", "a.ts > TIMESTAMP '2024-01-31 10:00:00Z'"),
        (f"a.berlin > {NOON}", "a.berlin > TIMESTAMP '2024-01-31 11:00:00Z'"),
        (f"a.local > {NOON}", "a.local > TIMESTAMP '2024-01-31 12:00:00'"),
        ("a.day = '2024-01-31'", "a.day = TIMESTAMP '2024-01-31 00:00:00'"),
        (f"a.ts IN ({NOON}, b.ts)", "a.ts IN (TIMESTAMP '2024-01-31 17:00:00Z', b.ts)"),
        (f"{NOON} IN (a.ts)", "TIMESTAMP '2024-01-31 17:00:00Z' IN (a.ts)"),
        (f"{NOON} BETWEEN a.x AND b.ts", None),
        (
            f"a.berlin NOT BETWEEN {NOON} AND TIMESTAMP {NOON} + 1 hour",
            "a.berlin NOT BETWEEN TIMESTAMP '2024-01-31 11:00:00Z' AND TIMESTAMP '2024-01-31 11:00:00Z' + 1 hour",
        ),
        (f"a.ts - TIMESTAMP {NOON} < 1 hour", "a.ts - TIMESTAMP '2024-01-31 17:00:00Z' < 1 hour"),
        (f"1 hour > -(TIMESTAMP {NOON} - a.berlin)", "1 hour > -(TIMESTAMP '2024-01-31 11:00:00Z' - a.berlin)"),
        (f"a.ts + 1 hour > {NOON}", "a.ts + 1 hour > TIMESTAMP '2024-01-31 17:00:00Z'"),
        (f"(TIMESTAMP {NOON} - a.ts) IS NULL", "TIMESTAMP '2024-01-31 17:00:00Z' - a.ts IS NULL"),
        # What is computed with directly comes before what is compared with.
        (
            f"a.berlin - TIMESTAMP {NOON} < b.ts - a.ts",
            "a.berlin - TIMESTAMP '2024-01-31 11:00:00Z' < b.ts - a.ts",
        ),
        # Of two columns beside a moment it is the first.
        (
            f"TIMESTAMP {NOON} BETWEEN a.berlin AND b.ts",
            "TIMESTAMP '2024-01-31 11:00:00Z' BETWEEN a.berlin AND b.ts",
        ),
        (
            f"TIMESTAMP {NOON} BETWEEN a.ts AND b.berlin",
            "TIMESTAMP '2024-01-31 17:00:00Z' BETWEEN a.ts AND b.berlin",
        ),
        # Against nothing that has a zone it stays as it is.
        (f"TIMESTAMP {NOON} < TIMESTAMP {NOON}", "TIMESTAMP '2024-01-31 12:00:00' < TIMESTAMP '2024-01-31 12:00:00'"),
        (f"a.name = {NOON}", f"a.name = {NOON}"),
        (f"a.x = 1 OR NOT a.ts = {NOON}", "a.x = 1 OR NOT a.ts = TIMESTAMP '2024-01-31 17:00:00Z'"),
        ("a.ts < '9999-12-31 23:59'", "a.ts < TIMESTAMP '9999-12-31 05:00:00-23:59'"),
    ],
)
def test_a_moment_is_in_the_zone_of_what_it_stands_against(where: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(ec.BindError, match="EC210"):
            read(where)
        return
    assert read(where) == expected
    assert not bound(where).warnings


def test_a_query_that_was_bound_can_be_bound_again() -> None:
    schema = EventSchema(COLUMNS, "ts")
    text = f"""PATTERN SEQ(A a, !(B b, b.ts > {NOON}), OR(C c, D d), c.local < '2024-01-31 12Z')
    WHERE a.berlin - TIMESTAMP {NOON} > 1 hour WITHIN 1 hour RETURN a.ts - TIMESTAMP {NOON}"""
    once = bind(parse(text), schema)
    again = bind(once.query, schema)
    assert again.query == once.query
    assert [d.code for d in once.warnings] == ["EC521"]
    assert not again.warnings
    assert print_query(parse(print_query(once.query))) == print_query(once.query)


def test_columns_are_called_as_they_were_written() -> None:
    table = pa.table({"ts": pa.array([0], pa.timestamp("us", "Asia/Kolkata"))})
    value = "a.ts - TIMESTAMP '1970-01-01 00:00:00'"
    found = ec.match(table, f"PATTERN A a WITHIN 1 s RETURN {value}, {value} + 1 hour AS later")
    assert found.column_names[2:] == [value, "later"]
    assert [str(c[0].as_py()) for c in found.columns[2:]] == ["5:30:00", "6:30:00"]
    groups = ec.match(table, f"PATTERN A a WITHIN 1 s GROUPBY {value} AGG MAX({value})")
    assert groups.column_names == [value, f"MAX({value})"]


@pytest.mark.parametrize(
    ("where", "unit", "expected"),
    [
        ("a.x > '1970-01-01 00:00:02Z'", "us", "a.x > 2000000"),
        ("a.x > '1970-01-01 00:00:02Z'", "s", "a.x > 2"),
        ("a.x = '1970-01-01 00:00:02.0001Z'", "ms", "a.x = 2000.5"),
        ("a.x = '1969-12-31 23:59:59.5Z'", "s", "a.x = -0.5"),
        ("a.x IN ('1970-01-01 00:00:02+00:00', 3)", "s", "a.x IN (2, 3)"),
        ("TIMESTAMP '1970-01-01 00:00:02Z' BETWEEN a.x AND b.x", "s", "2 BETWEEN a.x AND b.x"),
    ],
)
def test_moments_against_whole_numbers_that_are_the_time(where: str, unit: str, expected: str) -> None:
    assert read(where, "x", unit) == expected
    assert not bound(where, "x", unit).warnings


def test_other_whole_numbers_are_no_times() -> None:
    with pytest.raises(ec.BindError, match="EC210"):
        bound(f"a.x > TIMESTAMP {NOON}")
    with pytest.raises(ec.BindError, match="without quotes: 5"):
        bound("a.x > '5'", "x")


def warned(columns: dict[str, Any], where: str) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        runtime = ec.Runtime(f"PATTERN A a WHERE {where} WITHIN 1 s")
        for _ in range(2):
            list(runtime.push(pa.table(columns)))
    assert {w.filename for w in caught} <= {__file__}
    return [str(w.message) for w in caught]


INSTANT = datetime(2024, 1, 31, 12)


@pytest.mark.parametrize(
    ("ts", "where", "code"),
    [
        pytest.param(pa.array([5]), f"a.ts > {NOON} OR a.ts < {NOON}", "EC520", id="whole numbers, and no zone"),
        pytest.param(pa.array([5]), "a.ts > '2024-01-31 12Z'", None, id="whole numbers, and a zone"),
        pytest.param(pa.array([INSTANT]), "a.ts > '2024-01-31 12Z'", "EC521", id="a zone against none"),
        pytest.param(pa.array([INSTANT]), f"a.ts > {NOON}", None, id="no zone against none"),
        pytest.param(pa.array([INSTANT]), "a.ts > a.z", "EC522", id="columns with a zone and without one"),
        pytest.param(pa.array([INSTANT]), "a.ts - a.z > 1 hour", "EC522", id="in arithmetic"),
        pytest.param(pa.array([INSTANT]), "a.ts - a.ts > a.z - a.z", None, id="durations have no zone"),
        pytest.param(pa.array(["2024-01-31 12:00+01"]), f"a.ts > {NOON}", "EC523", id="text with a zone"),
        pytest.param(pa.array(["2024-01-31 12:00"]), f"a.ts > {NOON}", None, id="text without a zone"),
        pytest.param(pa.array(["2024-01-31 12:00+01"]), "a.ts > '2024-01-31 12Z'", None, id="both with a zone"),
    ],
)
def test_what_may_not_be_meant_is_told_once(ts: pa.Array, where: str, code: str | None) -> None:
    found = warned({"ts": ts, "z": pa.array([INSTANT], pa.timestamp("us", "Asia/Kolkata"))}, where)
    assert [message[:9] for message in found] == ([f"[{code}]: "] if code else [])


def test_a_warning_shows_the_place() -> None:
    assert warned({"ts": [5]}, f"a.ts > {NOON}") == [
        (
            "[EC520]: this time has no zone; it is taken for UTC, as are the whole numbers in 'ts'\n"
            " --> query:1:26\n"
            "  1 | PATTERN A a WHERE a.ts > '2024-01-31 12:00' WITHIN 1 s\n"
            "    |                          ^^^^^^^^^^^^^^^^^^\n"
            "hint: write the zone, as in '2024-01-31 12:00:00Z' or '2024-01-31 12:00:00+02:00'"
        )
    ]
