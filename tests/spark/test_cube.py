"""`ec.Cube` on Spark: counts and matches of all queries, in one pass over the events, are those of the engine."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

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


AGG = (
    "AGG COUNT(*) AS n, SUM(x.n) AS s, AVG(x.y) AS mean, MIN(o.y) AS low, MAX(o.n) AS high, SUM(o.y) AS f, "
    "COUNT(DISTINCT x.n) AS different"
)
LEVELS = {
    "numbers": "SEQ(TX x, OK o)",
    "few": "SEQ(D d, T t) LIMIT 5",
    "between": "SEQ(TX x, !DBus n, T t)",
    "middle": "SEQ(G g, TX x, T t)",
    "either": "SEQ(OR(D d, G g), T t)",
    "all": f"SEQ(TX x, OK o) {AGG}",
    "by key": f"SEQ(TX x, OK o) GROUPBY x.n AS key {AGG} HAVING n > 5",
    "by time": "SEQ(TX x, OK o) GROUPBY o.ts EVERY 1 millisecond AS at AGG COUNT(*) AS n",
}
NUMBERS = EVENTS.append_column("n", pa.array(RNG.choices([None, 1, 2, 3], k=SIZE), pa.int64())).append_column(
    "y", pa.array(RNG.choices([None, float("nan"), 0.5, -2.25, 1e6], k=SIZE), pa.float64())
)


def _rounded(row: Any) -> str:
    return repr([float(f"{v:.9g}") if isinstance(v, float) else v for v in row.values()])


@pytest.mark.parametrize("key", [None, "person"], ids=["slices", "keyed"])
@pytest.mark.parametrize("aggregates", ["auto", "enumerate"])
def test_counts_at_every_level(spark: SparkSession, key: str | None, aggregates: str) -> None:
    """Partial groups are merged over tasks, and added up after that."""
    window = "WITHIN 12 us" if key is None else "WITHIN 200 us"
    queries = {name: f"PATTERN {pattern} {window}" for name, pattern in LEVELS.items()}
    cube = ec.Cube(queries, concepts=CONCEPTS, type="type", partition_by=key)
    expected = cube.counts(NUMBERS, levels=True, aggregates=aggregates)
    frame = spark.createDataFrame(NUMBERS)
    counters = ec.Counts()
    found = cube.counts(frame, levels=True, aggregates=aggregates, counters=counters)
    assert found.columns == expected.column_names
    rows = [row.asDict() for row in found.collect()]
    assert sorted(map(_rounded, rows)) == sorted(map(_rounded, expected.to_pylist()))
    assert {row["query"] for row in rows} == set(LEVELS)
    assert counters["events"] < 2 * SIZE, "one pass over the events"
    one = cube.counts(frame, levels="few")
    assert max(row["matches"] for row in one.collect()) == 5
    assert one.columns == ["query", "d", "d_level", "t", "t_level", "matches"]


def test_counts_at_every_level_without_a_match(spark: SparkSession) -> None:
    queries = {"typed": "PATTERN SEQ(TX x, OK o) WITHIN 12 us", "any": "PATTERN SEQ(ANY x, ANY o) WITHIN 12 us"}
    cube = ec.Cube(queries, concepts=CONCEPTS, type="type")
    expected = cube.counts(EVENTS.slice(0, 0), levels=True).to_pylist()
    assert [(row["query"], row["matches"]) for row in expected] == [("any", 0)]
    found = cube.counts(spark.createDataFrame(EVENTS).where("false"), levels=True)
    assert [row.asDict() for row in found.collect()] == expected


def test_a_stream_has_no_counts_at_every_level(spark: SparkSession, tmp_path: Path) -> None:
    cube = ec.Cube("PATTERN SEQ(TX x, OK o) WITHIN 12 us", concepts=CONCEPTS, type="type")
    stream = spark.readStream.schema("ts timestamp, type string").parquet(str(tmp_path))
    with pytest.raises(ec.OptionError, match=r"EC409\]: the events are a stream"):
        cube.counts(stream, levels=True)


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
