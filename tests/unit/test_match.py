"""`match` on every kind of frame: the same kind comes back, whatever the order, the times and the keys."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.errors import EventCubeWarning, InputError, OptionError

PAIR = "PATTERN SEQ(A a, B b) WITHIN 10 us RETURN a.ts AS a, b.ts AS b"
TABLE = pa.table({"ts": [3, 1, 2, 2], "type": ["B", "A", "B", "A"], "k": [1, 1, 2, 2]})
FRAMES: dict[str, tuple[Callable[[pa.Table], Any], type]] = {
    "Arrow table": (lambda t: t, pa.Table),
    "record batch": (lambda t: t.combine_chunks().to_batches()[0], pa.Table),
    "pandas": (lambda t: t.to_pandas(), pd.DataFrame),
    "polars": (pl.from_arrow, pl.DataFrame),
    "lazy polars": (lambda t: pl.from_arrow(t).lazy(), pl.LazyFrame),
}


def rows(result: Any) -> list[tuple[Any, ...]]:
    """A result of any kind as sorted tuples, without start and end."""
    if isinstance(result, pl.LazyFrame):
        result = result.collect()
    if isinstance(result, pd.DataFrame):
        result = pa.Table.from_pandas(result, preserve_index=False)
    table = result.to_arrow() if isinstance(result, pl.DataFrame) else result
    return sorted(tuple(r.values())[2:] for r in table.to_pylist())


@pytest.mark.parametrize("kind", FRAMES)
class TestFrames:
    """One answer in as many kinds of frames as there are."""

    def test_the_same_kind_comes_back(self, kind: str) -> None:
        make, expected = FRAMES[kind]
        found = ec.match(make(TABLE), PAIR, type="type")
        assert isinstance(found, expected)
        assert rows(found) == [(1, 2), (1, 3), (2, 3)]

    def test_events_come_back_as_structs(self, kind: str) -> None:
        make, _ = FRAMES[kind]
        found = ec.match(make(TABLE), "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 10 us", type="type")
        assert rows(found) == [({"ts": 1, "type": "A", "k": 1}, {"ts": 3, "type": "B", "k": 1})]

    def test_an_empty_frame_has_an_empty_result(self, kind: str) -> None:
        make, expected = FRAMES[kind]
        empty = TABLE.slice(0, 0)
        if kind == "record batch":
            make = lambda t: pa.RecordBatch.from_pylist([], schema=t.schema)  # noqa: E731
        found = (
            ec.match(make(empty), PAIR, type="type")
            if kind != "pandas"
            else ec.match(make(empty).astype({"type": "string"}), PAIR, type="type")
        )
        assert isinstance(found, expected)
        assert rows(found) == []

    def test_groups(self, kind: str) -> None:
        make, _ = FRAMES[kind]
        found = ec.match(make(TABLE), "PATTERN A a GROUPBY a.k AS k AGG COUNT(*) AS n", type="type")
        table = found.collect() if isinstance(found, pl.LazyFrame) else found
        names = list(table.columns) if not isinstance(table, pa.Table) else table.schema.names
        assert names == ["k", "n"]

    def test_several_queries(self, kind: str) -> None:
        make, expected = FRAMES[kind]
        found = ec.match(make(TABLE), {"one": "PATTERN A a", "two": "PATTERN B b"}, type="type")
        assert isinstance(found, expected)

    def test_rows_set_aside(self, kind: str) -> None:
        make, expected = FRAMES[kind]
        bad = pa.table({"ts": pa.array([1, None, 3], pa.timestamp("us")), "type": ["A", "B", None]})
        found = ec.set_aside(make(bad), type="type")
        assert isinstance(found, expected)
        frame = found.collect() if isinstance(found, pl.LazyFrame) else found
        reasons = (
            frame.column("set_aside_reason").to_pylist()
            if isinstance(frame, pa.Table)
            else list(frame["set_aside_reason"])
        )
        assert sorted(reasons) == ["the time is null", "the type is null"]


def test_anything_that_speaks_arrow_can_be_read() -> None:
    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return TABLE.__arrow_c_stream__(requested_schema)

    assert rows(ec.match(Stream(), PAIR, type="type")) == [(1, 2), (1, 3), (2, 3)]


@pytest.mark.parametrize("events", [[1, 2], {"ts": [1]}, "events.parquet", None])
def test_what_is_no_frame_is_refused(events: Any) -> None:
    with pytest.raises(InputError) as caught:
        ec.match(events, PAIR)
    assert caught.value.code == "EC307"


@pytest.mark.parametrize(
    ("name", "reader"),
    [
        ("events.parquet", "pandas.read_parquet('events.parquet')"),
        (Path("lake/events.csv"), "pandas.read_csv('lake/events.csv')"),
        ("events.jsonl", "pandas.read_json('events.jsonl', lines=True)"),
    ],
)
def test_a_file_is_not_read_and_who_reads_it_is_told(name: Any, reader: str) -> None:
    for call in (lambda: ec.match(name, PAIR), lambda: ec.check(PAIR, name), lambda: ec.Runtime(PAIR).push(name)):
        with pytest.raises(InputError, match="EC307") as caught:
            call()
        assert reader in str(caught.value.hint)


def test_a_query_that_is_the_name_of_a_file() -> None:
    for call in (
        lambda: ec.match(TABLE, Path("q.neel")),  # type: ignore[arg-type]
        lambda: ec.check(Path("q.neel")),  # type: ignore[arg-type]
        lambda: ec.explain(Path("q.neel"), TABLE),  # type: ignore[arg-type]
        lambda: ec.match_all(TABLE, {"one": Path("q.neel")}),  # type: ignore[dict-item]
    ):
        with pytest.raises(ec.OptionError, match="EC414") as caught:
            call()
        assert "Path('q.neel').read_text() is that of a file" in str(caught.value.hint)
    with pytest.raises(ec.QuerySyntaxError, match=r"give the text of the file, not its name: Path\('q.neel'\)"):
        ec.match(TABLE, "q.neel")


class TestIndexOfPandas:
    """The index of a frame is no column, and people keep their times there."""

    FRAME = TABLE.to_pandas().assign(ts=lambda f: pd.to_datetime(f.ts, unit="us"))

    def hint(self, frame: pd.DataFrame, **settings: str) -> str | None:
        with pytest.raises(InputError, match="EC302") as caught:
            ec.match(frame, PAIR, **settings)
        return caught.value.hint

    def test_a_column_in_the_index(self) -> None:
        told = "'ts' is in the index of the frame: give frame.reset_index()"
        assert self.hint(self.FRAME.set_index("ts"), type="type") == told
        assert self.hint(self.FRAME.set_index(["type", "ts"]), type="type") == told
        told = told.replace("'ts'", "'type'")
        assert self.hint(self.FRAME.set_index("type"), type="type") == told

    def test_times_without_a_name(self) -> None:
        frame = self.FRAME.set_index("ts").rename_axis(None)
        assert self.hint(frame) == "the index of the frame holds times: give frame.reset_index(names='ts')"
        assert rows(ec.match(frame.reset_index(names="ts"), PAIR, type="type")) == rows(
            ec.match(self.FRAME, PAIR, type="type")
        )

    def test_other_indexes(self) -> None:
        named = "name the column of the time: time='ts' (--time ts); the input has: k, ts, type"
        assert self.hint(self.FRAME, time="when") == named
        assert self.hint(self.FRAME.set_index("k"), time="when") == named.replace("k, ", "")


def test_a_column_of_mixed_values_is_named() -> None:
    with pytest.raises(InputError, match="Conversion failed for column o") as caught:
        ec.match(pd.DataFrame({"ts": [1, 2], "o": [1, "x"]}), "PATTERN e")
    assert caught.value.code == "EC307"


def test_dictionaries_with_a_value_twice_or_with_a_null() -> None:
    same = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["x", "x"]))
    null = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([None, None], pa.string()))
    table = pa.table({"ts": [1, 2], "type": ["A", "B"], "same": same, "null": null})
    for column, expected in (("same", [(1, 2)]), ("null", [])):
        query = PAIR.replace("B b)", f"B b, a.{column} = b.{column})")
        assert rows(ec.match(table, query, type="type")) == expected
        assert rows(ec.match(table, PAIR, type="type", partition_by=column)) == [(1, 2)], "null is a key like any other"
    assert ec.set_aside(table, type="null").num_rows == 2


def test_unsorted_input_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    # The package's `match` is the function; its module goes by the full name only.
    monkeypatch.setattr(import_module("eventcube.match"), "BATCH_ROWS", 7)
    rng = np.random.default_rng(1)
    table = pa.table({"ts": rng.integers(0, 60, 200), "type": rng.choice(["A", "B", "C"], 200), "id": range(200)})
    query = "PATTERN SEQ(A a, !C c, B b) WITHIN 5 us RETURN a.id AS a, b.id AS b"
    shuffled = table.take(rng.permutation(200))
    at_once = rows(ec.match(table.sort_by("ts"), query, type="type"))
    assert rows(ec.match(shuffled, query, type="type")) == at_once
    assert len(at_once) > 50


@pytest.mark.parametrize(
    ("column", "settings"),
    [
        pytest.param(pa.array([0, 5, 11]), {"time_unit": "s"}, id="whole seconds"),
        pytest.param(pa.array([0, 5000, 11000], pa.int32()), {"time_unit": "ms"}, id="whole milliseconds"),
        pytest.param(pa.array([0, 5_000_000, 11_000_000]), {}, id="whole microseconds"),
        pytest.param(pa.array([0, 5, 11], pa.timestamp("s", "Europe/Paris")), {}, id="timestamps"),
        pytest.param(pa.array(["1970-01-01", "1970-01-01 00:00:05", "1970-01-01T00:00:11.0"]), {}, id="text"),
        pytest.param(
            pa.array(["1970-01-01T00:00:00Z", "1970-01-01T01:00:05+01:00", "1970-01-01 00:00:11Z"]), {}, id="zoned text"
        ),
        pytest.param(
            pa.array(["1970-01-01T00:00:00Z", " 1970-01-01T00:00:05 ", "1970-01-01T00:00:11"]), {}, id="mixed text"
        ),
        pytest.param(
            pa.array(["1970-01-01", "1970-01-01 00:00:05", "1970-01-01T00:00:11"]).dictionary_encode(),
            {},
            id="text in a dictionary",
        ),
    ],
)
def test_times_of_every_kind(column: pa.Array, settings: dict[str, Any]) -> None:
    table = pa.table({"ts": column, "type": ["A", "B", "B"], "id": [0, 1, 2]})
    query = "PATTERN SEQ(A a, B b) WITHIN 10 s RETURN b.id AS b"
    assert rows(ec.match(table, query, type="type", **settings)) == [(1,)]


@pytest.mark.parametrize(
    "layout", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_types_of_every_layout(layout: pa.DataType) -> None:
    table = TABLE.set_column(1, "type", TABLE.column("type").cast(layout))
    assert rows(ec.match(table, PAIR, type="type")) == [(1, 2), (1, 3), (2, 3)]


PAIR_OF_IDS = "PATTERN SEQ(A a, B b) WITHIN 10 us RETURN a.id AS a, b.id AS b"


class TestPartitions:
    """A match lies within one partition; null is a key like any other."""

    def found(self, key: dict[str, Any], by: Any, query: str = PAIR_OF_IDS) -> list[tuple[Any, ...]]:
        types = ["A", "A", "A", "B", "B", "B"]
        table = pa.table({"ts": range(6), "type": types, "id": range(6), **key})
        return rows(ec.match(table, query, type="type", partition_by=by))

    @pytest.mark.parametrize(
        "key",
        [
            pytest.param(pa.array([1, 2, None, 1, 2, None]), id="whole numbers"),
            pytest.param(pa.array(["x", "y", None, "x", "y", None]), id="text"),
            pytest.param(pa.array(["x", "y", None, "x", "y", None]).dictionary_encode(), id="a dictionary"),
            pytest.param(pa.array([0.0, 0.5, None, -0.0, 0.5, float("nan")]), id="numbers: -0.0 = 0.0, NaN is null"),
            pytest.param(pa.array([True, False, None, True, False, None]), id="truth"),
            pytest.param(pa.array([1, 2, None, 1, 2, None], pa.timestamp("s")), id="times"),
            pytest.param(pa.array([-(2**63), 2**63 - 1, None, -(2**63), 2**63 - 1, None]), id="far apart"),
        ],
    )
    def test_one_column(self, key: pa.Array) -> None:
        assert self.found({"k": key}, "k") == [(0, 3), (1, 4), (2, 5)]

    def test_several_columns(self) -> None:
        key = {"k": [1, 1, None, 1, 1, None], "m": ["x", None, "x", "x", None, "y"]}
        assert self.found(key, ["k", "m"]) == [(0, 3), (1, 4)]

    def test_count_windows_count_within_the_partition(self) -> None:
        query = "PATTERN SEQ(A a, B b) WITHIN 2 events RETURN a.id AS a, b.id AS b"
        assert self.found({"k": [1, 2, 3, 3, 2, 1]}, "k", query) == [(0, 5), (1, 4), (2, 3)]
        assert self.found({"k": [1] * 6}, "k", query) == [(2, 3)]


class TestOrder:
    """Ties in time are broken by the order columns; null comes first."""

    def found(self, order: dict[str, Any], by: Any) -> list[tuple[Any, ...]]:
        table = pa.table({"ts": [1, 1, 1], "type": ["A", "A", "B"], "id": range(3), **order})
        return rows(ec.match(table, "PATTERN SEQ(A a, B b) WITHIN 9 us RETURN a.id AS a", type="type", order_by=by))

    @pytest.mark.parametrize(
        ("column", "expected"),
        [
            pytest.param([1, 3, 2], [(0,)], id="whole numbers"),
            pytest.param([1, 2, 2], [(0,)], id="whole numbers with a tie"),
            pytest.param([None, None, 1], [(0,), (1,)], id="nulls"),
            pytest.param([1, None, None], [], id="null comes first"),
            pytest.param([0.5, float("nan"), 0.25], [(1,)], id="numbers: NaN is null"),
            pytest.param(["b", "a", "b"], [(1,)], id="text"),
            pytest.param([None, "é", "e"], [(0,)], id="text with a null"),
            pytest.param([False, True, True], [(0,)], id="truth"),
            pytest.param([datetime(2024, 1, 1), datetime(2024, 1, 3), datetime(2024, 1, 2)], [(0,)], id="times"),
        ],
    )
    def test_one_column(self, column: list[Any], expected: list[tuple[int]]) -> None:
        assert self.found({"o": column}, "o") == expected
        if isinstance(column[0], str) or isinstance(column[1], str):
            assert self.found({"o": pa.array(column).dictionary_encode()}, "o") == expected
            assert self.found({"o": pa.array(column, pa.string_view())}, "o") == expected

    def test_several_columns(self) -> None:
        assert self.found({"o": [1, 1, 1], "p": ["x", "z", "y"]}, ["o", "p"]) == [(0,)]

    def test_without_them_ties_are_ties(self) -> None:
        assert self.found({}, None) == []


class TestWarnings:
    """A query without WITHIN works in batch, with a warning."""

    def test_a_pattern_without_a_window(self) -> None:
        with pytest.warns(EventCubeWarning, match="the query has no WITHIN"):
            assert rows(ec.match(TABLE, "PATTERN SEQ(A a, B b) RETURN a.ts", type="type")) == [(1,), (1,), (2,)]

    def test_one_of_several_is_named(self) -> None:
        with pytest.warns(EventCubeWarning, match="query far has no WITHIN"):
            ec.match(TABLE, {"near": "PATTERN A a", "far": "PATTERN SEQ(A a, B b)"}, type="type")

    def test_a_lone_component_needs_none(self) -> None:
        assert rows(ec.match(TABLE, "PATTERN A a RETURN a.ts", type="type")) == [(1,), (2,)]


def test_dictionaries_with_unsigned_places_and_nulls_are_compared_by_value() -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([0, None, 0], pa.uint32()), pa.array(["x"]))
    events = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "B"], "e": values})
    assert ec.match(events, "PATTERN SEQ(A a, B b, a.e = b.e) WITHIN 9 us", type="type").num_rows == 1


@pytest.mark.parametrize("pattern", ["SEQ(A a, A b)", "SEQ(!B x, A a, A b, !B y)"])
@pytest.mark.parametrize("events", [2**61, 2**62, 2**63 - 1])
def test_a_count_window_may_be_as_long_as_can_be_written(pattern: str, events: int) -> None:
    table = pa.table({"ts": list(range(8)), "type": ["A"] * 8})
    query = f"PATTERN {pattern} WITHIN {events} events"
    with pytest.warns(ec.EventCubeWarning, match="EC501") if "B" in pattern else nullcontext():
        assert ec.match(table, query, type="type").num_rows == 28


def test_queries_may_come_from_a_generator() -> None:
    events = pa.table({"ts": [1, 2], "type": ["A", "B"]})
    queries = (f"PATTERN SEQ(A a, B b) WITHIN {n} us" for n in (1, 2))
    assert ec.match(events, queries, type="type").column("query").to_pylist() == ["q1", "q2"]


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(lambda: pd.DataFrame([[1, 2, 3]], columns=["ts", "x", "x"]), id="two columns of one name"),
        pytest.param(lambda: pd.DataFrame({"ts": [1], "x": pd.arrays.SparseArray([1])}), id="a sparse column"),
        pytest.param(lambda: pd.DataFrame({"ts": [1], "x": ["\ud800"]}), id="half a character"),
        pytest.param(lambda: pl.DataFrame({"ts": [1], "x": pl.Series([1], dtype=pl.Int128)}), id="128 bits"),
    ],
)
def test_frames_that_arrow_cannot_hold(frame: Callable[[], Any]) -> None:
    with pytest.raises(ec.InputError, match="EC307"):
        ec.match(frame(), "PATTERN SEQ(a, b) WITHIN 1 s")


def test_run_end_encoded_columns() -> None:
    events = pa.table({"ts": [1, 2, 3], "x": pa.RunEndEncodedArray.from_arrays([2, 3], [1, 2])})
    query = "PATTERN SEQ(a, b) WHERE a.x = b.x WITHIN 1 s RETURN b.x AS x"
    assert ec.match(events, query).column("x").to_pylist() == [1]
    runtime = ec.Runtime(query)
    found = [*runtime.push(events), *runtime.push(events.set_column(0, "ts", [[4, 5, 6]])), *runtime.finish()]
    assert sum(b.num_rows for b in found) == 7


class TestTimesAsText:
    """A time column of text, as a CSV file with one bad time has, is a time in conditions, too."""

    TIMES = ("2024-01-31 12:00:00", "2024-01-31T12:00:05", "noon", " 2024-01-31 12:00:20 ", None, "2024-01-31")

    def found(self, rest: str) -> list[Any]:
        events = pa.table({"ts": self.TIMES, "i": range(6)})
        query = f"PATTERN SEQ(p, c) {rest}"
        result = ec.match(events, query if "RETURN" in rest else f"{query} RETURN p.i AS p, c.i AS c")
        return sorted(tuple(r.values())[2:] for r in result.to_pylist())

    def test_differences(self) -> None:
        assert self.found("WHERE c.ts - p.ts > 5 seconds WITHIN 1 minute") == [(0, 3), (1, 3)]
        assert self.found("WHERE p.ts + 5 seconds = c.ts WITHIN 1 minute") == [(0, 1)]

    def test_constants(self) -> None:
        assert self.found("WHERE p.ts = '2024-01-31T12:00:00+00:00' WITHIN 1 minute") == [(0, 1), (0, 3)]
        assert self.found("WHERE p.ts < TIMESTAMP '2024-01-31 12:00:00' WITHIN 1 day") == [(5, 0), (5, 1), (5, 3)]

    def test_returned_as_they_are_and_computed_as_times(self) -> None:
        rows = self.found("WITHIN 6 seconds RETURN p.ts AS a, c.ts - p.ts AS d, p.ts + 1 second AS e")
        assert rows == [(self.TIMES[0], timedelta(seconds=5), datetime(2024, 1, 31, 12, 0, 1))]

    def test_many_rows_of_which_a_few_are_wrong(self) -> None:
        times = [f"2024-01-31 12:{i // 60 % 60:02}:{i % 60:02}" for i in range(3000)]
        times[7] = times[2500] = "?"
        events = pa.table({"ts": times})
        assert ec.set_aside(events).column("ts").to_pylist() == ["?", "?"]
        assert ec.match(events, "PATTERN SEQ(a, b) WHERE b.ts - a.ts = 1 second WITHIN 2 seconds").num_rows == 2995


def test_only_a_result_of_several_queries_can_be_made_wide() -> None:
    with pytest.raises(ec.OptionError, match=r"EC447.*not the result of several queries"):
        ec.wide(pa.table({"x": [1]}), "q1", ["a"])


def test_a_query_in_place_of_the_events_and_a_flat_that_is_no_boolean_are_refused() -> None:
    table = pa.table({"ts": pa.array([1], pa.int64()), "kind": ["A"]})
    for call in (lambda: ec.match("PATTERN A a WITHIN 1 s", table), lambda: ec.match_all("PATTERN A a", table)):
        with pytest.raises(OptionError, match=r"EC414.*[\s\S]*ec.match\(events, query\)"):
            call()
    with pytest.raises(OptionError, match="flat cannot be 'no'"):
        ec.match(table, "PATTERN A a WITHIN 1 s", type="kind", flat="no")


class TestUntil:
    """`until`: what a watermark decides, as in a stream."""

    EVENTS = pa.table({"ts": [1, 3, 2, 8, 9, 12], "kind": ["A", "B", "A", "C", "A", "B"]})
    PAIRS = "PATTERN SEQ(A a, B b) WITHIN 5 us RETURN a.ts AS a"
    UNUSED = "PATTERN SEQ(A a, !B b) WITHIN 5 us RETURN a.ts AS a"

    @pytest.mark.parametrize(
        ("query", "until", "found"),
        [
            (PAIRS, None, [1, 2, 9]),
            (PAIRS, 12, [1, 2]),
            (PAIRS, 13, [1, 2, 9]),
            (PAIRS, 3, []),
            (PAIRS, "1970-01-01T00:00:00.000004Z", [1, 2]),
            (UNUSED, None, []),
        ],
    )
    def test_matches(self, query: str, until: int | str | None, found: list[int]) -> None:
        matches = ec.match(self.EVENTS, query, type="kind", until=until)
        assert matches.column("a").to_pylist() == found

    def test_a_negation_at_the_end_waits_for_its_window(self) -> None:
        events = pa.table({"ts": [1, 6, 7, 9], "kind": ["A", "C", "C", "B"]})
        waited = [ec.match(events, self.UNUSED, type="kind", until=until).num_rows for until in (6, 7, None)]
        runtime = ec.Runtime(self.UNUSED, type="kind")
        runtime.hold(events)
        streamed = [sum(b.num_rows for b in runtime.advance(until)) for until in (6, 7)]
        assert waited == [0, 1, 1]
        assert streamed == [0, 1]

    @pytest.mark.parametrize(
        "query", [f"PATTERN SEQ(A a, B b) WITHIN 5 us {end}" for end in ("LIMIT 1", "AGG COUNT(*)")]
    )
    def test_what_is_only_final_at_the_end(self, query: str) -> None:
        with pytest.raises(OptionError, match="EC603"):
            ec.match(self.EVENTS, query, type="kind", until=5)

    def test_a_time_that_cannot_be_read(self) -> None:
        with pytest.raises(OptionError, match="EC414"):
            ec.match(self.EVENTS, self.PAIRS, type="kind", until="soon")
