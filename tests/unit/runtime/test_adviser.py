"""Slips that used to give an empty or wrong answer without a word: each is warned of, once, at the user's own line."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.errors import EventCubeWarning

QUERY = "PATTERN SEQ(Login a, Logout b) WITHIN 1 hour"
KINDS = ["Login", "Logout"] * 100
IN_2026 = 1_767_225_600


def table(**columns: Any) -> pa.Table:
    return pa.table({"ts": [i * 1_000_000 for i in range(200)], "kind": KINDS, **columns})


def told(call: Any) -> list[str]:
    """The warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert all(issubclass(w.category, EventCubeWarning) and w.filename == __file__ for w in caught)
    return [str(w.message) for w in caught]


def run(query: Any, *batches: Any, **settings: Any) -> ec.Runtime:
    """Push batches, and finish."""
    runtime = ec.Runtime(query, **settings)
    for batch in batches:
        for _ in runtime.push(batch):
            pass
    for _ in runtime.finish():
        pass
    return runtime


class TestTypes:
    def test_a_type_that_no_event_has(self) -> None:
        query = QUERY.replace("Logout", "Logot")
        for call in (
            lambda: ec.match(table(), query, type="kind"),
            lambda: ec.match(table().to_pandas(), query, type="kind"),
            lambda: ec.match(pl.DataFrame(table()), query, type="kind"),
            lambda: run(query, table().slice(0, 50), table().slice(50), type="kind"),
        ):
            (found,) = told(call)
            assert "[EC501]: unknown event type 'Logot': no event has it" in found
            assert "1 | PATTERN SEQ(Login a, Logot b) WITHIN 1 hour\n    |                      ^^^^^" in found
            assert "hint: did you mean 'Logout'? the input has: Login, Logout" in found

    def test_a_negated_type_too(self) -> None:
        (found,) = told(lambda: ec.match(table(), "PATTERN SEQ(Login a, !Reset r, Logout b) WITHIN 1 s", type="kind"))
        assert "'Reset'" in found

    def test_a_hierarchy_is_considered(self) -> None:
        concepts = {"Session": ["Login", "Logout"], "Empty": ["Never"]}
        assert told(lambda: ec.match(table(), "PATTERN Session a WITHIN 1 s", type="kind", concepts=concepts)) == []
        (found,) = told(lambda: ec.match(table(), "PATTERN Sesion a WITHIN 1 s", type="kind", concepts=concepts))
        assert "did you mean 'Session'? the input and the hierarchy have: Empty, Login, Logout, Never, Session" in found

    def test_a_hierarchy_that_misses_the_types_of_the_events(self) -> None:
        concepts = {"Session": ["Logins", "Exit"], "Empty": [f"t{i}" for i in range(9)]}
        (found,) = told(lambda: ec.match(table(), "PATTERN Session a WITHIN 1 s", type="kind", concepts=concepts))
        assert "[EC501]: no event has type 'Session' or one below it: Exit, Logins" in found
        assert "hint: did you mean 'Login'? the input has: Login, Logout" in found
        (found,) = told(lambda: ec.match(table(), "PATTERN Empty a WITHIN 1 s", type="kind", concepts=concepts))
        assert "or one below it: t0, t1, t2, t3, t4, …" in found
        assert "hint: the input has: Login, Logout" in found
        (found,) = told(lambda: ec.match(table(), "PATTERN t1 a WITHIN 1 s", type="kind", concepts=concepts))
        assert "[EC501]: unknown event type 't1': no event has it" in found

    def test_a_type_of_which_all_rows_are_skipped(self) -> None:
        kinds = ["Login", "Logout", "Login", "Logout", "Login", "Login"]
        times = ["n/a" if kind == "Logout" else f"2026-01-01 00:00:0{i}" for i, kind in enumerate(kinds)]
        events = pa.table({"ts": times, "kind": kinds})
        (found,) = told(lambda: ec.match(events, QUERY, type="kind"))
        assert "[EC502]: all 2 rows of type 'Logout' are skipped: the time cannot be read (as in 'n/a')" in found
        assert "hint: is 'ts' the right column?" in found
        assert "    |                      ^^^^^^" in found
        (found,) = told(lambda: ec.match(events, QUERY, type="kind", concepts={"Logout": ["Exit"]}))
        assert "all 2 rows of type 'Logout' are skipped" in found
        assert [w.code for w in ec.check(QUERY, events, type="kind").warnings] == ["EC502"]

    def test_not_before_all_events_have_come(self) -> None:
        runtime = ec.Runtime(QUERY, type="kind")
        first, last = table().filter(pa.array([k == "Login" for k in KINDS])), table().slice(199)
        assert told(lambda: [*runtime.push(first), *runtime.push(last), *runtime.finish()]) == []

    def test_not_of_an_input_without_events_nor_of_one_without_types(self) -> None:
        assert told(lambda: ec.match(table().slice(0, 0), QUERY, type="kind")) == []
        assert told(lambda: ec.match(table().drop_columns("kind"), QUERY)) == []

    def test_not_after_a_restart_as_what_came_before_is_not_known(self) -> None:
        runtime = ec.Runtime(QUERY, type="kind")
        list(runtime.push(table()))
        again = ec.Runtime(QUERY, type="kind")
        again.restore(runtime.snapshot())
        assert told(lambda: [*again.push(table().slice(199, 1)), *again.finish()]) == []

    def test_each_type_once_for_several_queries(self) -> None:
        queries = [QUERY.replace("Logout", "Logot"), "PATTERN Logot x WITHIN 1 s"]
        assert len(told(lambda: ec.match(table(), queries, type="kind"))) == 1

    def test_counts_tell_them(self) -> None:
        counts = ec.Counts()
        told(lambda: ec.match(table(), QUERY.replace("Logout", "Logot"), type="kind", counters=counts))
        assert counts.missing_types == ("Logot",)
        assert counts["rows"] == 200
        assert "missing types: Logot" in repr(counts)
        assert "missing types\n  Logot" in str(counts)

    def test_a_column_of_types_that_is_not_named(self) -> None:
        (found,) = told(lambda: ec.match(table(), QUERY))
        assert "[EC505]: no type column is named, so every event matches Login" in found
        assert "hint: column 'kind' holds such types: type='kind'" in found
        assert told(lambda: ec.match(table(), "PATTERN SEQ(a, b) WITHIN 1 s")) == []

    def test_a_column_of_types_that_is_not_named_where_queries_name_those_above_them(self) -> None:
        concepts = {"Begin": ["Login"], "End": ["Logout"]}
        query = "PATTERN SEQ(Begin a, End b) WITHIN 1 hour"
        for call in (
            lambda: ec.match(table(), query, concepts=concepts),
            lambda: ec.Cube({"q": query}, concepts=concepts).counts(table()),
        ):
            (found,) = told(call)
            assert "[EC505]: no type column is named, so every event matches Begin" in found
            assert "hint: column 'kind' holds such types: type='kind'" in found


