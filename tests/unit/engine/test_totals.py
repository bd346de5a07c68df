"""Aggregates that are computed without making matches, beside those over the matches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.engine.sinks import totals
from eventcube.errors import EventCubeWarning

COLUMNS = {"ts": pa.int64(), "kind": pa.string(), "k": pa.int64(), "x": pa.int64(), "y": pa.float64()}


def events(*rows: tuple[int, str, int | None, int | None, float | None]) -> pa.Table:
    return pa.table(
        {
            name: pa.array(values, type_)
            for (name, type_), values in zip(COLUMNS.items(), zip(*rows, strict=True), strict=True)
        }
    )


def answer(query: str, table: pa.Table, pushes: Sequence[int] = (), **settings: Any) -> Counter[str]:
    """The rows of the result, with the events pushed in pieces of these sizes."""
    runtime = ec.Runtime(query, type="kind", advise=False, **settings)
    rows: Counter[str] = Counter()
    at = 0
    for size in (*pushes, table.num_rows):
        for batch in runtime.push(table.slice(at, size)):
            rows.update(map(str, batch.to_pylist()))
        at += size
    for batch in runtime.finish():
        rows.update(map(str, batch.to_pylist()))
    return rows


# Each was wrong once.
CASES = {
    "an argument with the key of another component": (
        "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 9 us AGG COUNT(ABS(a.k * b.y)) AS n",
        events((1, "A", 1, 1, 1.0), (2, "B", 1, 2, None), (3, "B", 1, 3, 2.0)),
        (),
    ),
    "an argument of an event that ends some matches, and is inside others": (
        "PATTERN AND(A a, C c) WITHIN 9 us AGG COUNT(c.x) AS n, MAX(a.x) AS m, SUM(a.x) AS s",
        events((1, "A", 1, 7, None), (2, "C", 1, 3, None), (3, "A", 1, 5, None), (3, "C", 1, None, None)),
        (1, 1),
    ),
    "an argument that has a value without its event, by a group in an alternative": (
        "PATTERN OR(SEQ(C c, B b), A a) GROUPBY c AS g AGG MIN(COALESCE(b.x, 5)) AS m",
        events((1, "A", 1, 1, 1.0)),
        (),
    ),
    "an argument with a value though its event is not there": (
        "PATTERN OR(B a, B b) WITHIN 9 us AGG COUNT(COALESCE(a.x, 5)) AS n",
        events((1, "B", 1, 2, None)),
        (),
    ),
    "an alternative of one event, which is done, beside one of two": (
        "PATTERN OR(A a, SEQ(A b, D d)) WITHIN 9 us AGG AVG(b.k) AS m",
        events((1, "A", 4, 0, None), (3, "D", 1, 0, None)),
        (1,),
    ),
    "a negated part at the edge of a SEQ inside an alternative": (
        "PATTERN OR(SEQ(C c, SEQ(B b, !B n)), B d) WITHIN 9 us AGG SUM(d.x) AS s",
        events((1, "B", 1, -2, None), (2, "C", 1, 1, None), (3, "B", 1, 4, None), (4, "B", 1, 8, None)),
        (2, 1),
    ),
    "a window of events that ends between events at one time": (
        "PATTERN SEQ(B b, !D n) WITHIN 2 events AGG MAX(b.y) AS m, COUNT(*) AS n",
        events((1, "B", 1, 2, 0.5), (1, "B", 2, 0, None), (2, "C", 1, 0, 1.0)),
        (1, 1, 1),
    ),
    "a window of events that begins between events at one time": (
        "PATTERN SEQ(A a, B b, C c) WITHIN 4 events AGG COUNT(*) AS n, SUM(a.x) AS s, MIN(b.x) AS m",
        events(
            (1, "A", 1, 1, None), (1, "A", 1, 2, None), (1, "A", 1, 4, None),
            (2, "B", 1, 5, None), (2, "C", 1, 0, None), (3, "C", 1, 0, None),
        ),
        (),
    ),
    "no value in a part of the input": (
        "PATTERN SEQ(A a, B b) WITHIN 9 us GROUPBY b.k AGG AVG(a.x) AS m, SUM(a.y) AS s, MIN(a.x) AS l",
        events((1, "A", 1, None, None), (2, "B", 1, 0, None), (20, "A", 1, 3, 1.5), (21, "B", 1, 0, None)),
        (2, 1),
    ),
    "how long it took": (
        "PATTERN SEQ(A a, B b, C c) WITHIN 1 s AGG COUNT(*) AS n, AVG(c.ts - a.ts) AS m, SUM(b.ts - a.ts) AS s",
        events(
            (1, "A", 1, 0, None), (5, "B", 1, 0, None), (6, "A", 1, 0, None), (7, "B", 1, 0, None), (9, "C", 1, 0, None)
        ),
        (),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_aggregates_are_those_over_the_matches(case: str) -> None:
    query, table, pushes = CASES[case]
    made = answer(query, table, aggregates="enumerate")
    assert made
    for cut in ((), pushes, (1,) * table.num_rows):
        assert answer(query, table, cut) == made


def test_many_groups_in_the_middle_are_taken_from_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    table = events(*((i, "ABC"[i % 3], i % 4, i, None) for i in range(60)))
    query = "PATTERN SEQ(A a, B b, C c) WITHIN 30 us GROUPBY b.k AGG COUNT(*) AS n, SUM(a.x) AS s"
    counters: list[dict[str, int]] = []
    rows = []
    for most in (3, 4):
        monkeypatch.setattr(totals, "MOST_COMBINATIONS", most)
        runtime = ec.Runtime(query, type="kind")
        rows.append(Counter(str(row) for b in (*runtime.push(table), *runtime.finish()) for row in b.to_pylist()))
        counters.append(runtime.counters)
    assert rows[0] == rows[1]
    assert counters[0]["events_counted"] == 0 < counters[0]["made"]
    assert counters[1]["made"] == 0 < counters[1]["events_counted"]
    assert counters[0]["matches"] == counters[1]["matches"]


def test_the_work_does_not_depend_on_the_window() -> None:
    table = events(*((i, "ABC"[i % 3], 0, i, None) for i in range(3000)))
    work = set()
    for window in (10, 100, 1000, 10_000):
        runtime = ec.Runtime(
            f"PATTERN SEQ(A a, B b, C c) WITHIN {window} us AGG COUNT(*)", type="kind", aggregates="count"
        )
        for _ in (*runtime.push(table), *runtime.finish()):
            pass
        assert runtime.counters["made"] == 0
        # The last push walks over its window again.
        work.add(runtime.counters["events_counted"] - min(window, 3000))
    assert max(work) - min(work) <= 10


def test_more_matches_than_64_bits_hold() -> None:
    table = events(*((i, "ABCDEF"[i % 6], 0, 7, None) for i in range(30_000)))
    pattern = "PATTERN SEQ(A a, B b, C c, D d, E e, F f) WITHIN 1 hour"
    with pytest.warns(EventCubeWarning, match="n does not fit 64 bits"):
        (row,) = ec.match(table, f"{pattern} AGG COUNT(*) AS n, AVG(b.x) AS m, MAX(c.ts) AS l", type="kind").to_pylist()
    assert row["n"] is None
    assert row["m"] == pytest.approx(7)
    cube = ec.Cube({"many": pattern, "few": "PATTERN SEQ(A a, B b) WITHIN 1 hour"}, type="kind")
    with pytest.warns(EventCubeWarning):
        counts = {row["query"]: row["matches"] for row in cube.counts(table).to_pylist()}
    assert counts == {"many": None, "few": 5000 * 5001 // 2}


def test_queries_that_begin_alike_share_their_counts() -> None:
    table = events(*((i, "ABCD"[i % 4], 0, i, None) for i in range(400)))
    queries = {
        "c": "PATTERN SEQ(A a, B b, C c) WITHIN 40 us AGG COUNT(*) AS n",
        "d": "PATTERN SEQ(A a, B b, D d) WITHIN 40 us GROUPBY d.x AGG COUNT(*) AS n",
    }
    work, found = {}, {}
    for sharing in ("auto", "independent"):
        counters = ec.Counts()
        results = ec.match_all(table, queries, type="kind", sharing=sharing, counters=counters)
        found[sharing] = {name: result.to_pylist() for name, result in results.items()}
        work[sharing] = counters["events_counted"]
    assert found["auto"] == found["independent"]
    # Once the events of four types, and twice those of three; the end of the input walks over a window again.
    assert 400 <= work["auto"] < 450
    assert 600 <= work["independent"] < 650
