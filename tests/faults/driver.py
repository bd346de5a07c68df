"""A stream of its own process, which tests kill: `python -m tests.faults.driver` and the stream's settings as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from pyspark.sql import DataFrame, SparkSession

import eventcube as ec
from eventcube.spark.failures import plain_failures
from eventcube.spark.session import start_session
from eventcube.spark.settings import PARTITIONS
from eventcube.spark.ship import ship
from eventcube.spark.sinks import BatchFolders
from tests.faults.workloads import COLUMNS, LATENESS, SETTINGS, queries_of

# Batches are kept, as tests read from them what Spark took for late.
_SETTINGS = {PARTITIONS: "2", "spark.driver.memory": "768m", "spark.sql.streaming.minBatchesToRetain": "100000"}


@dataclass(frozen=True)
class Stream:
    """A workload over a folder of Parquet files, or over the options of Spark's Kafka source; it ends with `once`."""

    workload: str
    out: str
    late: str
    checkpoint: str
    files: str | None = None
    kafka: Mapping[str, str] | None = None
    files_per_trigger: int = 1
    master: str = "local[2,4]"
    settings: Mapping[str, str] = field(default_factory=dict)
    once: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def main(stream: Stream) -> None:
    """Run the stream until it is killed, or has read all there is."""
    spark = start_session(stream.master, {**_SETTINGS, **stream.settings})
    if not stream.master.startswith("local"):
        ship(spark)
    matches = ec.match(
        _events(spark, stream),
        queries_of(stream.workload),
        lateness=f"{LATENESS} seconds",
        keep_late=True,
        **SETTINGS,
    )
    trigger = {"availableNow": True} if stream.once else {"processingTime": "0 seconds"}
    query = (
        matches.writeStream.foreachBatch(BatchFolders(stream.out, late=stream.late))
        .option("checkpointLocation", stream.checkpoint)
        .trigger(**trigger)
        .start()
    )
    with plain_failures():
        query.awaitTermination()
    spark.stop()


def _events(spark: SparkSession, stream: Stream) -> DataFrame:
    if stream.kafka is not None:
        rows = spark.readStream.format("kafka").options(**stream.kafka).load()
        return rows.selectExpr(f"from_json(CAST(value AS STRING), '{COLUMNS}') AS event").select("event.*")
    files = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", stream.files_per_trigger)
    return files.parquet(stream.files)


if __name__ == "__main__":
    main(Stream(**json.loads(sys.argv[1])))
