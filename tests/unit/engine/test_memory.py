"""Memory does not grow with the number of matches, and work is counted alike every time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import eventcube as ec
from eventcube.engine.execute import CHUNK
from eventcube.engine.sinks.matches import OUTPUT_ROWS

MEGABYTE = 1 << 20


def test_more_than_a_billion_matches_are_counted() -> None:
    size = 1000
    events = pa.table({"ts": np.arange(size), "type": ["A", "B"] * (size // 2)})
    runtime = ec.Runtime("PATTERN SEQ(A a, B b, B c, A d) WITHIN 1 s AGG COUNT(*) AS n", type="type")
    before = pa.total_allocated_bytes()
    batches = [*runtime.push(events), *runtime.finish()]
    # For a at place i of half the places and d at j: the pairs of B between them.
    half = size // 2
    expected = sum((j - i) * (j - i - 1) // 2 for i in range(half) for j in range(i + 1, half))
    assert batches[0].to_pylist() == [{"n": expected}]
    assert expected > 10**9
    assert runtime.counters["matches"] == expected
    assert pa.total_allocated_bytes() - before < MEGABYTE


def test_five_million_matches_are_streamed_in_bounded_memory() -> None:
    size, wanted = 4000, 5_000_000
    events = pa.table({"ts": np.arange(size), "type": ["A", "B"] * (size // 2)})
    runtime = ec.Runtime("PATTERN SEQ(A a, B b, A c) WITHIN 1 s RETURN a.ts AS a, b.ts AS b, c.ts AS c", type="type")
    before = pa.total_allocated_bytes()
    found = most_rows = most_bytes = 0
    for batch in runtime.push(events):
        found += batch.num_rows
        most_rows = max(most_rows, batch.num_rows)
        most_bytes = max(most_bytes, pa.total_allocated_bytes() - before)
        del batch
        if found >= wanted:
            break
    assert found >= wanted
    assert most_rows <= CHUNK + OUTPUT_ROWS
    assert most_bytes < 32 * MEGABYTE


def test_the_same_run_counts_the_same() -> None:
    rng = np.random.default_rng(3)
    events = pa.table(
        {
            "ts": np.cumsum(rng.integers(0, 3, 3000)),
            "type": rng.choice(["A", "B", "C"], 3000),
            "x": rng.integers(0, 9, 3000),
        }
    )
    query = "PATTERN SEQ(A a, SEQ(B b, C c, b.x = a.x), !(B n, n.x > c.x), A d) WITHIN 30 us AGG COUNT(*)"

    def counters(size: int) -> dict[str, int]:
        runtime = ec.Runtime(query, type="type", strategy="iterative")
        for start in range(0, 3000, size):
            list(runtime.push(events.slice(start, size)))
        list(runtime.finish())
        return runtime.counters

    whole = counters(3000)
    assert counters(3000) == whole
    assert whole["matches"] > 0
    # However the input is cut, no match is made twice.
    pieces = counters(100)
    same = ("events", "relevant", "matches", "inner_computed")
    assert {n: pieces[n] for n in same} == {n: whole[n] for n in same}