class TestCounts:
    def test_they_tell_what_the_run_has_warned_of_and_do_not_warn_again(self) -> None:
        events = table().set_column(0, "ts", pa.array([1_767_258_000 + i for i in range(200)]))
        counts = ec.Counts()
        (told_then,) = told(lambda: ec.match(events, QUERY, type="kind", counters=counts))
        assert told(lambda: counts["rows"]) == []
        assert [problem.code for problem in counts.warnings] == ["EC503"]
        assert counts.warnings[0].message in told_then
        assert counts.warnings[0].message in repr(counts)

    def test_they_say_why_rows_were_skipped(self) -> None:
        times = pa.array(["noon", None] * 50 + ["2026-01-01 09:00:00"] * 100)
        counts = ec.Counts()
        told(lambda: ec.match(table().set_column(0, "ts", times), QUERY, type="kind", counters=counts))
        assert counts.set_aside_reasons == {"the time is null": 50, "the time cannot be read": 50}
        assert "skipped: " in repr(counts)
        assert "skipped rows\n  the time " in str(counts)
        assert str(ec.Counts()) == "nothing counted"


class TestSkippedRows:
    TEXT = ["31.12.2025 23:00"] * 200

    def test_times_that_cannot_be_read(self) -> None:
        events = table().set_column(0, "ts", pa.array(self.TEXT))
        for call in (
            lambda: ec.match(events, QUERY, type="kind"),
            lambda: ec.match(events.to_pandas(), QUERY, type="kind"),
            lambda: run(QUERY, events, type="kind"),
        ):
            (found,) = told(call)
            assert "[EC502]: all 200 rows are skipped" in found
            assert "reason is: the time cannot be read (200, as in '31.12.2025 23:00')" in found
            assert "hint: is 'ts' the right column? A time is a timestamp, or ISO text" in found

    def test_nearly_all_rows_and_the_most_common_reason(self) -> None:
        times = [*self.TEXT[:150], *[None] * 40, *["2026-01-01 00:00:00"] * 10]
        events = table().set_column(0, "ts", pa.array(times))
        (found,) = told(lambda: ec.match(events, "PATTERN Login a WITHIN 1 s", type="kind"))
        assert "190 of 200 rows are skipped; the most common reason is: the time cannot be read (150, as in" in found

    @pytest.mark.parametrize(
        ("skipped", "rows", "told_of"),
        [
            (20, 200, True),
            (19, 200, False),
            (2, 20, True),
            (1, 20, False),
            (9, 19, False),
            (4, 4, True),
            (170, 200, True),
        ],
    )
    def test_a_tenth_of_the_rows_is_worth_a_word(self, skipped: int, rows: int, told_of: bool) -> None:
        events = table().slice(0, rows).set_column(0, "ts", pa.array([*range(rows - skipped), *[None] * skipped]))
        found = told(lambda: ec.match(events, QUERY, type="kind"))
        assert len(found) == told_of
        assert not told_of or f"[EC502]: {'all' * (skipped == rows) or f'{skipped} of'} {rows} rows are" in found[0]
        assert [w.code for w in ec.check(QUERY, events, type="kind").warnings] == ["EC502"] * told_of

    def test_a_stream_of_which_a_tenth_is_skipped(self) -> None:
        runtime = ec.Runtime(QUERY, type="kind")
        for i in range(9):
            times = [None if j % 8 == 0 else i * 1000 + j for j in range(100)]
            events = pa.table({"ts": pa.array(times, pa.int64()), "kind": KINDS[:100]})
            assert told(lambda events=events: list(runtime.push(events))) == [], "it may yet be a few of many"
        last = pa.table({"ts": list(range(10_000, 10_100)), "kind": KINDS[:100]})
        (found,) = told(lambda: list(runtime.push(last)))
        assert "[EC502]: 117 of 1,000 rows are skipped" in found
        assert told(lambda: [*runtime.push(last.slice(99)), *runtime.finish()]) == []

    def test_a_runtime_tells_as_soon_as_it_is_clear_and_once(self) -> None:
        runtime = ec.Runtime(QUERY, type="kind")
        events = table().set_column(0, "ts", pa.array(self.TEXT))
        assert told(lambda: list(runtime.push(events.slice(0, 99)))) == []
        assert len(told(lambda: list(runtime.push(events.slice(99, 1))))) == 1
        assert told(lambda: [*runtime.push(events), *runtime.finish()]) == []

    def test_rows_without_a_type(self) -> None:
        events = table().set_column(1, "kind", pa.nulls(200, pa.string()))
        (found,) = told(lambda: ec.match(events, QUERY, type="kind"))
        assert "the most common reason is: the type is null (200)\n" in found, "a time is no example of that"

    def test_late_rows(self) -> None:
        runtime = ec.Runtime(QUERY, type="kind")
        list(runtime.push(table().slice(199)))
        (found,) = told(lambda: list(runtime.push(table().slice(0, 150))))
        assert "[EC502]: all 150 rows of a push are skipped (late: older than the watermark)" in found
        assert "allow for lateness, as with lateness='10 minutes'" in found
        assert told(lambda: [*runtime.push(table().slice(0, 150)), *runtime.finish()]) == [], "once"

    def test_late_rows_among_others(self) -> None:
        runtime = ec.Runtime(QUERY, type="kind")
        assert told(lambda: [*runtime.push(table().slice(0, 100)), *runtime.push(table().slice(90))]) == []
        assert told(lambda: [*runtime.push(table().slice(0, 1)), *runtime.finish()]) == [], "one row is no push of many"

    def test_late_rows_of_some_pushes(self) -> None:
        runtime = ec.Runtime(QUERY, type="kind")
        batches = [table().slice(199), *(table().slice(i, 1) for i in range(150))]
        (found,) = told(lambda: [list(runtime.push(batch)) for batch in batches])
        assert "of 100 rows are skipped; the most common reason is: late: older than the watermark" in found

    def test_whole_numbers_too_far_off_to_be_times(self) -> None:
        events = table().set_column(0, "ts", pa.array([IN_2026 * 1_000_000 + i for i in range(200)]))
        (found,) = told(lambda: ec.match(events, QUERY, type="kind", time_unit="s"))
        assert "the time cannot be read" in found
        assert "hint: with time_unit='us' that would be in 2026" in found


