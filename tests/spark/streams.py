"""Streams of files: what comes in each micro-batch, and the matches that each gives."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery


class Folder:
    """A folder of Parquet files, read as a stream of one file for each micro-batch."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark, self.path, self.count = spark, path, 0
        self.path.mkdir()

    def write(self, *tables: pa.Table) -> None:
        """Add files, which Spark reads in this order."""
        for table in tables:
            file = self.path / f"{self.count:04}.parquet"
            pq.write_table(table, file)
            self.count += 1
            os.utime(file, (1e9 + 10 * self.count, 1e9 + 10 * self.count))

    @property
    def stream(self) -> DataFrame:
        return (
            self.spark.readStream.schema(self.table.schema)
            .option("maxFilesPerTrigger", 1)
            .parquet(os.fspath(self.path))
        )

    @property
    def table(self) -> DataFrame:
        return self.spark.read.parquet(os.fspath(self.path))


class Sink:
    """The rows of each micro-batch; one that comes again takes the place of the first."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint
        self.batches: dict[int, pa.Table] = {}
        self.progress: list[Any] = []

    def run(self, matches: DataFrame, mode: str = "append") -> pa.Table:
        """Run all that there is to read; gives all matches so far."""
        query = self.start(matches, mode, availableNow=True)
        query.awaitTermination()
        self.progress += query.recentProgress
        # Late rows may be given by some micro-batches only.
        return pa.concat_tables(self.batches.values(), promote_options="default")

    def start(self, matches: DataFrame, mode: str = "append", **trigger: Any) -> StreamingQuery:
        """Start a stream whose micro-batches come here; without a trigger it runs until it is stopped."""
        writer = matches.writeStream.foreachBatch(self._write).outputMode(mode)
        writer = writer.option("checkpointLocation", os.fspath(self.checkpoint))
        return (writer.trigger(**trigger) if trigger else writer).start()

    def _write(self, matches: DataFrame, batch: int) -> None:
        self.batches[batch] = matches.toArrow()


def cut(table: pa.Table, pieces: int) -> Sequence[pa.Table]:
    """A table in pieces of about the same length."""
    ends = [table.num_rows * i // pieces for i in range(pieces + 1)]
    return [table.slice(start, end - start) for start, end in pairwise(ends)]
