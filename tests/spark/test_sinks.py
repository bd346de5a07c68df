"""Folders of micro-batches: every reader sees each row once, however often a micro-batch ran."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import eventcube as ec
from eventcube.errors import OptionError
from eventcube.spark.sinks import BatchFolders
from tests.spark.frames import rows_of
from tests.spark.streams import Folder, cut
from tests.spark.test_streaming import KEYED, LATENESS, SETTINGS, decided, last_watermark, random_table, table_of

READERS: dict[str, Callable[[Path], int]] = {
    "arrow": lambda path: ds.dataset(path, format="parquet").count_rows(),
    "duckdb": lambda path: duckdb.sql(f"SELECT COUNT(*) FROM '{path}/*/*.parquet'").fetchall()[0][0],
    "polars": lambda path: pl.read_parquet(path / "*" / "*.parquet").height,
}


def run(rows: DataFrame, sink: Callable[[DataFrame, int], None], checkpoint: Path) -> None:
    query = (
        rows.writeStream.foreachBatch(sink)
        .option("checkpointLocation", os.fspath(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def batches(path: Path) -> list[str]:
    return sorted(p.name for p in path.iterdir() if not p.name.startswith((".", "_")))


class TestBatchFolders:
    def test_matches_and_late_rows_of_a_stream(self, spark: SparkSession, tmp_path: Path) -> None:
        folder, out, late = Folder(spark, tmp_path / "in"), tmp_path / "out", tmp_path / "late"
        events = random_table(400, 200)
        behind = table_of(["A", "B", "C"], [50, 51, 52], [1, 1, 1])
        folder.write(*cut(events, 3))
        matches = ec.match(folder.stream, KEYED["pair"], lateness=LATENESS, keep_late=True, **SETTINGS)
        run(matches, BatchFolders(out, late=late), tmp_path / "checkpoint")
        folder.write(behind)
        run(matches, BatchFolders(out, late=late), tmp_path / "checkpoint")
        complete = decided(ec.match(events, KEYED["pair"], **SETTINGS), last_watermark(events), 0)
        found = spark.read.parquet(os.fspath(out)).drop("batch").toArrow()
        assert rows_of(found) == rows_of(complete)
        assert all(count(out) == complete.num_rows > 20 for count in READERS.values())
        assert pq.read_table(late).drop_columns(["batch"]).num_rows == 2  # no query uses C
        assert len(batches(late)) == 1

    @pytest.mark.parametrize("reader", READERS)
    def test_a_batch_that_runs_again_replaces_what_it_left(
        self, spark: SparkSession, tmp_path: Path, reader: str
    ) -> None:
        write, count = BatchFolders(tmp_path), READERS[reader]
        write(spark.range(10), 0)
        write(spark.range(20), 1)
        # What a process leaves that is killed while it writes.
        spark.range(30).write.parquet(os.fspath(tmp_path / ".attempts" / "killed" / "new"))
        assert count(tmp_path) == 30
        write(spark.range(5), 1)
        assert count(tmp_path) == 15
        write(spark.range(0), 1)
        assert count(tmp_path) == 10
        assert [p.name for p in tmp_path.iterdir()] == ["batch=0"]

    def test_a_batch_that_fails_leaves_the_others_alone(self, spark: SparkSession, tmp_path: Path) -> None:
        write = BatchFolders(tmp_path)
        write(spark.range(10), 0)
        with pytest.raises(Exception, match="boom"):
            write(spark.range(10).selectExpr("IF(id = 7, raise_error('boom'), id) AS id"), 0)
        assert [p.name for p in tmp_path.iterdir()] == ["batch=0"]
        assert all(count(tmp_path) == 10 for count in READERS.values())

    @pytest.mark.parametrize("format_", ["csv", "jsonl"])
    def test_text(self, spark: SparkSession, tmp_path: Path, format_: str) -> None:
        events = table_of(["A", "B"], [1, 2.5], [1, 1])
        matches = ec.match(
            spark.createDataFrame(events),
            "PATTERN SEQ(A a, B b) WITHIN 1 minute RETURN a.k AS k, b.ts - a.ts AS d",
            **SETTINGS,
        )
        BatchFolders(tmp_path, format=format_)(matches, 0)
        read: Any = spark.read.option("header", "true")
        rows = read.csv(os.fspath(tmp_path)) if format_ == "csv" else read.json(os.fspath(tmp_path))
        (row,) = rows.collect()
        assert (float(row["k"]), float(row["d"]), row["batch"]) == (1, 1.5, 0)

    def test_batches_of_another_stream_are_not_replaced(self, spark: SparkSession, tmp_path: Path) -> None:
        folder, out = Folder(spark, tmp_path / "in"), tmp_path / "out"
        folder.write(random_table(10, 5))
        run(folder.stream, BatchFolders(out), tmp_path / "one")
        with pytest.raises(StreamingQueryException, match="EC484"):
            run(folder.stream, BatchFolders(out), tmp_path / "another")
        folder.write(random_table(10, 5))
        run(folder.stream, BatchFolders(out), tmp_path / "one")
        assert batches(out) == ["batch=0", "batch=1"]

    def test_what_cannot_be_written(self, spark: SparkSession, tmp_path: Path) -> None:
        with pytest.raises(OptionError, match="EC420"):
            BatchFolders(tmp_path, format="xml")
        with pytest.raises(OptionError, match="EC497"):
            BatchFolders(tmp_path, late=tmp_path / "late")(spark.range(1), 0)