class TestTimes:
    @pytest.mark.parametrize(
        ("factor", "unit", "likely"),
        [
            (1, "us", "s"),
            (10**3, "us", "ms"),
            (1, "ms", "s"),
            (10**9, "us", "ns"),
            (10**3, "s", "ms"),
            (10**6, "ms", "us"),
        ],
    )
    def test_whole_numbers_in_another_unit(self, factor: int, unit: str, likely: str) -> None:
        events = table().set_column(0, "ts", pa.array([(IN_2026 + i) * factor for i in range(200)]))
        (found,) = told(lambda: ec.match(events, QUERY, type="kind", time_unit=unit))
        assert "[EC503]: with time_unit=" in found
        assert f"hint: with time_unit={likely!r} they would be in 2026" in found
        assert told(lambda: ec.match(events, QUERY, type="kind", time_unit=likely)) == []

    def test_small_numbers_are_just_numbers(self) -> None:
        assert told(lambda: ec.match(table(), QUERY, type="kind")) == []

    def test_a_runtime_tells_at_once(self) -> None:
        events = table().set_column(0, "ts", pa.array([IN_2026 + i for i in range(200)]))
        runtime = ec.Runtime(QUERY, type="kind")
        assert len(told(lambda: list(runtime.push(events)))) == 1
        assert told(lambda: list(runtime.finish())) == []

    def test_nanoseconds(self) -> None:
        times = [1_767_225_600_000_000_999, 1_767_225_600_000_001_000, 1_767_225_600_000_001_999]
        events = pa.table({"ts": times, "id": [0, 1, 2]})
        found = ec.match(events, "PATTERN SEQ(a, b) WITHIN 5 us RETURN a.id AS a, b.id AS b", time_unit="ns")
        assert [(r["a"], r["b"]) for r in found.to_pylist()] == [(0, 1), (0, 2)], "held to the microsecond"
        assert found["start"].to_pylist() == [1_767_225_600_000_000_000] * 2
        before = pa.table({"ts": [-1_500, -1_000], "id": [0, 1]})
        assert ec.match(before, "PATTERN SEQ(a, b) WITHIN 5 us", time_unit="ns").num_rows == 1, "rounded down"


