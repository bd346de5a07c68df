"""A stream of files in the session of the tests, for what needs no process of its own."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

import eventcube as ec
from tests.faults.answers import check
from tests.faults.checkpoint import Checkpoint
from tests.faults.workloads import LATENESS, SETTINGS, queries_of
from tests.spark.streams import Folder, Sink


class SessionStream:
    """A workload over a folder of files, one in each micro-batch, and what of them is taken."""

    def __init__(self, spark: SparkSession, folder: Path, workload: str, where: str = "true") -> None:
        self.workload, self.where, self.counts = workload, where, ec.Counts()
        self.folder, self.sink = Folder(spark, folder / "in"), Sink(folder / "checkpoint")
        self.checkpoint = Checkpoint(self.sink.checkpoint)

    def run(self, *tables: pa.Table) -> pa.Table:
        """Add files, and run all that there is to read; gives all matches and late rows so far."""
        self.folder.write(*tables)
        settings = {**SETTINGS, "lateness": f"{LATENESS} seconds", "counters": self.counts, "keep_late": True}
        events = self.folder.stream.where(self.where)
        return self.sink.run(ec.match(events, queries_of(self.workload), **settings))

    @property
    def late(self) -> pa.Table:
        """The late rows so far."""
        late = pa.concat_tables(self.sink.batches.values()).column("late").combine_chunks()
        return pa.Table.from_struct_array(late.filter(late.is_valid()))

    @property
    def retained(self) -> list[int]:
        """How many events the state had after each micro-batch."""
        buckets = [row["buckets"] for progress in self.sink.progress for row in progress.observedMetrics.values()]
        return [sum(bucket["held"] + bucket["retained"] for bucket in each) for each in buckets]

    def check(self) -> None:
        """Check all matches and late rows so far."""
        found = pa.concat_tables(self.sink.batches.values())
        found = found.filter(pc.is_null(found.column("late")))
        rows, watermark = self.folder.table.toArrow(), self.checkpoint.watermark()
        check(self.workload, rows, found, self.late, self.checkpoint.late_ids(), watermark)
