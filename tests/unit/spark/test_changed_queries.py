"""Streams that go on with other queries: those that stay keep their state, those that come see what is later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.differential.streamed import draw_streamed, measure
from tests.unit.spark.buckets import FakeStream, bucket_task
from tests.unit.spark.test_bucket import events

from eventcube.errors import OptionError
from eventcube.language.parse import parse
from eventcube.options import options

PAIR = "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 100 ms"
UNUSED = "PATTERN SEQ(A a, !(C c, c.k = a.k)) WITHIN 100 ms"
BETWEEN = "PATTERN SEQ(A a, !(C c, c.k = a.k), B b, a.k = b.k) WITHIN 100 ms"


def turned(stream: FakeStream | None, queries: Mapping[str, str], **settings: Any) -> FakeStream:
    """The stream after a restart with these queries, or a new one."""
    parsed = {name: parse(text) for name, text in queries.items()}
    chosen = options(type="type", **{"lateness": "10 ms", **settings})
    task = bucket_task(parsed, events().schema, chosen, single=False)
    if stream is None:
        return FakeStream(task)
    stream.task = task
    return stream


def found(batches: list[pa.RecordBatch]) -> dict[str, int]:
    """How many matches each query has."""
    return dict(Counter(name for batch in batches for name in batch.column("query").to_pylist()))


def times(batches: list[pa.RecordBatch], query: str) -> list[list[int]]:
    """The milliseconds of the events of a query's matches."""
    rows = [row for batch in batches for row in batch.to_pylist() if row["query"] == query]
    return [[event["ts"].microsecond // 1000 for event in row["events"]] for row in rows]


def test_a_query_that_stays_has_the_events_from_before() -> None:
    stream = turned(None, {"pair": PAIR, "unused": UNUSED})
    stream.run(events(("A", 100, 1), ("A", 120, 2)), 0)
    turned(stream, {"between": BETWEEN, "pair": PAIR})
    assert stream.run(events(("B", 130, 1), ("B", 150, 2)), 110) == []
    batches = stream.run(None, 500)
    assert times(batches, "pair") == [[100, 130], [120, 150]]
    assert found(batches) == {"pair": 2}


def test_a_query_that_comes_sees_what_is_later_than_all_that_was_read() -> None:
    stream = turned(None, {"pair": PAIR})
    # The watermark is 10 ms behind the latest time that Spark has read.
    stream.run(events(("A", 100, 1)), 0)
    turned(stream, {"pair": PAIR, "between": BETWEEN})
    stream.run(events(("A", 160, 1), ("A", 161, 2), ("B", 170, 1), ("B", 171, 2)), 150)
    batches = stream.run(None, 500)
    # What is at 160 or before may have been read, and left out, before the query came.
    assert times(batches, "between") == [[161, 171]]
    assert found(batches) == {"pair": 3, "between": 1}


def test_the_largest_lateness_says_how_late_an_event_can_have_been_read() -> None:
    stream = turned(None, {"pair": PAIR}, lateness="50 ms")
    stream.run(events(("A", 100, 1)), 0)
    turned(stream, {"pair": PAIR}, lateness="0 ms")
    stream.run(events(), 100)
    turned(stream, {"pair": PAIR, "between": BETWEEN}, lateness="0 ms")
    stream.run(events(("A", 150, 1), ("A", 151, 2), ("B", 160, 1), ("B", 160, 2)), 100)
    assert times(stream.run(None, 500), "between") == [[151, 160]]


def test_the_same_name_with_another_query_later_is_another_query() -> None:
    stream = turned(None, {"pair": PAIR, "q": UNUSED})
    stream.run(events(("A", 100, 1)), 0)
    turned(stream, {"pair": PAIR})
    stream.run(events(("C", 101, 2)), 95)
    turned(stream, {"pair": PAIR, "q": BETWEEN})
    stream.run(events(("A", 120, 1), ("B", 130, 1)), 98)
    assert found(stream.run(None, 500)) == {"pair": 2, "q": 1}


def test_an_attempt_that_failed_after_a_change_leaves_nothing() -> None:
    stream = turned(None, {"pair": PAIR, "unused": UNUSED})
    stream.run(events(("A", 100, 1)), 0)
    before = {name: dict(state.values) for name, state in stream.committed.states.items()}
    for queries in ({"between": BETWEEN, "pair": PAIR}, {"pair": PAIR}):
        turned(stream, queries)
        stream.run(events(("B", 130, 1)), 110, commit=False)
        assert {name: state.values for name, state in stream.committed.states.items()} == before
    turned(stream, {"pair": PAIR, "unused": UNUSED})
    stream.run(events(("B", 130, 1)), 110)
    assert found(stream.run(None, 500)) == {"pair": 1, "unused": 1}


def test_once_no_earlier_event_is_left_a_query_that_came_shares_the_events() -> None:
    stream = turned(None, {"pair": PAIR})
    stream.run(events(("A", 100, 1)), 0)
    turned(stream, {"pair": PAIR, "between": BETWEEN})
    stream.run(events(("A", 150, 1)), 90)
    workload = stream.workers[0].popitem()[1].bucket.workload
    assert [*workload.added] == ["between"]
    for watermark in (300, 400, 500):
        stream.run(events(("A", watermark, 1)), watermark)
    workload = stream.workers[0].popitem()[1].bucket.workload
    assert not workload.added
    assert {query.since for query in workload.plan.queries.values()} == {None}


@pytest.mark.parametrize(
    ("queries", "settings", "message"),
    [
        ({"pair": BETWEEN}, {}, "query 'pair' was PATTERN .*, and is PATTERN"),
        ({"pair": PAIR}, {"time_unit": "ms"}, "setting 'time_unit' was 'us', and is 'ms'"),
        ({"pair": PAIR}, {"order_by": "k"}, "setting 'order_by' was"),
        ({"pair": PAIR}, {"concepts": {"P": ["A"]}}, "type 'A' is new"),
    ],
)
def test_what_cannot_change(queries: dict[str, str], settings: dict[str, Any], message: str) -> None:
    stream = turned(None, {"pair": PAIR})
    stream.run(events(("A", 100, 1)), 0)
    turned(stream, queries, **settings)
    with pytest.raises(OptionError, match=message) as caught:
        stream.run(events(), 0)
    assert caught.value.code == "EC412"


@pytest.mark.parametrize(
    ("queries", "settings"),
    [
        ({"pair": "PATTERN  SEQ(A a, B b, a.k = b.k)\n  WITHIN 0.1 s"}, {}),
        ({"pair": PAIR}, {"lateness": "1 s"}),
        ({"pair": PAIR}, {"strategy": "passive"}),
        ({"pair": PAIR}, {"sharing": "independent"}),
    ],
)
def test_what_can_change(queries: dict[str, str], settings: dict[str, Any]) -> None:
    stream = turned(None, {"pair": PAIR})
    stream.run(events(("A", 100, 1)), 0)
    turned(stream, queries, **settings)
    stream.run(events(("B", 110, 1)), 0)
    assert found(stream.run(None, 500)) == {"pair": 1}


def test_random_streams_change_fail_and_have_late_rows() -> None:
    seen: Counter[str] = Counter()
    for seed in range(80):
        rows, counted = measure(draw_streamed(Random(seed)), Random(~seed))
        seen.update({"matched": bool(rows), **{name: bool(n) for name, n in counted.items()}})
    for name, least in {"matched": 40, "added": 10, "removed": 5, "failed": 40, "late": 8, "restarted": 30}.items():
        assert seen[name] >= least, (name, seen)
