"""`match_all`: a result for each query, in one pass over the events; and flat tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.errors import EventCubeWarning, OptionError
from eventcube.runtime.ingest import Ingest

TABLE = pa.table({"ts": [1, 2, 3, 4], "type": ["A", "B", "A", "C"], "k": [1, 1, 2, None]})
QUERIES = {
    "pairs": "PATTERN SEQ(A a, B b) WITHIN 9 us",
    "counted": "PATTERN A a GROUPBY a.k AS k AGG COUNT(*) AS n",
    "first": "PATTERN A a RETURN a.ts + 1 AS next, a LIMIT 1",
    "either": "PATTERN OR(B b, C c) WITHIN 9 us",
    "none": "PATTERN C c WHERE c.k = 5",
}
FRAMES: dict[str, tuple[Callable[[pa.Table], Any], type]] = {
    "Arrow": (lambda t: t, pa.Table),
    "pandas": (lambda t: t.to_pandas(), pd.DataFrame),
    "polars": (pl.from_arrow, pl.DataFrame),
    "lazy polars": (lambda t: pl.from_arrow(t).lazy(), pl.LazyFrame),
}


def table(frame: Any) -> pa.Table:
    """A frame of any kind as Arrow."""
    frame = frame.collect() if isinstance(frame, pl.LazyFrame) else frame
    if isinstance(frame, pd.DataFrame):
        return pa.Table.from_pandas(frame, preserve_index=False)
    return frame.to_arrow() if isinstance(frame, pl.DataFrame) else frame


def test_each_query_has_the_result_that_it_has_alone() -> None:
    found = ec.match_all(TABLE, QUERIES, type="type")
    assert list(found) == list(QUERIES)
    for name, query in QUERIES.items():
        assert found[name].equals(ec.match(TABLE, query, type="type")), name
        assert found[name].schema.equals(ec.match(TABLE, query, type="type").schema)


def test_the_events_are_gone_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    take = Ingest.take

    def counted(self: Ingest, events: pa.Table) -> None:
        taken.append(events.num_rows)
        take(self, events)

    monkeypatch.setattr(Ingest, "take", counted)
    ec.match_all(TABLE, QUERIES, type="type")
    assert sum(taken) == TABLE.num_rows


@pytest.mark.parametrize("kind", FRAMES)
def test_every_kind_of_frame(kind: str) -> None:
    make, expected = FRAMES[kind]
    found = ec.match_all(make(TABLE), QUERIES, type="type", flat=True)
    assert all(isinstance(frame, expected) for frame in found.values())
    assert table(found["pairs"]).column_names == [
        *("start", "end", "a_ts", "a_type", "a_k", "b_ts", "b_type", "b_k"),
    ]
    assert table(found["first"]).column_names == ["start", "end", "next", "a_ts", "a_type", "a_k"]
    assert table(found["counted"]).column_names == ["k", "n"]
    assert table(found["either"]).column("b_ts").to_pylist() == [2, None]
    alone = table(ec.match(make(TABLE), QUERIES["either"], type="type", flat=True))
    assert alone.to_pylist() == table(found["either"]).to_pylist()
    assert str(alone.to_pylist()[1]["c_ts"]).startswith("4")


def test_queries_without_names_are_numbered_and_one_is_enough() -> None:
    assert list(ec.match_all(TABLE, ["PATTERN A a", "PATTERN B b"], type="type")) == ["q1", "q2"]
    assert list(ec.match_all(TABLE, "PATTERN A a", type="type")) == ["q1"]


def test_settings_are_those_of_match() -> None:
    counts = ec.Counts()
    found = ec.match_all(
        TABLE, {"any": "PATTERN Thing t"}, type="type", concepts={"Thing": ["A", "B"]}, counters=counts
    )
    assert found["any"].num_rows == counts["matches"] == 3
    assert ec.match_all(TABLE, {"any": "PATTERN A t"}, type="type", limit=1)["any"].num_rows == 1
    with pytest.raises(OptionError, match="EC416"):
        ec.match_all(TABLE, QUERIES, type="type", limit=1)
    with pytest.raises(OptionError, match="EC414"):
        ec.match_all(TABLE, QUERIES, type="type", counters=1)  # type: ignore[arg-type]
    with pytest.warns(EventCubeWarning, match="query far has no WITHIN"):
        ec.match_all(TABLE, {"far": "PATTERN SEQ(A a, B b)"}, type="type")


def test_a_shared_result_has_no_flat_form_and_no_values() -> None:
    with pytest.raises(OptionError, match=r"ec\.match_all") as caught:
        ec.match(TABLE, {"pairs": QUERIES["pairs"]}, type="type", flat=True)
    assert caught.value.code == "EC434"
    with pytest.raises(OptionError, match=r"ec\.match_all") as caught:
        ec.match(TABLE, QUERIES, type="type")
    assert caught.value.code == "EC408"


def test_two_columns_of_one_name_are_told_before_anything_runs() -> None:
    with pytest.raises(OptionError, match=r"a_b\.k and a\.b_k would both be called 'a_b_k'"):
        ec.match(
            TABLE.rename_columns(["ts", "type", "b_k"]).append_column("k", TABLE.column("k")),
            "PATTERN SEQ(A a_b, B a) WITHIN 9 us",
            type="type",
            flat=True,
        )


def test_wide_can_be_flat_too() -> None:
    query = QUERIES["pairs"]
    shared = ec.match(TABLE, {"pairs": query}, type="type")
    assert ec.wide(shared, "pairs", query, flat=True).to_pylist() == (
        ec.match(TABLE, query, type="type", flat=True).to_pylist()
    )


def test_a_runtime_gives_pairs_of_names_and_batches() -> None:
    runtime = ec.Runtime(QUERIES, type="type", separate=True)
    pairs = [*runtime.push(TABLE), *runtime.finish()]
    assert {name for name, _ in pairs} == {"pairs", "counted", "first", "either"}
    for name, batch in pairs:
        assert batch.schema.equals(runtime.schemas[name])
    restored = ec.Runtime(QUERIES, type="type", separate=True)
    halfway = ec.Runtime(QUERIES, type="type", separate=True)
    first = list(halfway.push(TABLE.slice(0, 2)))
    restored.restore(halfway.snapshot())
    again = [*first, *restored.push(TABLE.slice(2)), *restored.finish()]
    assert sorted((n, str(b.to_pylist())) for n, b in again if n == "pairs") == sorted(
        (n, str(b.to_pylist())) for n, b in pairs if n == "pairs"
    )


def collects(*_: object) -> None:
    raise AssertionError("all of it would be collected")


@pytest.mark.parametrize("call", [ec.match, ec.match_all, lambda frame, query: ec.set_aside(frame)])
def test_pandas_on_spark_is_refused_in_one_sentence(call: Any) -> None:
    frame = type("DataFrame", (), {"__module__": "pyspark.pandas.frame", "__arrow_c_stream__": collects})
    for kind in (frame, type("Frame", (frame,), {"__module__": "mine"})):
        with pytest.raises(ec.InputError, match=r"hint: give frame\.to_spark\(\)") as caught:
            call(kind(), "PATTERN a WITHIN 1 s")
        assert caught.value.code == "EC307"
