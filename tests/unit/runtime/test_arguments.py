"""Arguments of a wrong kind are told so, with a code and what would be right."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.errors import EventCubeError, EventCubeWarning, OptionError
from eventcube.options import microseconds
from eventcube.runtime import adviser

PAIR = "PATTERN SEQ(a, b) WITHIN 10 us RETURN a.ts AS a, b.ts AS b"
EVENTS = pa.table({"ts": [1, 2, 3]})


def test_a_cube_is_no_query() -> None:
    cube = ec.Cube({"pair": PAIR})
    with pytest.raises(OptionError, match=r"EC414.*a Cube is more(.|\n)*cube\.match\(events, lateness"):
        ec.match(EVENTS, cube)


@pytest.mark.parametrize(
    "queries", [None, 5, b"PATTERN a", [], {}, [None], [5], {1: "PATTERN a"}, {"q": 5}, "PATTERN \ud800"]
)
def test_queries(queries: Any) -> None:
    for call in (lambda: ec.Runtime(queries), lambda: ec.match(EVENTS, queries)):
        with pytest.raises(OptionError, match="hint: "):
            call()


@pytest.mark.parametrize(
    "settings",
    [
        {"limit": "3"},
        {"limit": 1.5},
        {"limit": True},
        {"time": 5},
        {"time": None},
        {"type": 5},
        {"time_unit": ["us"]},
        {"strategy": None},
        {"partition_by": 5},
        {"partition_by": [5]},
        {"order_by": b"o"},
        {"concepts": ["A"]},
    ],
    ids=str,
)
def test_settings(settings: dict[str, Any]) -> None:
    for call in (lambda: ec.Runtime(PAIR, **settings), lambda: ec.match(EVENTS, PAIR, **settings)):
        with pytest.raises(OptionError, match="EC414"):
            call()


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: ec.explain(5, EVENTS), "EC414"),  # type: ignore[arg-type]
        (lambda: ec.explain(PAIR, EVENTS, strategy="nope"), "EC404"),
        (lambda: ec.match(EVENTS, PAIR, counters={}), "EC414"),  # type: ignore[arg-type]
        (lambda: ec.explain(PAIR, EVENTS, concepts=["A"]), "EC414"),  # type: ignore[arg-type]
        (lambda: ec.explain(PAIR, EVENTS, time=5), "EC414"),
        (lambda: ec.set_aside(EVENTS, time=5), "EC414"),  # type: ignore[arg-type]
        (lambda: ec.Runtime(PAIR, schema=5), "EC414"),
        (lambda: ec.Runtime(PAIR, concepts={"A": 5}), "EC311"),
    ],
)
def test_other_calls(call: Callable[[], Any], code: str) -> None:
    with pytest.raises(EventCubeError, match=code):
        call()


@pytest.mark.parametrize("lateness", [None, 1.5, "", "soon", [1]])
def test_lateness(lateness: Any) -> None:
    with pytest.raises(OptionError, match="EC403"):
        ec.Runtime(PAIR, lateness=lateness)


def test_lengths_of_time_have_the_units_of_queries() -> None:
    assert microseconds("2 weeks") == 2 * microseconds("7 days")
    assert microseconds("1 hr 30 min") == microseconds("90 minutes")


@pytest.mark.parametrize("events", [None, 5, "a", [1], pd.Series([1]), pl.Series([1])])
def test_push_takes_frames(events: Any) -> None:
    with pytest.raises(EventCubeError, match="EC307"):
        ec.Runtime(PAIR).push(events)


@pytest.mark.parametrize("make", [lambda t: t.to_pandas(), pl.from_arrow, lambda t: t.to_batches()[0]])
def test_push_takes_what_match_takes(make: Callable[[pa.Table], Any]) -> None:
    runtime = ec.Runtime(PAIR)
    assert sum(b.num_rows for b in [*runtime.push(make(EVENTS)), *runtime.finish()]) == 3


@pytest.mark.parametrize(
    "watermark",
    [
        3,
        np.int64(3),
        datetime(1970, 1, 1, 0, 0, 0, 3),
        datetime(1970, 1, 1, 1, 0, 0, 3, timezone(timedelta(hours=1))),
        pd.Timestamp(3000, tz=UTC),
        "1970-01-01T01:00:00.000003+01:00",
    ],
)
def test_watermarks(watermark: Any) -> None:
    runtime = ec.Runtime(PAIR)
    list(runtime.push(pa.table({"ts": [1]})))
    list(runtime.advance(watermark))
    list(runtime.push(pa.table({"ts": [2, 3]})))
    assert runtime.counters["late"] == 1


@pytest.mark.parametrize(
    ("zone", "watermark"),
    [
        ("Europe/Berlin", datetime(2024, 3, 31, 1, 30)),
        ("Europe/Berlin", pd.Timestamp("2024-03-31 01:30")),
        ("Europe/Berlin", datetime(2024, 3, 31, 0, 30, tzinfo=UTC)),
        ("America/New_York", datetime(2024, 3, 30, 20, 30)),
        (None, datetime(2024, 3, 31, 0, 30)),
        ("Europe/Berlin", "2024-03-31 01:30"),
        ("Europe/Berlin", "2024-03-31 00:30Z"),
        (None, " 2024-03-31 00:30"),
    ],
)
def test_a_watermark_without_a_zone_is_in_that_of_the_time(zone: str | None, watermark: datetime | str) -> None:
    runtime = ec.Runtime(PAIR)
    times = pa.array([datetime(2024, 3, 31, 0, minute) for minute in (10, 29, 30)]).cast(pa.timestamp("us", zone))
    list(runtime.push(pa.table({"ts": times.slice(0, 1)})))
    list(runtime.advance(watermark))
    list(runtime.push(pa.table({"ts": times.slice(1)})))
    assert runtime.counters["late"] == 1


def test_a_watermark_without_a_zone_where_that_of_the_time_is_not_known() -> None:
    runtime = ec.Runtime(PAIR, schema=pa.schema([("ts", pa.timestamp("us", "Mars/Base"))]))
    with pytest.raises(OptionError, match=r"EC414.*\n.*Mars/Base, is not known"):
        runtime.advance(datetime(2024, 3, 31))


@pytest.mark.parametrize("watermark", ["3", "soon", None, 3.0, True, pd.NaT])
def test_what_is_no_watermark(watermark: Any) -> None:
    runtime = ec.Runtime(PAIR, schema=EVENTS.schema)
    with pytest.raises(OptionError, match="EC414"):
        runtime.advance(watermark)


def test_a_watermark_beyond_all_times() -> None:
    runtime = ec.Runtime(PAIR)
    list(runtime.push(EVENTS))
    assert sum(b.num_rows for b in runtime.advance(10**30)) == 2


@pytest.mark.parametrize("state", [None, 5, "state", b""])
def test_what_is_no_state(state: Any) -> None:
    with pytest.raises(OptionError, match="EC410"):
        ec.Runtime(PAIR).restore(state)


def test_a_state_of_other_columns_changes_nothing() -> None:
    other = ec.Runtime(PAIR)
    list(other.push(pa.table({"ts": [1], "x": [1]})))
    runtime = ec.Runtime(PAIR, schema=EVENTS.schema)
    with pytest.raises(OptionError, match="EC412"):
        runtime.restore(other.snapshot())
    assert sum(b.num_rows for b in [*runtime.push(EVENTS), *runtime.finish()]) == 3


def test_a_limit_does_not_go_with_groups() -> None:
    for call in (
        lambda: ec.Runtime("PATTERN a AGG COUNT(*)", limit=1),
        lambda: ec.match(EVENTS, "PATTERN a AGG COUNT(*)", limit=1),
    ):
        with pytest.raises(OptionError, match="EC416"):
            call()


def test_rows_set_aside_can_be_taken_away() -> None:
    runtime = ec.Runtime(PAIR)
    assert runtime.take_set_aside().num_rows == 0
    list(runtime.push(pa.table({"ts": [1, None, 5]})))
    list(runtime.push(pa.table({"ts": [3, 6]})))
    assert runtime.take_set_aside().column("ts").to_pylist() == [None, 3]
    assert runtime.take_set_aside().num_rows == runtime.set_aside.num_rows == 0
    assert runtime.counters["set_aside"] == 2


def test_a_stream_without_a_window_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adviser, "MANY", 3)
    runtime = ec.Runtime("PATTERN SEQ(a, b)")
    with pytest.warns(EventCubeWarning, match="has no WITHIN, so it keeps all its events"):
        assert sum(b.num_rows for b in runtime.push(EVENTS)) == 1
    list(runtime.push(pa.table({"ts": [4]})))
    # Who does not want to hear of it at the start does so once they are many.
    quiet = ec.Runtime("PATTERN SEQ(a, b)", advise=False)
    list(quiet.push(EVENTS))
    with pytest.warns(EventCubeWarning, match="has no WITHIN, so all its events are kept for ever: 3 so far"):
        list(quiet.push(pa.table({"ts": [4]})))
    list(quiet.push(pa.table({"ts": [5]})))
    bounded = ec.Runtime(PAIR)
    list(bounded.push(pa.table({"ts": range(9)})))


def test_a_window_of_events_over_ever_new_partitions_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adviser, "MANY", 20)
    monkeypatch.setattr(adviser, "MANY_PARTITIONS", 10)
    runtime = ec.Runtime("PATTERN SEQ(a, b) WITHIN 5 events", partition_by="k")
    for i in range(9):
        # Nine partitions are no more than they can be, however many events they have.
        list(runtime.push(pa.table({"ts": range(9 * i, 9 * i + 9), "k": range(9)})))
    assert runtime.kept > 20
    with pytest.warns(EventCubeWarning, match=r"never closes for a key.*\n.*use a window of time"):
        list(runtime.push(pa.table({"ts": range(100, 110), "k": range(100, 110)})))


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(start, b) WITHIN 9 us",
        "PATTERN SEQ(a, OR(b, e end)) WITHIN 9 us",
        "PATTERN a RETURN a.ts AS start",
        "PATTERN a RETURN a AS end",
    ],
)
def test_a_result_has_one_start_and_one_end(query: str) -> None:
    for call in (lambda: ec.Runtime(query), lambda: ec.match(EVENTS, [query])):
        with pytest.raises(ec.BindError, match="EC217"):
            call()


@pytest.mark.parametrize(
    "query", ["PATTERN SEQ(start, b) WITHIN 9 us RETURN start AS s", "PATTERN SEQ(a, !end, b) WITHIN 9 us AGG COUNT(*)"]
)
def test_start_and_end_are_free_where_the_result_has_none_of_them(query: str) -> None:
    assert ec.match(EVENTS, query).num_rows == 1 + 2 * ("RETURN" in query)


def test_columns_of_the_input_that_results_need() -> None:
    events = EVENTS.append_column("variable", [["x"] * 3])
    assert ec.match(events, PAIR).num_rows == 3
    with pytest.raises(ec.InputError, match="EC315"):
        ec.match(events, [PAIR.partition(" RETURN")[0]])
    with pytest.raises(ec.InputError, match="EC316"):
        ec.match(EVENTS.append_column("set_aside_reason", [["x"] * 3]), PAIR)


@pytest.mark.parametrize("name", ["__eventcube_halo", "__eventcube_slice", "__EventCube_x"])
def test_names_that_are_kept_for_eventcubes_own_columns_are_refused(name: str) -> None:
    events = EVENTS.append_column(name, [[1] * 3])
    for ask in (lambda: ec.match(events, PAIR), lambda: ec.Runtime(PAIR).push(events), lambda: ec.set_aside(events)):
        with pytest.raises(ec.InputError, match=r"EC317.*the events have"):
            ask()
    for query in (f"PATTERN SEQ(a, b) WITHIN 9 us RETURN a.ts AS {name}", f"PATTERN SEQ(A {name}, b) WITHIN 9 us"):
        with pytest.raises(ec.InputError, match=r"EC317.*the result has"):
            ec.match(EVENTS, query)


@pytest.mark.parametrize(
    ("name", "query", "code"),
    [
        (5, ["a"], "EC414"),
        ("q1", [5], "EC414"),
        ("q1", None, "EC414"),
        ("q1", ["A"], "EC417"),
        ("q1", [], "EC417"),
        ("q1", "PATTERN SEQ(x, y)", "EC417"),
    ],
)
def test_wide_with_names_that_are_none(name: Any, query: Any, code: str) -> None:
    matches = ec.match(EVENTS, ["PATTERN SEQ(a, b) WITHIN 9 us"])
    with pytest.raises(OptionError, match=code):
        ec.wide(matches, name, query)


@pytest.mark.parametrize("make", [lambda table: table, pa.Table.to_pandas], ids=["Arrow", "pandas"])
def test_wide_of_a_query_that_is_none(make: Callable[[pa.Table], Any]) -> None:
    queries = {"pairs": "PATTERN SEQ(a, b) WITHIN 9 us", "none": "PATTERN SEQ(a, b, a.ts > b.ts) WITHIN 9 us"}
    with pytest.warns(EventCubeWarning, match="never"):
        matches = ec.match(make(EVENTS), queries)
    assert (len(ec.wide(matches, "pairs", ["a"])), len(ec.wide(matches, "none", ["a"]))) == (3, 0)
    assert len(ec.wide(matches[:0], "pairs", ["a"])) == 0
    for part in (matches, matches[:0]):
        with pytest.raises(OptionError, match=r"EC415.*no query 'pair'\nhint: did you mean 'pairs'"):
            ec.wide(part, "pair", ["a"])


def test_a_name_is_whole_characters() -> None:
    with pytest.raises(OptionError, match="half a character") as caught:
        ec.Runtime({"\ud800": "PATTERN A a WITHIN 1 s"})
    assert caught.value.code == "EC413"


@pytest.mark.parametrize("queries", [{PAIR}, frozenset({PAIR})])
def test_a_set_of_queries_has_no_order(queries: Any) -> None:
    for call in (lambda: ec.match(EVENTS, queries), lambda: ec.Runtime(queries), lambda: ec.Cube(queries)):
        with pytest.raises(OptionError, match=r"EC414.*\n.*the order of a set is not known"):
            call()


def test_mistakes_in_several_queries_are_told_at_once() -> None:
    events = pa.table({"ts": [1], "type": ["A"]})
    pair = "PATTERN SEQ(A a, B b) WITHIN 10 us"
    unread = {"one": "PATTERN SEQ(A a", "right": pair, "two": "PATTERN A a WITHIN soon"}
    unfit = {"one": "PATTERN A a WHERE a.no = 1 AND a.nor = 2", "right": pair, "two": "PATTERN A a WHERE b.x = 1"}
    for queries, kind, codes in (
        (unread, ec.QuerySyntaxError, ["EC104", "EC110"]),
        (unfit, ec.BindError, ["EC203", "EC203", "EC201"]),
    ):
        for call in (
            lambda queries=queries: ec.match(events, queries, type="type"),
            lambda queries=queries: ec.match_all(events, queries, type="type"),
            lambda queries=queries: ec.explain(queries, events, type="type"),
            lambda queries=queries: ec.Runtime(queries, type="type", schema=events.schema),
            lambda queries=queries: ec.Cube(queries, columns=events.schema).graph,
        ):
            with pytest.raises(kind) as caught:
                call()
            found = pickle.loads(pickle.dumps(caught.value))
            assert re.findall(r"error\[(\w+)\]", str(found)) == codes
            assert list(dict.fromkeys(re.findall(r" --> (\w+):", str(found)))) == ["one", "two"]
            assert [error.source for error in found.others] == ["two"]


def test_of_very_many_wrong_queries_a_few_dozen_mistakes_are_shown() -> None:
    with pytest.raises(ec.QuerySyntaxError) as caught:
        ec.Runtime(["PATTERN SEQ(A a"] * 100)
    assert str(caught.value).count("error[EC104]") == 30
    assert str(caught.value).endswith("… and 70 more")
