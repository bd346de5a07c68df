"""Groups by components that do not end the matches, counted together, beside those over the matches."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.engine.counting import grouped
from eventcube.engine.sinks import totals
from eventcube.errors import EventCubeWarning

SIZE = 240
RNG = Random(3)
EVENTS = pa.table(
    {
        "ts": pa.array(sorted(RNG.choices(range(SIZE), k=SIZE)), pa.timestamp("us")),
        "kind": RNG.choices("ABCDN", weights=[4, 4, 4, 4, 1], k=SIZE),
        "k": pa.array(RNG.choices([1, 2, None], k=SIZE), pa.int64()),
        "g": pa.array(RNG.choices(["x", "y", "z", None], k=SIZE)),
        "v": pa.array(RNG.choices([None, -3, 0, 7], k=SIZE), pa.int64()),
        "y": pa.array(RNG.choices([None, math.nan, math.inf, 0.5, -2.0], k=SIZE), pa.float64()),
    }
)
AGG = """AGG COUNT(*) AS n, COUNT(b.v) AS c, SUM(a.v) AS s, SUM(b.y) AS f, MIN(a.y) AS low, MAX(c.v) AS high,
    AVG(c.y) AS m, MIN(b.g) AS first, MAX(b.ts) AS latest"""
MORE = ", SUM(c.ts - a.ts) AS took, AVG(b.ts - a.ts) AS half, COUNT(DISTINCT c.v) AS d"
# Those that every match ends with a C, after an A and a B, have more aggregates.
CHAINS = {
    "a chain": "SEQ(A a, B b, C c) WITHIN 20 us GROUPBY a.g, b.g AS g",
    "with what ends it": "SEQ(A a, B b, C c) WITHIN 20 us GROUPBY b.g, c.g AS g",
    "of the same types": "SEQ(ANY a, ANY b, ANY c) WITHIN 4 us GROUPBY a.kind, b.k AS k",
    "with a negation": "SEQ(A a, !N n, B b, C c) WITHIN 20 us GROUPBY a.g, b.v AS v",
    "with a key": "SEQ(A a, B b, C c) WHERE a.k = b.k = c.k WITHIN 50 us GROUPBY b.g, a.k AS k",
    "in a partition": "SEQ(A a, !N n, B b, C c) PARTITION BY k WITHIN 50 us GROUPBY a.g, b.g AS g",
    "any order in the middle": "SEQ(AND(A a, B b), C c) WITHIN 20 us GROUPBY a.g, b.g AS g",
}
OTHERS = {
    "backwards": "SEQ(A a, B b, C c, !N n) WITHIN 20 us GROUPBY c.g, b.g AS g",
    "any order at the end": "SEQ(A a, AND(B b, C c)) WITHIN 20 us GROUPBY a.g, b.v AS v",
    "an alternative": "SEQ(A a, OR(B b, D d), C c) WITHIN 20 us GROUPBY b.g, d.v AS v",
    "an alternative of one group": "SEQ(A a, OR(B b, SEQ(D d, D e)), C c) WITHIN 20 us GROUPBY b.g AS g",
    "an alternative at the end": "SEQ(A a, B b, OR(C c, D d)) WITHIN 20 us GROUPBY a.g, c.g AS g",
    "alternatives in one another": "SEQ(A a, OR(B b, SEQ(D d, OR(N n, D e))), C c) WITHIN 9 us GROUPBY n.g, e.v AS v",
    "of an event that is first": "SEQ(OR(A a, N n), B b, C c) WITHIN 9 us GROUPBY a.g, n.v AS v, b.k AS k",
}
QUERIES = {name: f"PATTERN {pattern} {AGG}{MORE}" for name, pattern in CHAINS.items()} | {
    name: f"PATTERN {pattern} {AGG}" for name, pattern in OTHERS.items()
}


def rows(query: str, table: pa.Table = EVENTS, step: int = 0, **settings: Any) -> tuple[Counter[str], dict[str, int]]:
    """The rows of the result, floats to nine digits, with the events pushed in steps, and the counters."""
    runtime = ec.Runtime(query, type="kind", advise=False, **{"aggregates": "count", **settings})
    batches = [b for at in range(0, table.num_rows, step or SIZE) for b in runtime.push(table.slice(at, step or SIZE))]
    found: Counter[str] = Counter()
    for batch in (*batches, *runtime.finish()):
        for row in batch.to_pylist():
            found[str([f"{v:.9g}" if isinstance(v, float) else v for v in row.values()])] += 1
    return found, runtime.counters


@pytest.mark.parametrize("name", QUERIES)
def test_aggregates_are_those_over_the_matches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query = QUERIES[name]
    made, _ = rows(query, aggregates="enumerate")
    assert made
    for room, step in ((1 << 24, 0), (1 << 24, 50), (2000, 0), (1, 90)):
        monkeypatch.setattr(grouped, "_ROOM", room)
        counted, counters = rows(query, step=step)
        assert counted == made, (room, step)
        assert counters["made"] == 0 < counters["events_counted"]


def test_the_events_are_walked_over_once_for_all_groups() -> None:
    """As often for many groups as for few: to count all matches, and to count them by groups."""
    work = set()
    for groups in (2, 100):
        size = 3000
        keys = [i % groups for i in range(size)]
        table = pa.table({"ts": range(size), "kind": ["ABC"[i % 3] for i in range(size)], "k": keys})
        query = "PATTERN SEQ(A a, B b, C c) WITHIN 90 us GROUPBY a.k, b.k AS j AGG COUNT(*)"
        found = ec.Counts()
        assert ec.match(table, query, type="kind", aggregates="count", counters=found).num_rows > groups
        assert found["made"] == 0
        work.add(found["events_counted"])
    # Twice over all events, and over the last window at the end.
    assert work == {2 * (3000 + 90)}


def test_matches_are_made_if_they_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"ts": range(0, 3000, 3), "kind": ["AB"[i % 2] for i in range(1000)], "k": range(1000)})
    query = "PATTERN SEQ(A a, B b) WITHIN 4 us GROUPBY a.k, b.k AS j AGG COUNT(*) AS n"
    answers = []
    for few in (0, 1 << 26):
        monkeypatch.setattr(totals, "FEW_NUMBERS", few)
        found, counters = rows(query, table)
        answers.append(found)
        assert (counters["made"] > 0) == (few == 0)
    assert answers[0] == answers[1]
    assert len(answers[0]) == 500


def test_more_matches_than_64_bits_hold_in_some_groups() -> None:
    number = 6000
    table = pa.table(
        {
            "ts": range(6 * number),
            "kind": list("ABCDEF") * number,
            "k": ["rare" if i < 60 else "often" for i in range(6 * number)],
            "v": [7 if i < 3 * number else -9 for i in range(6 * number)],
        }
    )
    query = """PATTERN SEQ(A a, B b, C c, D d, E e, F f) WITHIN 1 hour
        GROUPBY c.k AS k AGG COUNT(*) AS n, SUM(a.v) AS s, AVG(b.v) AS m, COUNT(d.v) AS c"""
    with pytest.warns(EventCubeWarning, match="EC526"):
        found = {row["k"]: row for row in ec.match(table, query, type="kind", aggregates="count").to_pylist()}
    # As many choices of A and B up to a C as of D, E and F from there on, with repetition.
    rare = sum(math.comb(i + 2, 2) * math.comb(number - i + 2, 3) for i in range(10))
    assert math.comb(number + 5, 6) - rare > 2**63
    assert (found["rare"]["n"], found["rare"]["c"], found["rare"]["s"], found["rare"]["m"]) == (rare, rare, 7 * rare, 7)
    assert (found["often"]["n"], found["often"]["c"], found["often"]["s"]) == (None, None, None)
    assert -9 < found["often"]["m"] < 7


def test_sums_that_cancel_out_or_do_not_fit() -> None:
    large = 2**62
    table = pa.table(
        {
            "ts": range(9),
            "kind": list("AAABBBCCC"),
            "v": [large, large, -large, 0, 0, 0, 1, 1, 1],
            "g": ["x", "y", "y", "p", "q", "q", "", "", ""],
        }
    )
    query = "PATTERN SEQ(A a, B b, C c) WITHIN 1 hour GROUPBY b.g AS g AGG SUM(a.v) AS s, AVG(a.v) AS m"
    with pytest.warns(EventCubeWarning, match="EC526"):
        found = {row["g"]: row["s"] for row in ec.match(table, query, type="kind", aggregates="count").to_pylist()}
    assert found == {"p": None, "q": None}
    query = "PATTERN SEQ(A a, B b, C c) WHERE a.g = 'y' WITHIN 1 hour GROUPBY b.g AS g AGG SUM(a.v) AS s"
    with warnings.catch_warnings():
        warnings.simplefilter("error", EventCubeWarning)
        found = {row["g"]: row["s"] for row in ec.match(table, query, type="kind", aggregates="count").to_pylist()}
    assert found == {"p": 0, "q": 0}
