"""A state that does not fit is refused with what differs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.unit.runtime.test_snapshot import PLANS, make
from tests.unit.runtime.test_state_v1 import kept

import eventcube as ec
from eventcube.runtime import state_v1
from eventcube.runtime.state_difference import other_queries

QUERIES = {"one": "PATTERN SEQ(A a, B b) WITHIN 5 us", "two": "PATTERN C c"}
LONG = f"PATTERN SEQ({', '.join(f'A a{i}' for i in range(99))})"


def told(saved: Any, queries: Any, **settings: Any) -> str:
    """What is told of a state of `QUERIES` that a runtime of these queries and settings refuses."""
    with pytest.raises(ec.OptionError) as caught:
        ec.Runtime(queries, advise=False, **settings).restore(saved)
    assert caught.value.code == "EC412"
    return caught.value.message.removeprefix("the state is of ")


@pytest.mark.parametrize(
    ("queries", "settings", "differs"),
    [
        ({"one": QUERIES["one"]}, {}, "query 'two' is missing here"),
        ({**QUERIES, "three": "PATTERN C c"}, {}, "query 'three' is new"),
        (
            {**QUERIES, "two": "PATTERN D d"},
            {},
            "query 'two' was PATTERN C c, and is PATTERN D d",
        ),
        (dict(reversed(QUERIES.items())), {}, "the order is another: query 'one' was where 'two' is"),
        (QUERIES, {"lateness": 7}, "setting 'lateness' was 0, and is 7"),
        (QUERIES, {"type": "kind"}, "setting 'type' was 'type', and is 'kind'"),
        (QUERIES, {"order_by": ["n", "m"]}, "setting 'order_by' was none, and is n, m"),
        (QUERIES, {"partition_by": "k"}, "setting 'partition_by' was none, and is k"),
        (QUERIES, {"concepts": {"P": ["A"]}}, "type 'A' is new"),
        (
            {"one": QUERIES["one"], "q": "PATTERN C c"},
            {"limit": 5},
            "query 'two' is missing here; query 'q' is new; setting 'limit' was none, and is 5",
        ),
    ],
)
def test_other_queries_and_settings(queries: Any, settings: dict[str, Any], differs: str) -> None:
    saved = ec.Runtime(QUERIES, type="type").snapshot()
    assert told(saved, queries, **{"type": "type", **settings}) == f"other queries or settings: {differs}"


def test_other_columns() -> None:
    runtime = ec.Runtime(
        QUERIES, type="type", schema=pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.int8()})
    )
    columns = pa.schema({"type": pa.string(), "ts": pa.timestamp("us"), "y": pa.int8()})
    assert told(runtime.snapshot(), QUERIES, type="type", schema=columns) == (
        "events with other columns: column 'ts' was int64, and is timestamp[us]; column 'x' is missing here; "
        "column 'y' is new"
    )


@pytest.mark.parametrize(
    ("columns", "differs"),
    [
        (
            {"ts": pa.int64(), "x": pa.int8(), "type": pa.string()},
            "the order is another: column 'type' was where 'x' is",
        ),
        (
            [pa.field("ts", pa.int64(), nullable=False), ("type", pa.string()), ("x", pa.int8())],
            "column 'ts' was int64, and is int64 not null",
        ),
    ],
)
def test_columns_that_differ_in_their_order_or_in_nulls(columns: Any, differs: str) -> None:
    before = pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.int8()})
    saved = ec.Runtime(QUERIES, type="type", schema=before).snapshot()
    assert told(saved, QUERIES, type="type", schema=pa.schema(columns)) == f"events with other columns: {differs}"


def test_of_long_queries_and_many_differences_a_few_words_are_shown() -> None:
    saved = ec.Runtime([LONG] * 9, advise=False).snapshot()
    message = told(saved, [LONG.replace("A a95", "B b")] * 9)
    assert message.endswith("; and 4 more")
    assert message.count("…") == 10
    assert len(message) < 1500


def test_states_of_version_1_tell_it_too() -> None:
    saved = kept("forward")
    query = PLANS["forward"][0]
    assert told(saved, query, type="type") == "other queries or settings: setting 'lateness' was 3, and is 0"
    assert other_queries(state_v1.read(saved)[0]["fingerprint"], make("forward").fingerprint) == ""
    make("forward").restore(saved)


@pytest.mark.parametrize(
    "saved", [None, 5, "", "(", "5", "(1, Options(), 3)", "([1], Options(), [[]])", "(" * 5000, "\0"]
)
def test_a_forged_state_tells_nothing(saved: Any) -> None:
    assert other_queries(saved, make("forward").fingerprint) == ""
