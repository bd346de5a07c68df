"""Push, advance, finish: what is held back, what comes out when, and what a wrong call is told."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.errors import BindError, InputError, OptionError, QuerySyntaxError
from eventcube.language.parse import parse
from eventcube.options import options
from eventcube.plan.planned import plan_query, plan_together
from eventcube.runtime.runtime import Runtime
from eventcube.runtime.shared_result import wide_form
from eventcube.runtime.workload import Workload

QUERIES = {"pair": "PATTERN SEQ(A a, B b) WITHIN 9 us", "either": "PATTERN OR(A x, C y) WITHIN 9 us"}
PAIR = "PATTERN SEQ(A a, B b) WITHIN 10 us RETURN a.ts AS a, b.ts AS b"


def events(*rows: tuple[int | None, str | None], **more: list[Any]) -> pa.Table:
    return pa.table(
        {"ts": pa.array([r[0] for r in rows], pa.int64()), "type": pa.array([r[1] for r in rows], pa.string()), **more}
    )


def pairs(batches: Any) -> list[tuple[int, int]]:
    return [(r["a"], r["b"]) for b in batches for r in b.to_pylist()]


def test_matches_come_once_nothing_before_them_can_come() -> None:
    runtime = ec.Runtime(PAIR, type="type")
    assert pairs(runtime.push(events((1, "A"), (2, "B")))) == [], "another event could still have time 2"
    assert pairs(runtime.push(events((3, "B")))) == [(1, 2)]
    assert pairs(runtime.advance(3)) == []
    assert pairs(runtime.advance(4)) == [(1, 3)]
    assert pairs(runtime.push(events((4, "B")))) == []
    assert pairs(runtime.finish()) == [(1, 4)]


def test_lateness_holds_events_back_and_sorts_them() -> None:
    runtime = ec.Runtime(PAIR, type="type", lateness="3 us")
    assert pairs(runtime.push(events((5, "B"), (3, "A")))) == []
    assert pairs(runtime.push(events((4, "A"), (8, "B")))) == [], "5 is not before the watermark of 5"
    assert pairs(runtime.push(events((9, "C")))) == [(3, 5), (4, 5)]
    assert pairs(runtime.finish()) == [(3, 8), (4, 8)]
    assert runtime.counters["late"] == 0


def test_events_of_one_time_in_several_pushes_are_ties() -> None:
    runtime = ec.Runtime(PAIR, type="type")
    found = [pairs(runtime.push(events(row))) for row in ((1, "A"), (1, "B"), (2, "A"), (2, "B"), (2, "B"), (3, "C"))]
    assert found == [[], [], [], [], [], [(1, 2), (1, 2)]]


def test_an_order_column_breaks_ties_across_pushes() -> None:
    runtime = ec.Runtime(PAIR, type="type", order_by="o")
    list(runtime.push(events((1, "B"), o=[2])))
    list(runtime.push(events((1, "A"), o=[1])))
    assert pairs(runtime.finish()) == [(1, 1)]


def test_a_trailing_negation_waits_for_its_window() -> None:
    runtime = ec.Runtime("PATTERN SEQ(A a, B b, !C c) WITHIN 5 us RETURN a.ts AS a, b.ts AS b", type="type")
    assert pairs(runtime.push(events((1, "A"), (2, "B"), (6, "X")))) == []
    assert pairs(runtime.advance(6)) == []
    assert pairs(runtime.advance(7)) == [(1, 2)]


def test_late_rows_are_set_aside_and_counted() -> None:
    runtime = ec.Runtime(PAIR, type="type")
    list(runtime.push(events((5, "A"))))
    list(runtime.push(events((4, "A"), (5, "B"), (6, "B"))))
    list(runtime.advance(10))
    list(runtime.push(events((9, "B"), (10, "B"))))
    assert pairs(runtime.finish()) == [(5, 10)]
    assert runtime.set_aside.column("ts").to_pylist() == [4, 9]
    assert set(runtime.set_aside.column("set_aside_reason").to_pylist()) == {"late: older than the watermark"}
    counters = runtime.counters
    assert (counters["events"], counters["set_aside"], counters["late"], counters["matches"]) == (6, 2, 2, 2)


def test_a_late_row_does_not_move_the_watermark_and_a_watermark_never_goes_back() -> None:
    runtime = ec.Runtime(PAIR, type="type")
    list(runtime.push(events((10, "A"))))
    list(runtime.advance(3))
    list(runtime.push(events((9, "B"))))
    assert runtime.counters["late"] == 1


@pytest.mark.parametrize(
    ("column", "unit", "reasons"),
    [
        pytest.param(pa.array([1, None], pa.int64()), "us", {1: "the time is null"}, id="null"),
        pytest.param(
            pa.array(["2024-01-31 12:00", "noon", None, "2024-01-31T12:00:01Z", ""]),
            "us",
            {1: "the time cannot be read", 2: "the time is null", 4: "the time cannot be read"},
            id="text",
        ),
        pytest.param(pa.array([0, 2**62], pa.int64()), "s", {1: "the time cannot be read"}, id="beyond all years"),
        pytest.param(
            pa.array([0, -(2**63), 2**63 - 1]),
            "us",
            {1: "the time cannot be read", 2: "the time cannot be read"},
            id="the extremes of whole numbers",
        ),
        pytest.param(
            pa.array([0, 2**61], pa.int64()).cast(pa.timestamp("s")),
            "us",
            {1: "the time cannot be read"},
            id="timestamp",
        ),
        pytest.param(pa.nulls(2), "us", {0: "the time is null", 1: "the time is null"}, id="nothing but nulls"),
    ],
)
def test_rows_without_a_usable_time_are_set_aside(column: pa.Array, unit: str, reasons: dict[int, str]) -> None:
    runtime = ec.Runtime("PATTERN e", time_unit=unit)
    table = pa.table({"ts": column, "id": range(len(column))})
    with pytest.warns(ec.EventCubeWarning, match="EC502") if len(reasons) == len(column) else nullcontext():
        found = [*runtime.push(table), *runtime.finish()]
    aside = runtime.set_aside
    assert (
        dict(zip(aside.column("id").to_pylist(), aside.column("set_aside_reason").to_pylist(), strict=True)) == reasons
    )
    assert runtime.counters["set_aside"] == len(reasons)
    assert sum(b.num_rows for b in found) == len(column) - len(reasons)
    assert aside.schema.names == ["ts", "id", "set_aside_reason"]


def test_rows_without_a_type_are_set_aside_whatever_the_layout() -> None:
    plain = pa.array(["A", None, "B"])
    for column in (plain, plain.dictionary_encode(), plain.cast(pa.large_string()), pa.nulls(3, pa.null())):
        runtime = ec.Runtime("PATTERN A a", type="type")
        list(runtime.push(pa.table({"ts": [1, 2, 3], "type": column})))
        assert runtime.counters["set_aside"] == column.null_count
        assert set(runtime.set_aside.column("set_aside_reason").to_pylist()) == {"the type is null"}


def test_only_the_first_reason_counts() -> None:
    runtime = ec.Runtime(PAIR, type="type")
    list(runtime.push(events((5, "A"))))
    list(runtime.push(events((None, None), (1, None), (1, "A"))))
    assert runtime.set_aside.column("set_aside_reason").to_pylist() == [
        "the time is null",
        "the type is null",
        "late: older than the watermark",
    ]


def test_nothing_is_set_aside_at_first() -> None:
    assert ec.Runtime(PAIR, type="type").set_aside.num_rows == 0


def test_matches_have_to_be_read_to_the_end_and_none_is_lost() -> None:
    many = pa.table({"ts": range(200)})
    runtime = ec.Runtime("PATTERN SEQ(a, b, c) WITHIN 1 s")
    unread = runtime.push(many)
    found = next(unread).num_rows
    for call in (lambda: runtime.push(many), lambda: runtime.advance(5), runtime.finish, runtime.snapshot):
        with pytest.raises(OptionError) as caught:
            call()
        assert caught.value.code == "EC407"
    found += sum(b.num_rows for b in unread) + sum(b.num_rows for b in runtime.finish())
    assert found == 200 * 199 * 198 // 6


@pytest.mark.parametrize("stage", ["hold", "advance_to_latest", "read"])
def test_nothing_goes_on_after_an_interrupted_call(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    runtime = ec.Runtime(PAIR, type="type")
    list(runtime.push(events((1, "A"))))
    state = runtime.snapshot()
    with monkeypatch.context() as patches:
        patches.setattr(*((Runtime, "shaped") if stage == "read" else (Workload, stage)), interrupt)
        with pytest.raises(KeyboardInterrupt):
            list(runtime.push(events((2, "B"), (3, "B"))))
    for call in (lambda: runtime.push(events((3, "B"))), lambda: runtime.advance(5), runtime.finish, runtime.snapshot):
        with pytest.raises(OptionError, match="interrupted") as caught:
            call()
        assert caught.value.code == "EC407"
    runtime.restore(state)
    assert sum(b.num_rows for b in [*runtime.push(events((2, "B"), (3, "B"))), *runtime.finish()]) == 2


def test_a_call_that_was_not_read_but_had_nothing_to_give_is_done_by_the_next() -> None:
    runtime = ec.Runtime(PAIR, type="type")
    runtime.push(events((1, "A")))
    runtime.push(events((2, "C")))
    runtime.push(events((3, "B")))
    assert pairs(runtime.finish()) == [(1, 3)]


def test_after_the_end_there_is_nothing_more() -> None:
    runtime = ec.Runtime(PAIR, type="type")
    list(runtime.finish())
    for call in (lambda: runtime.push(events((1, "A"))), lambda: runtime.advance(1), runtime.finish, runtime.snapshot):
        with pytest.raises(OptionError) as caught:
            call()
        assert caught.value.code == "EC406"


def test_nothing_pushed_nothing_found() -> None:
    runtime = ec.Runtime(PAIR, type="type")
    # A watermark that would be forgotten is refused.
    for early in (lambda: runtime.advance(5), lambda: runtime.schema):
        with pytest.raises(OptionError) as caught:
            early()
        assert caught.value.code == "EC405"
    assert list(runtime.finish()) == []


def test_record_batches_and_empty_ones_can_be_pushed() -> None:
    runtime = ec.Runtime(PAIR, type="type")
    table = events((1, "A"), (2, "B"))
    list(runtime.push(table.slice(0, 0)))
    for batch in table.to_batches():
        list(runtime.push(batch))
    list(runtime.push(table.slice(0, 0)))
    assert pairs(runtime.finish()) == [(1, 2)]


class TestColumns:
    """All batches have the columns of the first."""

    def test_more_columns_and_another_order_do_no_harm(self) -> None:
        runtime = ec.Runtime(PAIR, type="type")
        list(runtime.push(events((1, "A"))))
        list(runtime.push(pa.table({"type": ["B"], "more": [1], "ts": [2]})))
        assert pairs(runtime.finish()) == [(1, 2)]

    def test_types_are_cast_where_nothing_is_lost(self) -> None:
        runtime = ec.Runtime(PAIR, type="type")
        list(runtime.push(events((1, "A"))))
        small = pa.table({"ts": pa.array([2], pa.int8()), "type": pa.array(["B"]).dictionary_encode()})
        list(runtime.push(small))
        assert pairs(runtime.finish()) == [(1, 2)]

    @pytest.mark.parametrize(
        ("batch", "message"),
        [
            pytest.param(pa.table({"ts": [1]}), "a batch has no column 'type'", id="a column is missing"),
            pytest.param(
                pa.table({"ts": ["x"], "type": ["A"]}),
                "a batch does not fit the columns of the first",
                id="another type",
            ),
        ],
    )
    def test_what_does_not_fit_is_refused_and_changes_nothing(self, batch: pa.Table, message: str) -> None:
        runtime = ec.Runtime(PAIR, type="type")
        list(runtime.push(events((1, "A"))))
        with pytest.raises(InputError, match=message) as caught:
            runtime.push(batch)
        assert caught.value.code == "EC306"
        list(runtime.push(events((2, "B"))))
        assert pairs(runtime.finish()) == [(1, 2)]
        assert runtime.counters["events"] == 2

    def test_a_null_where_the_first_batch_allowed_none(self) -> None:
        schema = pa.schema([pa.field("ts", pa.int64()), pa.field("type", pa.string(), nullable=False)])
        runtime = ec.Runtime(PAIR, type="type", schema=schema)
        list(runtime.push(events((1, "A"))))
        with pytest.raises(InputError) as caught:
            runtime.push(events((2, None)))
        assert caught.value.code == "EC306"

    def test_the_query_is_bound_to_the_first_batch(self) -> None:
        with pytest.raises(BindError):
            ec.Runtime("PATTERN A a WHERE a.x = 1", type="type").push(events((1, "A")))
        with pytest.raises(BindError):
            ec.Runtime("PATTERN A a WHERE a.x = 1", type="type", schema=events().schema)


class TestSeveralQueries:
    """Results of several queries share one table, with the events in a list."""

    def run(self, queries: Any) -> pa.Table:
        runtime = ec.Runtime(queries, type="type")
        batches = [*runtime.push(events((1, "A"), (2, "B"), (3, "C"))), *runtime.finish()]
        return pa.Table.from_batches(batches, runtime.schema)

    def test_long_form(self) -> None:
        table = self.run(QUERIES)
        assert table.schema.names == ["query", "start", "end", "events"]
        rows = [
            (r["query"], r["start"], r["end"], [(e["variable"], e["ts"]) for e in r["events"]])
            for r in table.to_pylist()
        ]
        assert sorted(rows) == [
            ("either", 1, 1, [("x", 1)]),
            ("either", 3, 3, [("y", 3)]),
            ("pair", 1, 2, [("a", 1), ("b", 2)]),
        ]

    def test_wide_form_of_one_of_them(self) -> None:
        wide = wide_form(self.run(QUERIES), "either", ["x", "y"])
        assert wide.schema.names == ["start", "end", "x", "y"]
        shown = [tuple(r[v] and r[v]["ts"] for v in ("x", "y")) for r in wide.to_pylist()]
        assert sorted(shown, key=repr) == [(1, None), (None, 3)]

    def test_mistakes_say_which_query_they_are_in(self) -> None:
        with pytest.raises(QuerySyntaxError, match=" --> late:1:12"):
            ec.Runtime({"good": "PATTERN SEQ(A a) WITHIN 1 s", "late": "PATTERN SEQ(A a,"})

    def test_queries_without_names_are_numbered(self) -> None:
        assert set(self.run(list(QUERIES.values())).column("query").to_pylist()) == {"q1", "q2"}

    def test_one_query_in_a_list_still_has_the_long_form(self) -> None:
        assert self.run([QUERIES["pair"]]).schema.names == ["query", "start", "end", "events"]

    @pytest.mark.parametrize(
        "query", ["PATTERN A a RETURN a.ts", "PATTERN A a AGG COUNT(*)", "PATTERN A a RETURN a, a.ts AS t"]
    )
    def test_values_do_not_fit_a_shared_result(self, query: str) -> None:
        with pytest.raises(OptionError, match="query 'odd' computes values") as caught:
            self.run({**QUERIES, "odd": query})
        assert caught.value.code == "EC408"

    def test_counters_add_up(self) -> None:
        runtime = ec.Runtime(QUERIES, type="type")
        list(runtime.push(events((1, "A"), (2, "B"), (3, "C"), (4, "D"))))
        list(runtime.finish())
        counters = runtime.counters
        # An event that two queries take is stored once.
        assert (counters["events"], counters["relevant"], counters["matches"]) == (4, 3, 3)


class TestOptions:
    """Settings that make no sense are told apart."""

    @pytest.mark.parametrize(
        ("settings", "code"),
        [
            ({"time_unit": "minutes"}, "EC401"),
            ({"limit": 0}, "EC402"),
            ({"lateness": "soon"}, "EC403"),
            ({"lateness": "5 parsecs"}, "EC403"),
            ({"lateness": -1}, "EC403"),
            ({"lateness": timedelta(seconds=-1)}, "EC403"),
        ],
    )
    def test_refused(self, settings: dict[str, Any], code: str) -> None:
        with pytest.raises(OptionError) as caught:
            ec.Runtime(PAIR, **settings)
        assert caught.value.code == code

    def test_an_unknown_strategy_is_refused_when_it_is_needed(self) -> None:
        with pytest.raises(OptionError) as caught:
            ec.Runtime(PAIR, type="type", strategy="magic", schema=events().schema)
        assert caught.value.code == "EC404"

    @pytest.mark.parametrize(
        ("lateness", "expected"),
        [
            (7, 7),
            ("7 us", 7),
            ("1.5 ms", 1500),
            ("1 hour 30 min", 5_400_000_000),
            (timedelta(milliseconds=2), 2000),
            ("2 DAYS", 172_800_000_000),
        ],
    )
    def test_lengths_of_time(self, lateness: Any, expected: int) -> None:
        assert ec.Runtime(PAIR, lateness=lateness).options.lateness == expected

    @pytest.mark.parametrize(
        ("columns", "settings", "code"),
        [
            ([("ts", pa.int64()), ("ts", pa.int64())], {}, "EC301"),
            ([("time", pa.int64())], {}, "EC302"),
            ([("ts", pa.int64())], {"type": "typ"}, "EC302"),
            ([("ts", pa.int64())], {"partition_by": "k"}, "EC302"),
            ([("ts", pa.int64())], {"order_by": ["ts", "o"]}, "EC302"),
            ([("ts", pa.float64())], {}, "EC303"),
            ([("ts", pa.bool_())], {}, "EC303"),
            ([("ts", pa.int64()), ("type", pa.int64())], {"type": "type"}, "EC304"),
            ([("ts", pa.int64()), ("k", pa.list_(pa.int64()))], {"partition_by": "k"}, "EC305"),
            ([("ts", pa.int64()), ("k", pa.list_(pa.int64()))], {"order_by": "k"}, "EC305"),
        ],
    )
    def test_columns_that_cannot_play_their_part(
        self, columns: list[tuple[str, pa.DataType]], settings: dict[str, Any], code: str
    ) -> None:
        with pytest.raises(InputError) as caught:
            ec.Runtime("PATTERN e", schema=pa.schema(columns), **settings)
        assert caught.value.code == code


@pytest.mark.parametrize("query", ["SEQ(A a, B b)", "AND(A a, B b)"])
def test_events_borrowed_from_the_slice_after_end_no_match(query: str) -> None:
    borrowed = events((1, "A"), (2, "B"), (3, "A"), (4, "B"), __eventcube_halo=[0, 0, 1, 1])
    settings = options(type="type")
    schema = settings.schema(borrowed.schema, internal=True)
    parsed = parse(f"PATTERN {query} WITHIN 9 us RETURN a.ts AS a, b.ts AS b")
    workload = Workload(plan_together({"q1": plan_query(parsed, schema, settings)}, None), schema)
    assert pairs([batch for _, batch in [*workload.push(borrowed), *workload.finish()]]) == [(1, 2)]


def test_a_lone_component_without_a_window_keeps_nothing() -> None:
    runtime = ec.Runtime("PATTERN A a", type="type")
    found = [*runtime.push(events((1, "A"), (2, "A"))), *runtime.push(events((3, "A")))]
    assert sum(b.num_rows for b in found) == 2
    assert runtime.kept == 0


def test_a_first_batch_of_nulls_leaves_the_type_of_a_column_open() -> None:
    runtime = ec.Runtime("PATTERN A a WITHIN 1 s", type="type", advise=False)
    list(runtime.push(pa.table({"ts": [1], "type": ["A"], "city": pa.nulls(1)})))
    with pytest.raises(ec.InputError, match="only nulls in 'city'; give Runtime"):
        runtime.push(pa.table({"ts": [2], "type": ["A"], "city": ["Ulm"]}))
