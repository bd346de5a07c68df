"""What Spark is asked to do: nothing before it must, and little of that in the shuffle."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import eventcube as ec
from eventcube.options import options
from eventcube.plan.bind import bind
from eventcube.schema import HALO
from eventcube.spark.batch import shuffled_dataframe
from eventcube.spark.columns import arrow_schema
from eventcube.spark.pushdown import superset
from eventcube.spark.slices import SLICE
from tests.oracle.generate import random_case, to_arrow
from tests.spark.frames import rows_of


@pytest.fixture(scope="module")
def trades(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    rng = Random(1)
    count = 2000
    table = pa.table(
        {
            "symbol": [rng.choice(["DELL", "INTC", "QQQ", "ORCL"]) for _ in range(count)],
            "ts": pa.array(range(0, count * 1000, 1000)).cast(pa.timestamp("us")),
            "price": [rng.uniform(90, 110) for _ in range(count)],
            "volume": [rng.randrange(100) for _ in range(count)],
            "account": [rng.randrange(20) for _ in range(count)],
        }
    )
    folder = tmp_path_factory.mktemp("trades")
    pq.write_table(table, folder / "trades.parquet")
    return spark.read.parquet(str(folder))


@pytest.fixture(autouse=True)
def _whole_plans(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.maxMetadataStringLength", "10000")
    yield
    spark.conf.unset("spark.sql.maxMetadataStringLength")


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_nothing_runs_before_the_result_is_used(spark: SparkSession, trades: DataFrame) -> None:
    queries = {
        "sliced": "PATTERN SEQ(DELL a, INTC b) WITHIN 9 ms",
        "keyed": "PATTERN SEQ(DELL a, INTC b, a.account = b.account) WITHIN 1 s",
        "limit": "PATTERN SEQ(DELL a, INTC b) WITHIN 9 ms LIMIT 3",
    }
    context = spark.sparkContext
    context.setJobGroup("lazy", "matches that nobody has asked for yet")
    try:
        for query in queries.values():
            ec.match(trades, query, type="symbol")
        ec.match(trades, queries, type="symbol")
        ec.match(trades, "PATTERN SEQ(DELL a, INTC b) WITHIN 9 ms AGG COUNT(*)", type="symbol")
        ec.set_aside(trades, type="symbol")
        assert list(context.statusTracker().getJobIdsForGroup("lazy")) == []
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


def test_columns_types_and_predicates_reach_the_scan(trades: DataFrame) -> None:
    found = ec.match(
        trades,
        "PATTERN SEQ(DELL a, INTC b) WHERE a.price > 100 AND b.volume BETWEEN 3 AND 50 WITHIN 9 ms RETURN a.ts AS a",
        type="symbol",
    )
    plan = plan_of(found)
    assert "ReadSchema: struct<symbol:string,ts:timestamp_ntz,price:double,volume:bigint>" in plan
    pushed = plan.split("PushedFilters: ")[1].split("ReadSchema")[0]
    assert "IsNotNull(ts)" in pushed
    assert "In(symbol, [DELL,INTC])" in pushed
    assert "GreaterThan(price,100.0)" in pushed
    assert "LessThanOrEqual(volume,50)" in pushed
    before_shuffle = plan.split("Exchange")[1]
    assert "Filter" in before_shuffle


def test_a_key_spreads_events_by_hash_and_leaves_out_nulls(trades: DataFrame) -> None:
    found = ec.match(trades, "PATTERN SEQ(DELL a, INTC b, a.account = b.account) WITHIN 1 s", type="symbol")
    plan = plan_of(found)
    assert "hashpartitioning(account" in plan
    assert "IsNotNull(account)" in plan


def test_slices_go_through_the_shuffle_in_packs(trades: DataFrame) -> None:
    above, below = plan_of(ec.match(trades, "PATTERN SEQ(DELL a, INTC b) WITHIN 9 ms", type="symbol")).split("Exchange")
    assert "MapInArrow" in above
    assert "MapInArrow" in below


def test_what_tasks_see_can_be_had_without_the_engine(trades: DataFrame) -> None:
    sliced = shuffled_dataframe(trades, "PATTERN SEQ(DELL a, INTC b) WITHIN 9 ms RETURN a.ts AS a", type="symbol")
    wanted = trades.where("symbol IN ('DELL', 'INTC')").count()
    assert sliced.columns == ["symbol", "ts", SLICE, HALO]
    assert sliced.where(F.col(HALO) == 0).count() == wanted
    assert sliced.count() > wanted
    keyed = shuffled_dataframe(
        trades, "PATTERN SEQ(DELL a, INTC b, a.account = b.account) WITHIN 1 s RETURN a.ts AS a", type="symbol"
    )
    assert keyed.columns == ["symbol", "ts", "account"]
    assert keyed.count() == wanted


def test_a_window_that_counts_events_gets_all_of_them(trades: DataFrame) -> None:
    found = ec.match(trades, "PATTERN SEQ(DELL a, INTC b) WITHIN 9 events RETURN a.ts AS a", type="symbol")
    plan = plan_of(found)
    assert "PushedFilters: [IsNotNull(ts)]" in plan
    assert "ReadSchema: struct<symbol:string,ts:timestamp_ntz>" in plan


def test_several_queries_that_can_be_sliced_read_the_events_once(trades: DataFrame) -> None:
    queries = ["PATTERN SEQ(DELL a, INTC b) WITHIN 9 ms", "PATTERN SEQ(INTC a, !QQQ q, DELL b, !DELL c) WITHIN 5 ms"]
    assert plan_of(ec.match(trades, queries, type="symbol")).count("FileScan") == 1


def test_the_number_of_tasks_and_their_memory_can_be_set(spark: SparkSession, trades: DataFrame) -> None:
    query = "PATTERN SEQ(DELL a, INTC b, a.account = b.account) WITHIN 1 s RETURN a.ts AS a, b.ts AS b"
    expected = rows_of(ec.match(trades, query, type="symbol"))
    try:
        spark.conf.set("spark.eventcube.partitions", "3")
        # So little that every task sorts on disk.
        spark.conf.set("spark.eventcube.taskMemory", "2k")
        found = ec.match(trades, query, type="symbol")
        assert found.rdd.getNumPartitions() == 3
        assert rows_of(found) == expected
        spark.conf.set("spark.eventcube.taskMemory", "plenty")
        with pytest.raises(ec.OptionError, match="taskMemory"):
            ec.match(trades, query, type="symbol")
    finally:
        spark.conf.unset("spark.eventcube.partitions")
        spark.conf.unset("spark.eventcube.taskMemory")


def test_what_is_pushed_down_never_leaves_out_an_event_that_the_engine_would_keep(spark: SparkSession) -> None:
    quals = [q for q in _single_variable_quals() if q]
    table = pa.concat_tables([to_arrow(random_case(seed).events) for seed in range(40)], promote_options="permissive")
    frame = spark.createDataFrame(table).withColumn("row", F.monotonically_increasing_id()).cache()
    plain = frame.drop("row").toArrow()
    schema = options().schema(arrow_schema(frame.drop("row")))
    assert len(quals) > 30
    conditions = []
    for number, text in enumerate(quals):
        logical = bind(ec.parse(f"PATTERN A a WHERE {text} WITHIN 1 us"), schema)
        found = superset(logical.region.predicates[0].condition, frame.schema)
        for predicate in logical.region.predicates[1:]:
            more = superset(predicate.condition, frame.schema)
            found = more if found is None else found if more is None else found & more
        conditions.append((F.lit(True) if found is None else F.coalesce(found, F.lit(False))).alias(f"c{number}"))
    kept = frame.select(*conditions).toArrow()
    indexed = plain.append_column("at", pa.array(range(plain.num_rows)))
    for number, text in enumerate(quals):
        # Conditions that never hold are among them.
        runtime = ec.Runtime(f"PATTERN A a WHERE {text} WITHIN 1 us RETURN a.at AS at", lateness="1 day", advise=False)
        batches = [*runtime.push(indexed), *runtime.finish()]
        holds = [at for batch in batches for at in batch.column("at").to_pylist()]
        passed = kept.column(f"c{number}").to_pylist()
        assert all(passed[at] for at in holds), text


def _single_variable_quals() -> Iterator[str]:
    """Conditions on one event, of every kind."""
    numbers = ["a.x", "a.y", "a.k"]
    for name in numbers:
        yield from (f"{name} {op} 1" for op in ("=", "!=", "<", "<=", ">", ">="))
        yield from (f"{name} > 0.5", f"2 >= {name}", f"{name} IN (1, 2)", f"NOT ({name} IN (1, NULL))")
        yield from (
            f"{name} BETWEEN 1 AND 2",
            f"NOT ({name} BETWEEN 0 AND 1)",
            f"{name} IS NULL",
            f"{name} IS NOT NULL",
        )
        yield f"NOT ({name} > 1 OR a.s = 'a')"
    yield from ("a.s = 'a'", "a.s != 'a'", "a.s > 'a'", "a.s IN ('a', 'é')", "NOT (a.s IN ('a'))", "a.s IS NULL")
    yield from ("a.b", "NOT a.b", "a.b = TRUE", "a.b != FALSE", "a.b IS NULL")
    yield from ("a.x = NULL", "a.x > 1 OR a.y + 1 > 2", "NOT (a.x > 1 AND a.y = 2.0)", "a.x + 1 > 2 AND a.s = 'a'")
    yield from ("a.ts > TIMESTAMP '1970-01-01 00:00:00.003'", "a.ts <= '1970-01-01 00:00:00.004'")
    yield from ("a.x > 9223372036854775807", "a.x < 1e300", "a.x = 1 AND (a.y = 1 OR NOT (a.b AND a.k = 1))")
