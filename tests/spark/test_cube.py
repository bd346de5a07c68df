"""`ec.Cube` on Spark: counts and matches of all queries, in one pass over the events, are those of the engine."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import eventcube as ec

SIZE = 3000
CONCEPTS = {"TX": {"D": ["DBus", "DShelter"], "G": [], "A": []}, "OK": {"T": ["TBus", "THospital"]}}
KINDS = ["DBus", "DShelter", "G", "A", "TBus", "THospital"]
RNG = Random(7)
EVENTS = pa.table(
    {
        "ts": pa.array(range(SIZE), pa.timestamp("us")),
        "type": RNG.choices(KINDS, k=SIZE),
        "person": RNG.choices(range(20), k=SIZE),
    }
)
PATTERNS = {
    "q1": "SEQ(TX x, OK o)",
    "q2": "SEQ(D d, T t)",
    "q3": "SEQ(G g, A a, T t)",
    "q6": "SEQ(G g, A a, D d, T t)",
    "q7": "SEQ(G g, !D d, A a, T t)",
    "few": "SEQ(D d, T t, D e)",
}


@pytest.mark.parametrize("sharing", ["top-down", "bottom-up"])
@pytest.mark.parametrize("key", [None, "person"], ids=["slices", "keyed"])
def test_a_cube_on_spark(spark: SparkSession, key: str | None, sharing: str) -> None:
    window = "WITHIN 12 us" if key is None else "WITHIN 200 us"
    queries = {name: f"PATTERN {pattern} {window}" for name, pattern in PATTERNS.items()}
    queries["few"] += " LIMIT 5"
    cube = ec.Cube(queries, concepts=CONCEPTS)
    settings = {"type": "type", "partition_by": key, "sharing": sharing}
    frame = spark.createDataFrame(EVENTS)
    expected = cube.counts(EVENTS, **settings).to_pylist()
    assert [row.asDict() for row in cube.counts(frame, **settings).collect()] == expected
    assert sum(row["matches"] for row in expected) > 500
    found = cube.match(frame, **settings).groupBy("query").count().collect()
    assert {row["query"]: row["count"] for row in found} == {r["query"]: r["matches"] for r in expected if r["matches"]}