class TestZones:
    TEXT = pa.table({"ts": ["2026-01-01 09:00:00+02:00", "2026-01-01 09:10:00+02:00"], "kind": ["Login", "Logout"]})

    @pytest.mark.parametrize(
        "query",
        [
            "PATTERN Login a RETURN HOUR(a.ts) AS h",
            "PATTERN Login a WHERE DATE(a.ts + 1 hour) = DATE(a.ts)",
            "PATTERN Login a GROUPBY WEEKDAY(a.ts) AS day AGG COUNT(*)",
        ],
    )
    def test_the_clock_of_text_with_zones(self, query: str) -> None:
        (found,) = told(lambda: ec.match(self.TEXT, query, type="kind"))
        assert "reads the clock in UTC: times in 'ts' are text with a zone" in found
        assert "hint: make 'ts' a column of timestamps in the zone that is meant" in found
        assert [w.code for w in ec.check(query, self.TEXT, type="kind").warnings] == ["EC524"]

    def test_nothing_is_said_of_other_times(self) -> None:
        query = "PATTERN Login a RETURN HOUR(a.ts) AS h"
        plain = self.TEXT.set_column(0, "ts", pa.array(["2026-01-01 09:00:00", "2026-01-01 09:10:00"]))
        zoned = plain.set_column(0, "ts", plain["ts"].cast(pa.timestamp("us")).cast(pa.timestamp("us", "Europe/Oslo")))
        for events in (plain, zoned, table()):
            assert told(lambda events=events: ec.match(events, query, type="kind")) == []
        assert told(lambda: ec.match(self.TEXT, "PATTERN Login a RETURN LENGTH(a.kind) AS n", type="kind")) == []

    def test_each_cause_once(self) -> None:
        query = "PATTERN Login a WHERE a.ts > '2025-01-01' AND HOUR(a.ts) < 9 RETURN DATE(a.ts) AS d"
        assert [found[1:6] for found in told(lambda: ec.match(self.TEXT, query, type="kind"))] == ["EC523", "EC524"]


