"""The choice between counting matches by stages and making them: which way is taken, and that results are the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.optimizer import aggregates

FEW = "PATTERN SEQ(A a, B b, C c) WHERE a.k = b.k = c.k WITHIN 2 ms"
MANY = "PATTERN SEQ(A a, B b, C c) WITHIN 2 ms"
# All kinds of aggregates, with groups and without.
ENDS = (
    "AGG COUNT(*) AS n",
    "AGG COUNT(*) AS n, SUM(b.x) AS s, MIN(a.x) AS l, MAX(c.y) AS m, AVG(b.y) AS d, COUNT(DISTINCT c.x) AS e",
    "GROUPBY c.x AS g AGG COUNT(*) AS n, SUM(a.y) AS s, AVG(c.ts - a.ts) AS d",
    "GROUPBY b.x % 3 AS g AGG COUNT(*) AS n, SUM(a.x) AS s",
    "AGG COUNT(*) AS n, SUM(b.x) AS s PER c",
)


def spread(size: int = 30_000, keys: int = 500) -> pa.Table:
    """Events of eight types, one a microsecond."""
    rng = Random(1)
    return pa.table(
        {
            "ts": pa.array(range(size), pa.timestamp("us")),
            "kind": rng.choices("ABCDEFGH", k=size),
            "k": rng.choices(range(keys), k=size),
            "x": rng.choices(range(20), k=size),
            "y": pa.array([float(x) for x in rng.choices(range(100), k=size)]),
        }
    )


def crowd(events: int = 4_000, alone: int = 30_000) -> pa.Table:
    """Many C, each with one A and one B shortly before it, and one in the middle that has very many of them."""
    kinds, ts = ["A", "B", "C"] * alone, [2_000 * (i // 3) + i % 3 for i in range(3 * alone)]
    middle, half = 3 * (alone // 2) + 3, 2_000 * (alone // 2) + 500
    kinds[middle:middle] = ["A", "B"] * events + ["C"]
    ts[middle:middle] = [half + i * 500 // events for i in range(2 * events + 1)]
    numbers = [i % 7 for i in range(len(kinds))]
    times = pa.array(sorted(ts), pa.timestamp("us"))
    return pa.table({"ts": times, "kind": kinds, "x": numbers, "y": [float(n) for n in numbers]})


@dataclass(frozen=True)
class Run:
    """What a runtime has found, its counters, and what it tells of its choices."""

    found: Counter[tuple[str, str]]
    counters: Mapping[str, int]
    choices: tuple[str, ...]

    @property
    def way(self) -> tuple[bool, bool]:
        """Whether matches were made, and whether events were counted."""
        return self.counters["made"] > 0, self.counters["events_counted"] > 0


def run(queries: str | Mapping[str, str], table: pa.Table, sizes: Sequence[int] = (), **settings: Any) -> Run:
    """A run over all events, pushed in pieces of these sizes."""
    named = {"q": queries} if isinstance(queries, str) else queries
    runtime = ec.Runtime(named, type="kind", advise=False, separate=True, **settings)
    at, found = 0, Counter[tuple[str, str]]()
    for size in (*sizes, table.num_rows):
        for name, batch in runtime.push(table.slice(at, size)):
            found.update((name, str(row)) for row in batch.to_pylist())
        at += size
    for name, batch in runtime.finish():
        found.update((name, str(row)) for row in batch.to_pylist())
    return Run(found, runtime.counters, tuple(line.removeprefix("q: ") for line in runtime.choices()))


@pytest.mark.parametrize("end", ENDS)
def test_few_matches_are_made_and_many_are_counted(end: str) -> None:
    table = spread()
    few, many = run(f"{FEW} {end}", table), run(f"{MANY} {end}", table)
    assert (few.way, many.way) == ((True, False), (False, True))
    for query, found in ((FEW, few), (MANY, many)):
        counted = run(f"{query} {end}", table, aggregates="count")
        assert counted.way == (False, True)
        assert counted.found == found.found
        assert counted.counters["matches"] == found.counters["matches"] > 0
    made = run(f"{FEW} {end}", table, aggregates="enumerate")
    assert made.way == (True, False)
    assert made.found == few.found


def test_what_was_decided_is_told() -> None:
    table = spread()
    (few,), (many,) = run(f"{FEW} AGG COUNT(*)", table).choices, run(f"{MANY} AGG COUNT(*)", table).choices
    assert few.startswith("aggregates: decided for making matches (1 call)")
    assert many.startswith("aggregates: decided for counting by stages (1 call)")
    for told in (few, many):
        assert "estimated" in told
        assert "counting by stages " in told
        assert "making matches " in told
    assert few in ec.explain(f"{FEW} AGG COUNT(*)", table, type="kind")
    assert many in ec.explain(f"{MANY} AGG COUNT(*)", table, type="kind")
    assert "choices" not in ec.explain(f"{FEW} AGG COUNT(*)", table, type="kind", aggregates="count")
    assert not run(f"{FEW} AGG COUNT(*)", table, aggregates="count").choices


def test_a_little_is_counted_without_weighing() -> None:
    runtime = run(f"{FEW} AGG COUNT(*)", spread(300), [10] * 20)
    assert runtime.way[0] is False
    (told,) = runtime.choices
    assert told.endswith("too little to do to weigh others")


@pytest.mark.parametrize("end", ENDS[1:])
def test_making_matches_is_given_up_where_there_are_more_than_a_sample_shows(end: str) -> None:
    table = crowd()
    query = f"{MANY.replace('2 ms', '1 ms')} {end}"
    runtime = run(query, table)
    assert runtime.way == (True, True)
    assert "gave up making them 1 time, as they were more than estimated" in runtime.choices[0]
    counted = run(query, table, aggregates="count")
    assert counted.counters["matches"] > 10 * runtime.counters["made"]
    # Nothing of the matches that were made is in the result.
    assert runtime.found == counted.found
    assert runtime.counters["matches"] == counted.counters["matches"]


def test_after_giving_up_matches_are_counted_for_some_calls() -> None:
    runtime = run(f"{MANY.replace('2 ms', '1 ms')} AGG SUM(b.x) AS s", crowd(alone=100_000), [30_000] * 10)
    (told,) = runtime.choices
    # The crowd comes in the sixth part. The last ones are smaller, so that they are weighed again.
    assert "decided for counting by stages (5 calls), making matches (7 calls)" in told
    assert "gave up making them 1 time" in told


@pytest.mark.parametrize(("window", "way"), [("40 us", (True, False)), ("4 ms", (False, True))])
def test_many_groups_are_counted_together_if_there_are_many_matches_for_each(
    window: str, way: tuple[bool, bool]
) -> None:
    table = spread()
    query = f"{MANY.replace('2 ms', window)} GROUPBY b.x, b.y AGG COUNT(*) AS n"
    runtime = run(query, table)
    assert runtime.way == way
    (told,) = runtime.choices
    assert "counting by stages " in told
    other = run(query, table, aggregates="enumerate" if way[1] else "count")
    assert other.way == (way[1], way[0])
    assert runtime.found == other.found


def test_groups_that_are_too_many_to_be_counted_one_by_one_are_made_at_once() -> None:
    """In windows of events that can begin between events of equal rank."""
    table = spread()
    table = table.set_column(0, "ts", pa.array([i // 2 for i in range(table.num_rows)], pa.timestamp("us")))
    query = f"{MANY.replace('2 ms', '40 events')} GROUPBY b.x, b.y AGG COUNT(*) AS n"
    runtime = run(query, table)
    assert runtime.way == (True, False)
    (told,) = runtime.choices
    assert "counting" not in told
    assert runtime.found == run(query, table, aggregates="count").found


def test_queries_that_share_a_walk_are_counted_or_made_together() -> None:
    table = spread()
    few = {name: f"{FEW.replace('C c', f'{name} c')} AGG COUNT(*) AS n, SUM(b.x) AS s" for name in "CDE"}
    runtime = run(few, table)
    assert runtime.way == (True, False)
    (told,) = runtime.choices
    assert told.startswith("aggregates of C, D, E, together: decided for making matches (1 call)")
    more = {
        name: query.replace(FEW.replace("C c", f"{name} c"), MANY.replace("C c", f"{name} c"))
        for name, query in few.items()
    }
    counted = run(more, table)
    assert counted.way == (False, True)
    (told,) = counted.choices
    assert told.startswith("aggregates of C, D, E, together: decided for counting by stages (1 call)")
    for queries, found in ((few, runtime), (more, counted)):
        for sharing in ("auto", "independent"):
            assert run(queries, table, sharing=sharing, aggregates="count").found == found.found


def test_queries_that_share_a_walk_are_counted_together_once_one_has_too_many_matches() -> None:
    table = crowd()
    query = "PATTERN SEQ(A a, B b, C c) WITHIN 1 ms"
    queries = {"n": f"{query} AGG COUNT(*) AS n", "s": f"{query} AGG COUNT(*) AS n, SUM(b.x) AS s"}
    queries["m"] = f"{query} AGG COUNT(*) AS n, MAX(b.x) AS m"
    runtime = run(queries, table)
    assert runtime.way == (True, True)
    assert "gave up making them 1 time" in runtime.choices[0]
    assert runtime.found == run(queries, table, aggregates="count").found
    # One walk for all of them, and one for each argument, but for the last events, of which matches may be made.
    assert abs(runtime.counters["events_counted"] - 3 * table.num_rows) < 30


def test_results_do_not_depend_on_how_the_input_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    table = spread(3_000, 20)
    query = f"{FEW} GROUPBY c.x AS g AGG COUNT(*) AS n, SUM(a.x) AS s, MAX(b.x) AS m"
    expected = run(query, table, aggregates="count").found
    monkeypatch.setattr(aggregates, "WEIGHING", 0.0)
    for sizes in ((), (1_000, 1_000), (100,) * 30, (2_900, *[1] * 50)):
        assert run(query, table, sizes).found == expected
