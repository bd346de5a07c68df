"""LIMIT n: the earliest matches by their last event, their first, and then the events bound."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.differential.compare import check
from tests.oracle.generate import PLAIN, Options
from tests.oracle.shorthand import stream

import eventcube as ec
from eventcube.engine import limit
from eventcube.language.parse import parse

EVENTS = "A1 A1 B2 A2 B2 A3 C3 B4 B4 A5 B6 C9 A9 B9"


@pytest.mark.parametrize("most", [1, 2, 3, 5, 100])
@pytest.mark.parametrize(
    "query",
    [
        "SEQ(A a, B b) WITHIN 4 ms",
        "AND(A a, B b) WITHIN 4 ms",
        "SEQ(A a, B b, !C c) WITHIN 3 ms",
        "SEQ(!C c, A a, B b) WITHIN 5 events",
        "SEQ(A a, OR(B b, C c)) WITHIN 4 ms",
        "OR(A a, SEQ(B b, !C c)) WITHIN 2 ms",
        "SEQ(A a, B b)",
    ],
)
def test_the_earliest_matches_are_kept_under_every_cut(query: str, most: int) -> None:
    events = stream(EVENTS)
    for cut in ([], [1] * len(events), [3, 4, 2]):
        check(parse(f"PATTERN {query} LIMIT {most}"), events, PLAIN, cut)


def test_ties_across_partitions() -> None:
    events = stream("A1:k=2 A1:k=1 B2:k=1 B2:k=2 A2:k=1 B3:k=2 B3:k=1", key="k")
    for most in range(1, 8):
        for cut in ([], [1] * 7):
            check(parse(f"PATTERN SEQ(A a, B b) WITHIN 9 ms LIMIT {most}"), events, Options(partitioned=True), cut)


@pytest.mark.parametrize(("query", "option", "expected"), [(2, 3, 2), (3, 2, 2), (None, 1, 1), (2, None, 2)])
def test_the_smaller_of_the_query_s_and_the_caller_s(query: int | None, option: int | None, expected: int) -> None:
    events = pa.table({"ts": range(10)})
    text = "PATTERN SEQ(a, b) WITHIN 9 us" + (f" LIMIT {query}" if query else "")
    assert ec.match(events, text, limit=option).num_rows == expected


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("SEQ(a, b, c, d, e, f)", id="at the last event"),
        pytest.param("SEQ(a, b, c, d, e, f) WITHIN 9000 events", id="within many events"),
        pytest.param("AND(a, b, c, d)", id="in any order"),
        pytest.param("SEQ(a, b, !(c, c.x < 0)) WITHIN 1 hour", id="once no window is open"),
    ],
)
def test_a_few_of_very_many_matches_are_found_at_once(query: str) -> None:
    events = pa.table({"ts": range(10_000), "x": [1] * 10_000})
    if "hour" in query:
        events = events.set_column(0, "ts", [[i * 10**9 for i in range(10_000)]])
    runtime = ec.Runtime(f"PATTERN {query}", limit=10, schema=events.schema, advise=False)
    found = pa.Table.from_batches([*runtime.push(events), *runtime.finish()])
    assert found.num_rows == 10
    assert found.column("end").to_pylist() == sorted(found.column("end").to_pylist())
    assert runtime.counters["candidates"] < 100_000, "not every match was made"


@pytest.mark.parametrize("strategy", ["auto", "semantic"])
@pytest.mark.parametrize(
    "query",
    [
        pytest.param("SEQ(A a, B b)", id="no negation"),
        pytest.param("SEQ(A a, B b, !C c)", id="a trailing negation"),
        pytest.param("SEQ(A a, B b, !(C c, c.x = a.x))", id="a trailing negation with a condition"),
        pytest.param("SEQ(A a, B b, !SEQ(C c, D d))", id="a trailing negated part"),
        pytest.param("SEQ(SEQ(A a, B b), B e, !SEQ(C c, D d))", id="a nested part before it"),
        pytest.param("SEQ(A a, OR(B b, SEQ(B e, !C c)))", id="a trailing negation in an alternative"),
    ],
)
def test_all_that_begins_before_anything_ends_does_not_make_every_match(query: str, strategy: str) -> None:
    half = 3000
    events = pa.table({"ts": range(2 * half), "type": ["A"] * half + ["B"] * half, "x": [1] * 2 * half})
    text = f"PATTERN {query} WITHIN 1 hour LIMIT 5 RETURN a.ts AS a"
    used = strategy if "(S" in query else "auto"
    runtime = ec.Runtime(text, type="type", schema=events.schema, strategy=used, advise=False)
    found = pa.Table.from_batches([*runtime.push(events), *runtime.finish()])
    assert found.num_rows == 5
    assert set(found.column("end").to_pylist()) == {half + query.startswith("SEQ(SEQ")}
    assert runtime.counters["candidates"] < half * half / 5, "not every match was made"


def test_a_crowd_after_a_long_silence_is_taken_in_smaller_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit, "_MAX_FOUND", 10)
    events = stream(" ".join([*(f"A{i}" for i in range(40)), *(f"B{i}" for i in range(40, 80)), "C80 B81 B81"]))
    for query in ("SEQ(A a, B b) WITHIN 99 ms", "SEQ(A a, B b, !C c) WITHIN 60 ms", "AND(A a, B b)"):
        for most in (1, 50, 100):
            check(parse(f"PATTERN {query} LIMIT {most}"), events, PLAIN, [50])