class TestWindows:
    def test_a_runtime_tells_of_a_missing_window_at_the_start(self) -> None:
        query = "PATTERN SEQ(Login a, Logout b)"
        (found,) = told(lambda: ec.Runtime(query, type="kind", schema=table().schema))
        assert "[EC500]: the query has no WITHIN, so it keeps all its events" in found
        runtime = ec.Runtime(query, type="kind")
        assert len(told(lambda: list(runtime.push(table())))) == 1
        assert told(lambda: list(runtime.finish())) == []

    def test_it_is_told_once(self) -> None:
        assert len(told(lambda: ec.match(table(), "PATTERN SEQ(Login a, Logout b) LIMIT 1", type="kind"))) == 1
        queries = ["PATTERN SEQ(Login a, Logout b) LIMIT 1", "PATTERN Login a"]
        (found,) = told(lambda: ec.match_all(table(), queries, type="kind"))
        assert "query q1 has no WITHIN" in found

    def test_a_match_of_one_event_needs_none(self) -> None:
        assert told(lambda: ec.match(table(), "PATTERN OR(Login a, Logout b)", type="kind")) == []
        assert told(lambda: run("PATTERN OR(Login a, Logout b)", table(), type="kind")) == []


class TestConditions:
    def test_they_are_told_when_the_columns_are_known(self) -> None:
        query = "PATTERN SEQ(Login a, Logout b) WHERE a.ts > b.ts WITHIN 1 s"
        (found,) = told(lambda: ec.match(table(), query, type="kind"))
        assert "[EC511]: `a.ts > b.ts` never holds" in found
        (found,) = told(lambda: ec.Runtime(query, type="kind", schema=table().schema))
        runtime = ec.Runtime(query, type="kind")
        assert len(told(lambda: list(runtime.push(table())))) == 1
        assert told(lambda: list(runtime.finish())) == []

    def test_a_restart_tells_nothing_again(self) -> None:
        query = "PATTERN Login a WHERE a.kind = NULL WITHIN 1 s"
        with pytest.warns(EventCubeWarning, match="EC510"):
            runtime = ec.Runtime(query, type="kind", schema=table().schema)
        state = runtime.snapshot()
        assert told(lambda: runtime.restore(state)) == []

    def test_those_who_do_not_want_to_hear_of_it(self) -> None:
        query = "PATTERN SEQ(Login a, Never b) WHERE a.kind = NULL WITHIN 1 s"
        assert told(lambda: run(query, table(), type="kind", advise=False)) == []


def test_from_is_only_a_label_for_frames_in_this_process() -> None:
    assert told(lambda: ec.match(pd.DataFrame(table().to_pandas()), f"{QUERY} FROM elsewhere", type="kind")) == []
