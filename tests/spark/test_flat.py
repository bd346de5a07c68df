"""Flat tables and `match_all` on Spark: lazy, and the same as in process."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import eventcube as ec
from eventcube.errors import BindError, OptionError
from tests.spark.frames import rows_of, to_frame

TABLE = pa.table({"ts": [1, 2, 3, 4], "type": ["A", "B", "A", "C"], "k": [1, 1, 2, None]})
QUERIES = {
    "pairs": "PATTERN SEQ(A a, B b) WITHIN 9 us",
    "counted": "PATTERN A a GROUPBY a.k AS k AGG COUNT(*) AS n",
    "first": "PATTERN A a RETURN a.ts + 1 AS next, a LIMIT 1",
    "either": "PATTERN OR(B b, C c) WITHIN 9 us",
}


@pytest.mark.parametrize("flat", [False, True])
def test_each_query_has_the_result_that_it_has_in_process(spark: SparkSession, flat: bool) -> None:
    expected = ec.match_all(TABLE, QUERIES, type="type", flat=flat)
    found = ec.match_all(to_frame(spark, TABLE), QUERIES, type="type", flat=flat)
    assert list(found) == list(QUERIES)
    for name, frame in found.items():
        assert frame.columns == expected[name].column_names
        assert rows_of(frame) == rows_of(expected[name]), name
    one = ec.match(to_frame(spark, TABLE), QUERIES["either"], type="type", flat=flat)
    assert rows_of(one) == rows_of(expected["either"])


def test_wide_can_be_flat_too(spark: SparkSession) -> None:
    query = QUERIES["either"]
    shared = ec.match(to_frame(spark, TABLE), {"either": query}, type="type")
    flat = ec.match(TABLE, query, type="type", flat=True)
    assert rows_of(ec.wide(shared, "either", query, flat=True)) == rows_of(flat)


def test_names_that_differ_only_in_case_are_one_name(spark: SparkSession) -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 9 us RETURN a, b.k AS A_K"
    with pytest.raises(OptionError, match=r"a\.k and A_K would both be called") as caught:
        ec.match(to_frame(spark, TABLE), query, type="type", flat=True)
    assert caught.value.code == "EC433"
    assert ec.match(TABLE, query, type="type", flat=True).column_names[-2:] == ["a_k", "A_K"]


def test_a_strategy_for_a_part_of_one_query_leaves_the_others_alone(spark: SparkSession) -> None:
    nested = "PATTERN SEQ(A a, !SEQ(B s, B t), C c) WITHIN 9 us"
    plain = "PATTERN SEQ(A a, !B b) WITHIN 9 us"
    frame = to_frame(spark, TABLE)
    settings = {"type": "type", "strategy": {"s": "balanced"}}
    assert ec.match(frame, {"n": nested, "p": plain}, **settings).count() == (
        ec.match(TABLE, {"n": nested, "p": plain}, **settings).num_rows
    )
    found = ec.match_all(frame, {"n": nested, "p": plain}, **settings)
    expected = ec.match_all(TABLE, {"n": nested, "p": plain}, **settings)
    assert {n: f.count() for n, f in found.items()} == {n: t.num_rows for n, t in expected.items()}


class TestTablesNamedByQueries:
    """A session in place of events: FROM says which table or view."""

    QUERY = "PATTERN SEQ(A a, B b)\nFROM {} WITHIN 9 us RETURN a.ts AS a, b.ts AS b"

    @pytest.fixture(autouse=True)
    def views(self, spark: SparkSession) -> None:
        to_frame(spark, TABLE).createOrReplaceTempView("flights")
        to_frame(spark, TABLE.slice(1)).createOrReplaceTempView("`raw-events`")
        to_frame(spark, TABLE).createOrReplaceGlobalTempView("seen")

    @pytest.mark.parametrize(
        "table", ["flights", "`raw-events`", "global_temp.seen", "`global_temp`.`seen`", "FLIGHTS"]
    )
    def test_a_view_is_read(self, spark: SparkSession, table: str) -> None:
        query = self.QUERY.format(table)
        events = TABLE.slice(1) if "raw" in table else TABLE
        assert rows_of(ec.match(spark, query, type="type")) == rows_of(ec.match(events, query, type="type"))

    def test_a_table_that_is_not_there_is_shown_in_its_place(self, spark: SparkSession) -> None:
        with pytest.raises(BindError) as caught:
            ec.match(spark, self.QUERY.format("flihgts"), type="type")
        shown = str(caught.value)
        assert shown.startswith("error[EC336]: there is no table or view 'flihgts' in the session\n --> query:2:6\n")
        assert "     ^^^^^^^\n" in shown
        assert "did you mean 'flights'?" in shown

    @pytest.mark.parametrize("table", ["global_temp.sean", "nowhere.flights", "lake.raw.events"])
    def test_a_database_that_is_not_there(self, spark: SparkSession, table: str) -> None:
        with pytest.raises(BindError, match="EC336") as caught:
            ec.match(spark, self.QUERY.format(table), type="type")
        assert "^" * len(table) in str(caught.value)

    def test_several_queries(self, spark: SparkSession) -> None:
        pair = "PATTERN SEQ(A a, B b) FROM flights WITHIN 9 us"
        other = "PATTERN C c FROM `raw-events` AGG COUNT(*) AS n"
        assert ec.match(spark, {"x": pair, "y": pair}, type="type").count() == 2
        with pytest.raises(OptionError, match=r"different tables \(`raw-events`, flights\)") as caught:
            ec.match(spark, {"x": pair, "y": other.replace(" AGG COUNT(*) AS n", "")}, type="type")
        assert caught.value.code == "EC435"
        found = ec.match_all(spark, {"x": pair, "y": other}, type="type")
        assert (found["x"].count(), found["y"].first()["n"]) == (1, 1)

    def test_its_plan_is_explained(self, spark: SparkSession) -> None:
        query = self.QUERY.format("flights")
        assert ec.explain(query, spark, type="type") == ec.explain(query, spark.table("flights"), type="type")

    def test_every_query_must_name_one(self, spark: SparkSession) -> None:
        with pytest.raises(OptionError, match="query 'q1' names no table") as caught:
            ec.match(spark, "PATTERN a")
        assert caught.value.code == "EC435"

    def test_what_is_neither_a_session_nor_a_frame(self, spark: SparkSession) -> None:
        with pytest.raises(ec.InputError, match="EC307"):
            ec.match(spark.range(1)["id"], "PATTERN a")

    def test_a_view_of_a_stream(self, spark: SparkSession) -> None:
        spark.readStream.format("rate").load().createOrReplaceTempView("stream")
        assert ec.match(spark, "PATTERN a FROM stream", time="timestamp").isStreaming
