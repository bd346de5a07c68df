"""`ec.check`: errors and warnings of a query, with whatever is known of the events."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import eventcube as ec

COLUMNS = {"ts": [1, 2], "kind": ["A", "B"], "x": [1, 2]}
TABLE = pa.table(COLUMNS)
QUERY = "PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 5 us"


def codes(found: ec.Check) -> list[str]:
    return [d.code for d in (*found.errors, *found.warnings)]


@pytest.mark.parametrize(
    "events",
    [None, TABLE.schema, TABLE, pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS)],
    ids=["nothing", "a schema", "arrow", "pandas", "polars"],
)
def test_a_query_that_is_right(events: Any) -> None:
    found = ec.check(QUERY, events, type="kind")
    assert found
    assert found.ok
    assert codes(found) == []
    assert str(found).startswith("PATTERN SEQ(A a, B b)\nWHERE a.x = b.x\nWITHIN 5 microseconds\n\nok")
    assert repr(found).startswith("<Check: ok")


def test_without_events_the_query_alone_is_looked_at() -> None:
    query = "PATTERN SEQ(A a, !B b, C c) WHERE a.x = b.x AND z.x = 1 AND c.ts - a.ts < 5 GROUPBY a AGG COUNT(*)"
    assert set(codes(ec.check(query))) >= {"EC201"}, "scopes are known"
    query = "PATTERN SEQ(A a, C c) WHERE a.x = NULL AND a.ts > c.ts AND c.ts - a.ts < 5 GROUPBY a AGG COUNT(*)"
    found = ec.check(query)
    assert found.ok, "what is in the columns is not known, so anything may be done with them"
    assert codes(found) == ["EC500", "EC510", "EC511"]
    assert "(the query alone)" in str(found)
    assert codes(ec.check("PATTERN A a WHERE a.k = '2024-01-01' AND a.k = '2024-01-01 00:00'")) == []
    assert codes(ec.check("PATTERN A a WHERE a.k = 'x' AND a.k = 'y'")) == ["EC513"]


def test_all_errors_are_listed_and_none_is_raised() -> None:
    found = ec.check("PATTERN SEQ(A a B b) WITHIN soon")
    assert not found
    assert found.query is None
    assert all(code.startswith("EC1") for code in codes(found))
    found = ec.check("PATTERN SEQ(A a, B b) WHERE a.y = z.x WITHIN 5 us", TABLE, type="kind")
    assert codes(found) == ["EC203", "EC201"]
    assert "error[EC203]: unknown attribute 'y'" in str(found)
    assert codes(ec.check(QUERY, TABLE, type="kinds")) == ["EC302"]
    assert codes(ec.check(QUERY, TABLE, time_unit="minutes")) == ["EC401"]
    assert codes(ec.check("PATTERN SEQ(A start, B b) WITHIN 5 us")) == ["EC217"]


def test_a_query_that_does_not_fit_is_looked_at_further() -> None:
    query = "PATTERN SEQ(Ax a, B b) WHERE a.y = b.x AND a.x = NULL AND b.x LIKE 'x*'"
    found = ec.check(query, TABLE, type="kind")
    assert codes(found) == ["EC203", "EC226", "EC500", "EC510", "EC516", "EC501"]
    assert "(with the events)" in str(found)
    assert codes(ec.check(query, TABLE.schema, type="kind")) == ["EC203", "EC226", "EC500", "EC510", "EC516"]
    assert codes(ec.check(query, TABLE, type="kinds")) == ["EC302", "EC500", "EC510", "EC516"]
    assert codes(ec.check("PATTERN SEQ(A start, B b) WHERE b.y = 1", TABLE, type="kind")) == ["EC203", "EC217", "EC500"]
    assert codes(ec.check(query, TABLE, type="kind", concepts={"A": ["B"], "C": ["B"]}))[0] == "EC312"


def test_the_type_of_an_unknown_attribute_is_not_said_to_have_others() -> None:
    (error,) = ec.check("PATTERN Ax a WHERE a.y = 1", TABLE, type="kind").errors
    assert error.hint == "the input has: kind, ts, x"


def test_events_are_looked_at() -> None:
    assert codes(ec.check(QUERY.replace("B b", "C b"), TABLE, type="kind")) == ["EC501"]
    assert codes(ec.check(QUERY.replace("B b", "C b"), TABLE.schema, type="kind")) == [], "there are none in a schema"
    unreadable = TABLE.set_column(0, "ts", pa.array(["noon", "night"]))
    assert codes(ec.check(QUERY, unreadable, type="kind")) == ["EC502"]
    seconds = TABLE.set_column(0, "ts", pa.array([1_767_225_600, 1_767_225_601]))
    assert codes(ec.check(QUERY, seconds, type="kind")) == ["EC503"]
    assert codes(ec.check(QUERY, TABLE)) == ["EC505"]


def test_columns_alone_show_that_no_type_was_named() -> None:
    texts = TABLE.append_column("user", pa.array(["ann", "bob"])).schema
    (found,) = ec.check(QUERY, texts).warnings
    assert found.code == "EC505"
    assert found.hint == "name the column that holds the types, as in type='kind'; text columns: kind, user"
    for query, columns in (
        (QUERY, TABLE.schema.remove(1)),
        (QUERY, pa.schema([("ts", pa.string()), ("x", pa.int64())])),
        ("PATTERN SEQ(A a, B b) WHERE a.kind = 'A' AND b.kind = 'B' WITHIN 5 us", texts),
        ("PATTERN SEQ(A a, !(B b, b.x > 5)) WITHIN 5 us", texts),
        ("PATTERN SEQ(A a, A b) WHERE a.x = b.x WITHIN 5 us", texts),
        ("PATTERN SEQ(a, b) WITHIN 5 us", texts),
        ("PATTERN SEQ(A a, ANY b) WITHIN 5 us", texts),
    ):
        assert codes(ec.check(query, columns)) == [], query
    assert codes(ec.check(QUERY, texts, type="kind")) == []


def test_without_events_the_verdict_says_what_whole_numbers_count() -> None:
    shown = "ok (with the columns of the events; whole numbers in ts are read as milliseconds, time_unit='ms')"
    assert str(ec.check(QUERY, TABLE.schema, type="kind", time_unit="ms")).endswith(shown)
    times = TABLE.set_column(0, "ts", TABLE["ts"].cast(pa.timestamp("us"))).schema
    assert str(ec.check(QUERY, times, type="kind")).endswith("ok (with the columns of the events)")
    assert str(ec.check(QUERY, TABLE, type="kind")).endswith("ok (with the events)")


def test_a_parsed_query_will_do_and_nothing_runs() -> None:
    assert ec.check(ec.parse(QUERY), TABLE, type="kind", order_by="x", partition_by="x", strategy="balanced").ok


def test_a_notebook_shows_it_escaped() -> None:
    found = ec.check("PATTERN SEQ(`<i>` a, B b) WHERE a.x = NULL WITHIN 5 us", TABLE, type="kind")
    shown = found._repr_html_()
    assert "<i>" not in shown
    assert "warning[EC510]" in shown
    assert "&lt;i&gt;" in shown


def test_strategies_and_limits_that_cannot_run_are_errors() -> None:
    columns = pa.schema({"ts": pa.int64(), "kind": pa.string(), "x": pa.int64()})
    query = "PATTERN SEQ(A a, !SEQ(B b, !C c, D d), E e) WITHIN 1 s"
    for settings, code in (({"strategy": "bogus"}, "EC404"), ({"strategy": "rewrite"}, "EC418")):
        assert [e.code for e in ec.check(query, columns, type="kind", **settings).errors] == [code]
    counted = ec.check("PATTERN A a WITHIN 1 s AGG COUNT(*)", columns, type="kind", limit=3)
    assert [e.code for e in counted.errors] == ["EC416"]


def test_several_queries_are_checked_by_name() -> None:
    queries = {"right": QUERY, "wrong": "PATTERN SEQ(A a, B b) WHERE a.y = b.x", "unread": "PATTERN SEQ(A a"}
    found = ec.check(queries, TABLE, type="kind")
    assert (found.ok, bool(found)) == (False, False)
    assert {name: codes(one) for name, one in found.items()} == {
        "right": [],
        "wrong": ["EC203", "EC500"],
        "unread": ["EC104"],
    }
    assert [line for line in str(found).splitlines() if line.startswith((*queries, " --> "))] == [
        "right: ok (with the events)",
        "wrong: 1 error, 1 warning (with the events)",
        " --> wrong:1:31",
        "unread: 1 error (with the columns of the events)",
        " --> unread:1:12",
    ]
    assert repr(found).startswith("<Checks: right: ok (with the events), wrong: 1 error")
    assert "wrong: 1 error" in found._repr_html_()
    assert ec.check([QUERY, ec.parse(QUERY)], TABLE.schema, type="kind").keys() == {"q1", "q2"}
    assert ec.check([QUERY]).ok


@pytest.mark.parametrize(("queries", "code"), [({QUERY}, "EC414"), ([], "EC413"), ([5], "EC414"), (5, "EC414")])
def test_what_are_no_queries(queries: Any, code: str) -> None:
    with pytest.raises(ec.OptionError, match=code):
        ec.check(queries)
