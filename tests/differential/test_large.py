"""Results of many chunks against DuckDB's self-joins: nothing is lost or doubled where one chunk ends."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import eventcube as ec
from eventcube.engine.execute import CHUNK

SIZE = 3000
_rng = np.random.default_rng(11)
EVENTS = pa.table(
    {
        "ts": np.cumsum(_rng.integers(0, 3, SIZE)),
        "type": _rng.choice(["A", "B", "C", "N"], SIZE, p=[0.3, 0.32, 0.3, 0.08]),
        "id": np.arange(SIZE),
        "k": _rng.integers(0, 40, SIZE),
        "x": pa.array(_rng.integers(0, 9, SIZE), mask=_rng.random(SIZE) < 0.1),
        "y": pa.array(np.where(_rng.random(SIZE) < 0.1, np.nan, _rng.random(SIZE)), from_pandas=True),
    }
)
# In SQL, null and order are as in a query; a negated part is NOT EXISTS.
JOIN = "FROM events a, events b, events c WHERE a.type = 'A' AND b.type = 'B' AND c.type = 'C'"
CASES = [
    pytest.param(
        "SEQ(A a, B b, C c) WITHIN 150 us",
        f"{JOIN} AND a.ts < b.ts AND b.ts < c.ts AND c.ts - a.ts <= 150",
        id="a plain sequence",
    ),
    pytest.param(
        "SEQ(A a, B b, C c, a.x <= b.x, b.y < c.y, a.x != c.x) WITHIN 400 us",
        f"{JOIN} AND a.ts < b.ts AND b.ts < c.ts AND c.ts - a.ts <= 400 AND a.x <= b.x AND b.y < c.y AND a.x != c.x",
        id="comparisons of numbers",
    ),
    pytest.param(
        "SEQ(A a, B b, C c, a.k = c.k, b.x + 1 > a.x * 2) WITHIN 1200 us",
        f"{JOIN} AND a.ts < b.ts AND b.ts < c.ts AND c.ts - a.ts <= 1200 AND a.k = c.k AND b.x + 1 > a.x * 2",
        id="looked up by key",
    ),
    pytest.param(
        "SEQ(A a, B b, C c, a.x = b.x = c.x) WITHIN 2000 us",
        f"{JOIN} AND a.ts < b.ts AND b.ts < c.ts AND c.ts - a.ts <= 2000 AND a.x = b.x AND b.x = c.x",
        id="split by an inferred key",
    ),
    pytest.param(
        "AND(A a, B b, C c, a.k <= b.k) WITHIN 80 us",
        f"{JOIN} AND a.k <= b.k AND greatest(a.ts, b.ts, c.ts) - least(a.ts, b.ts, c.ts) <= 80",
        id="in any order",
    ),
    pytest.param(
        "SEQ(A a, B b, !(N n, n.x = a.x), C c) WITHIN 250 us",
        f"{JOIN} AND a.ts < b.ts AND b.ts < c.ts AND c.ts - a.ts <= 250 AND NOT EXISTS (SELECT 1 FROM events n "
        "WHERE n.type = 'N' AND n.ts > b.ts AND n.ts < c.ts AND n.x = a.x)",
        id="a correlated negation",
    ),
    pytest.param(
        "SEQ(A a, SEQ(B b, C c), !(N n, n.k < 10)) WITHIN 170 us",
        f"{JOIN} AND a.ts < b.ts AND b.ts < c.ts AND c.ts - a.ts <= 170 AND NOT EXISTS (SELECT 1 FROM events n "
        "WHERE n.type = 'N' AND n.ts > c.ts AND n.ts <= a.ts + 170 AND n.k < 10)",
        id="a trailing negation after a nested sequence",
    ),
]


def _signature(ids: list[pa.ChunkedArray]) -> tuple[int, int]:
    """How many rows there are, and a sum that tells them apart."""
    a, b, c = (np.asarray(column).astype(np.int64) for column in ids)
    mixed = (a * 1_000_003 + b) * 1_000_003 + c
    return len(mixed), int(((mixed * 6_364_136_223_846_793_005) >> 17).sum())


@pytest.mark.parametrize(("query", "sql"), CASES)
def test_many_matches(query: str, sql: str) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET threads TO 1")
        connection.register("events", EVENTS)
        wanted = connection.sql(f"SELECT a.id AS a, b.id AS b, c.id AS c {sql}").to_arrow_table()
    expected = _signature(wanted.columns)
    assert expected[0] > 2 * CHUNK, "several chunks"
    text = f"PATTERN {query} RETURN a.id AS a, b.id AS b, c.id AS c"
    assert _signature(ec.match(EVENTS, text, type="type").columns[2:]) == expected
    runtime = ec.Runtime(text, type="type")
    batches = [b for start in range(0, SIZE, 700) for b in runtime.push(EVENTS.slice(start, 700))]
    table = pa.Table.from_batches([*batches, *runtime.finish()])
    assert _signature(table.columns[2:]) == expected
    counted = ec.match(EVENTS, f"PATTERN {query} AGG COUNT(*) AS n, SUM(a.id + b.id) AS s", type="type")
    total = pc.sum(pc.add(wanted.column(0), wanted.column(1))).as_py()
    assert counted.to_pylist() == [{"n": expected[0], "s": total}]
