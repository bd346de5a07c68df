"""`ec.Cube` on Spark: counts and matches of all queries, in one pass over the events, are those of the engine."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

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
    settings = {"type": "type", "partition_by": key, "sharing": sharing, "aggregates": "enumerate"}
    frame = spark.createDataFrame(EVENTS)
    assert ec.Cube(queries, concepts=CONCEPTS, columns=frame).graph.to_json() == cube.graph.to_json()
    expected = cube.counts(EVENTS, **settings).to_pylist()
    assert [row.asDict() for row in cube.counts(frame, **settings).collect()] == expected
    assert sum(row["matches"] for row in expected) > 500
    found = cube.match(frame, **settings).groupBy("query").count().collect()
    assert {row["query"]: row["count"] for row in found} == {r["query"]: r["matches"] for r in expected if r["matches"]}


def _computed(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if ": computed from " in line]


@pytest.mark.parametrize("sharing", ["top-down", "bottom-up"])
@pytest.mark.parametrize("key", [None, "person"], ids=["slices", "keyed"])
def test_a_fixed_plan_is_explained_without_events(spark: SparkSession, key: str | None, sharing: str) -> None:
    queries = {name: f"PATTERN {pattern} WITHIN 12 us" for name, pattern in PATTERNS.items()}
    queries["few"] += " LIMIT 5"
    cube = ec.Cube(queries, concepts=CONCEPTS)
    settings = {"type": "type", "partition_by": key, "sharing": sharing, "aggregates": "enumerate"}
    unreadable = spark.createDataFrame(EVENTS).where(F.raise_error(F.lit("read")).isNull())
    for counts in (False, True):
        expected = _computed(cube.explain(EVENTS, counts=counts, **settings))
        assert _computed(cube.explain(unreadable, counts=counts, **settings)) == expected != []


def test_queries_of_different_passes_share_no_matches(spark: SparkSession) -> None:
    cube = ec.Cube({"all": "PATTERN SEQ(TX x, OK o)", "near": "PATTERN SEQ(D d, T t) WITHIN 12 us"}, concepts=CONCEPTS)
    settings = {"type": "type", "sharing": "top-down"}
    assert _computed(cube.explain(EVENTS.schema, **settings)) == ["near: computed from all (concept-down)"]
    assert _computed(cube.explain(spark.createDataFrame(EVENTS), **settings)) == []


def test_costs_decide_in_each_task(spark: SparkSession) -> None:
    cube = ec.Cube({name: f"PATTERN {pattern} WITHIN 12 us" for name, pattern in PATTERNS.items()}, concepts=CONCEPTS)
    lines = cube.explain(spark.createDataFrame(EVENTS), type="type").splitlines()
    assert lines[-1].startswith("choices     by cost, in each task over its events, among ")
    assert "choices" not in cube.explain(spark.createDataFrame(EVENTS), type="type", sharing="independent")
