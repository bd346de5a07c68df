"""PARTITION BY in the text: the option by another name, one for each query."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.errors import BindError, InputError, OptionError

EVENTS = pa.table(
    {
        "ts": range(8),
        "type": ["A", "A", "B", "B", "A", "B", "B", "A"],
        "k": [1, 2, 1, 2, None, None, 3, 3],
        "g": ["x", "y", "y", "x", "x", "x", "y", "y"],
        "tags": [["a"]] * 8,
    }
)
PLAIN = "PATTERN SEQ(A a, B b) WITHIN 2 events RETURN a.ts AS a, b.ts AS b"
BY_K = PLAIN.replace("WITHIN", "PARTITION BY k WITHIN")
BY_G = PLAIN.replace("WITHIN", "PARTITION BY g WITHIN")


def pairs(query: str, **settings: Any) -> list[tuple[int, int]]:
    found = ec.match(EVENTS, query, type="type", **settings)
    return sorted((row["a"], row["b"]) for row in found.to_pylist())


def test_the_text_says_what_the_option_says() -> None:
    assert pairs(BY_K) == pairs(PLAIN, partition_by="k") == [(0, 2), (1, 3), (4, 5)]
    assert pairs(BY_G) == pairs(PLAIN, partition_by="g") == [(0, 3), (1, 2), (4, 5)]
    assert pairs(PLAIN) == [(1, 2), (4, 5)]


def test_both_must_agree_whatever_their_order() -> None:
    both = PLAIN.replace("WITHIN", "PARTITION BY g, k, g WITHIN")
    assert pairs(both) == pairs(both, partition_by=["k", "g"]) == [(4, 5)]
    with pytest.raises(BindError, match="says PARTITION BY g, k, and the option partition_by says k"):
        pairs(both, partition_by="k")


def test_a_column_that_cannot_be_used_is_told_at_its_place() -> None:
    for column, code in (("h", "EC221"), ("tags", "EC222")):
        with pytest.raises(BindError) as caught:
            pairs(BY_K.replace("BY k", f"BY {column}"))
        assert caught.value.code == code
        assert "query:1:36" in str(caught.value)


def test_a_time_as_text_is_refused() -> None:
    texts = EVENTS.set_column(EVENTS.schema.get_field_index("ts"), "ts", EVENTS.column("ts").cast(pa.string()))
    with pytest.raises(BindError, match="two texts can be one time") as caught:
        ec.match(texts, BY_K.replace("BY k", "BY ts"), type="type")
    assert caught.value.code == "EC222"
    with pytest.raises(InputError, match="two texts can be one time") as refused:
        ec.match(texts, PLAIN, type="type", partition_by="ts")
    assert refused.value.code == "EC305"


QUERIES = {
    "by k": "PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 2 events",
    "by g": "PATTERN SEQ(A a, !A x, B b) PARTITION BY g WITHIN 3 events",
    "free": "PATTERN SEQ(A a, B b) WITHIN 2 events",
}


@pytest.mark.parametrize("option", [None, "k"])
def test_each_query_of_a_run_has_its_own(option: str | None) -> None:
    queries = {name: text for name, text in QUERIES.items() if option is None or name != "by g"}
    found = ec.match(EVENTS, queries, type="type", partition_by=option)
    for name, text in queries.items():
        alone = ec.match(EVENTS, text, type="type", partition_by=option)
        own = ec.wide(found, name, ["a", "b"])
        assert sorted(map(str, own.to_pylist())) == sorted(map(str, alone.to_pylist()))
        assert alone.num_rows


def test_a_run_goes_on_in_its_partitions() -> None:
    def runtime(queries: Any = QUERIES) -> ec.Runtime:
        return ec.Runtime(queries, type="type")

    expected = ec.match(EVENTS, QUERIES, type="type")
    running, found = runtime(), []
    for at in range(EVENTS.num_rows):
        found += running.push(EVENTS.slice(at, 1))
        fresh = runtime()
        fresh.restore(running.snapshot())
        running = fresh
    with pytest.raises(OptionError, match="EC412"):
        runtime({**QUERIES, "by k": QUERIES["free"]}).restore(running.snapshot())
    found += running.finish()
    assert sorted(map(str, pa.Table.from_batches(found).to_pylist())) == sorted(map(str, expected.to_pylist()))


def test_an_event_of_any_type_is_every_event() -> None:
    found = ec.match(EVENTS, "PATTERN SEQ(A a, !ANY x, * b) WITHIN 1 s GROUPBY b AGG COUNT(*) AS n", type="type")
    assert sorted(found.to_pylist(), key=str) == [{"b": "A", "n": 1}, {"b": "B", "n": 2}]
    untyped = ec.match(EVENTS, "PATTERN SEQ(ANY a, !ANY x, ANY b) WITHIN 1 s AGG COUNT(*) AS n")
    assert untyped.column("n").to_pylist() == [7]
    kinds = ec.match(EVENTS, "PATTERN SEQ(ANY a, Z z) WITHIN 1 s AGG COUNT(*) AS n", type="type", concepts={"Z": ["B"]})
    assert kinds.column("n").to_pylist() == [16]


def test_an_event_without_a_type_is_not_of_any_type() -> None:
    events = pa.table({"ts": [1, 2, 3], "type": ["A", None, "Q"]})
    counts = ec.Counts()
    found = ec.match(events, "PATTERN ANY a RETURN a.type AS type", type="type", counters=counts)
    assert found.column("type").to_pylist() == ["A", "Q"]
    named = pa.table({"ts": [1, 2], "type": ["ANY", "Q"]})
    assert ec.match(named, "PATTERN `ANY` a", type="type").num_rows == 1
