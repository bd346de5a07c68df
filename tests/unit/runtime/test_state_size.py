"""What changed in a state is small if little changed: its bytes are the same in every run, and have bounds here."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.bench.trades import SCHEMA, SYMBOLS, trades
from eventcube.bench.workload import related_queries

BEFORE, PUSHES, EVENTS = 2000, 100, 10
TRADES = trades(BEFORE + PUSHES * EVENTS)


def counting(queries: int, window_ms: int = 20) -> ec.Runtime:
    texts = {q.name: q.counting for q in related_queries(queries, window_ms=window_ms)}
    return ec.Runtime(texts, schema=SCHEMA, separate=True, time="ts", type="symbol", advise=False)


def returning(queries: int) -> ec.Runtime:
    texts = {q.name: q.text for q in related_queries(queries)}
    return ec.Runtime(texts, schema=SCHEMA, separate=True, time="ts", type="symbol", advise=False)


def change(runtime: ec.Runtime, events: pa.Table) -> bytes:
    """What changes by a push."""
    version = runtime.version
    list(runtime.push(events))
    return runtime.snapshot(since=version)


def pushed(runtime: ec.Runtime) -> list[bytes]:
    """What changes by each of many small pushes."""
    list(runtime.push(TRADES.slice(0, BEFORE)))
    return [change(runtime, TRADES.slice(at, EVENTS)) for at in range(BEFORE, TRADES.num_rows, EVENTS)]


@pytest.mark.parametrize("queries", [1, 50])
def test_a_change_without_events_is_a_few_numbers(queries: int) -> None:
    runtime = counting(queries)
    list(runtime.push(TRADES.slice(0, BEFORE)))
    assert len(runtime.snapshot(since=runtime.version)) < 300
    assert len(change(runtime, TRADES.slice(0, 0))) < 300


def test_queries_that_saw_nothing_are_not_written() -> None:
    few, many = counting(1), counting(50)
    (first, *_) = related_queries(1)
    other = next(s for s in SYMBOLS if s not in first.symbols)
    events = TRADES.set_column(0, "symbol", pa.array([other] * TRADES.num_rows))
    for runtime in (few, many):
        list(runtime.push(events.slice(0, BEFORE)))
    # No query ends with events of one symbol only, so these are all that is new.
    assert len(change(few, events.slice(BEFORE, EVENTS))) < 300
    assert len(change(many, events.slice(BEFORE, EVENTS))) < 600


@pytest.mark.parametrize(("queries", "times"), [(1, 1.25), (10, 1.75), (50, 2.25)])
def test_changes_add_up_to_what_came(queries: int, times: float) -> None:
    columns = TRADES.slice(BEFORE).nbytes
    for runtime in (counting(queries), returning(queries)):
        assert sum(map(len, pushed(runtime))) < times * columns


def test_one_change_is_shorter_than_many() -> None:
    runtime = counting(50, window_ms=2000)
    list(runtime.push(TRADES.slice(0, BEFORE)))
    whole, version = len(runtime.snapshot()), runtime.version
    changes = sum(len(change(runtime, TRADES.slice(at, EVENTS))) for at in range(BEFORE, TRADES.num_rows, EVENTS))
    assert len(runtime.snapshot(since=version)) < min(whole, changes / 20)


KEYED = pa.table({"ts": range(3000), "k": range(3000), "type": ["A", "B"] * 1500})


@pytest.mark.parametrize(
    ("query", "settings"),
    [
        ("PATTERN A a GROUPBY a.k AGG COUNT(*)", {}),
        ("PATTERN A a AGG COUNT(DISTINCT a.k)", {}),
        ("PATTERN SEQ(A a, B b) WITHIN 3 events", {"partition_by": "k"}),
        ("PATTERN SEQ(A a, !C c) WITHIN 5 us LIMIT 2000", {}),
    ],
    ids=["groups", "distinct values", "partitions", "LIMIT"],
)
@pytest.mark.parametrize("again", [False, True], ids=["", "restored"])
def test_what_was_saved_is_not_written_again(query: str, settings: dict[str, str], again: bool) -> None:
    first, second = (ec.Runtime(query, type="type", advise=False, **settings) for _ in range(2))
    list(first.push(KEYED.slice(0, 2000)))
    state = first.snapshot()
    assert len(state) > 1900
    second.restore(state)
    runtime = second if again else first
    changes = [change(runtime, KEYED.slice(at, 2)) for at in range(2000, 2010, 2)]
    assert max(map(len, changes)) < 800
    expected = results(first, 2010 if not again else 2000)
    third = ec.Runtime(query, type="type", advise=False, **settings)
    third.restore(state, *changes)
    assert results(third, 2010) == expected


def results(runtime: ec.Runtime, at: int) -> Sequence[str]:
    """The rest of the results."""
    return sorted(str(row) for b in [*runtime.push(KEYED.slice(at)), *runtime.finish()] for row in b.to_pylist())
