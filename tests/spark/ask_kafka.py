"""The driver of the Kafka tests, a process of its own: prints what it found as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.avro.functions import from_avro, to_avro
from pyspark.sql.streaming.readwriter import DataStreamWriter

import eventcube as ec
from eventcube.spark.kafka import events_from_kafka, to_kafka
from eventcube.spark.session import start_session
from eventcube.spark.sinks import BatchFolders

COLUMNS = "ts timestamp, kind string, k bigint, id bigint"
QUERY = "PATTERN SEQ(A a, !(C c, c.k = a.k), B b, a.k = b.k) WITHIN 20 seconds RETURN a.id AS a, b.id AS b"
SETTINGS: dict[str, Any] = {"time": "ts", "type": "kind", "lateness": "1 minute"}
AVRO = json.dumps(
    {
        "type": "record",
        "name": "event",
        "fields": [
            {"name": "ts", "type": [{"type": "long", "logicalType": "timestamp-micros"}, "null"]},
            {"name": "kind", "type": ["string", "null"]},
            {"name": "k", "type": ["long", "null"]},
            {"name": "id", "type": ["long", "null"]},
        ],
    }
)
POISON = (
    '{"ts": "2026-01-05T08:00:30Z", "kind": "A", "k": ',
    '{"ts": null, "kind": "A", "k": 1, "id": 1}',
    '{"ts": "2026-01-05T08:00:31Z", "kind": "A", "k": "one", "id": 1}',
    "what is this?",
)


def records(count: int = 600) -> list[str]:
    """Values of records, some seconds out of order, with a few in their midst that cannot be read."""
    rng = Random(5)
    start = datetime(2026, 1, 5, 8, tzinfo=UTC)
    values = []
    for number in range(count):
        time = start + timedelta(seconds=number / 2 + rng.uniform(0, 5), microseconds=number)
        event = {"ts": time.isoformat(), "kind": rng.choice("AABBC"), "k": rng.randrange(4), "id": number}
        values.append(json.dumps(event))
    values[count // 2 : count // 2] = POISON
    # The watermark passes all others.
    last = start + timedelta(days=1)
    return [*values, json.dumps({"ts": last.isoformat(), "kind": "C", "k": 0, "id": count})]


def produce(spark: SparkSession, servers: str, values: Sequence[str]) -> None:
    """Write records in turn to the two partitions, each in this order."""
    rows = [(value, number % 2) for number, value in enumerate(values)]
    frame = spark.createDataFrame(rows, "value string, partition int").coalesce(1)
    frame.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", "events").save()


def produce_avro(servers: str, events: DataFrame) -> None:
    records = events.where("ts IS NOT NULL").select(to_avro(F.struct("ts", "kind", "k", "id")).alias("value"))
    records.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", "avro").save()


def run(writer: DataStreamWriter, checkpoint: Path) -> int:
    """Run all that there is to read; gives the number of micro-batches."""
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return len(query.recentProgress)


def forget_last_commit(checkpoint: Path) -> None:
    """Have the last micro-batch run again, as after a kill between its output and its commit."""
    commits = [path for path in (checkpoint / "commits").iterdir() if path.name.isdigit()]
    last = max(commits, key=lambda path: int(path.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


def pairs(frame: DataFrame) -> list[tuple[int, int]]:
    return sorted(tuple(row) for row in frame.select("a", "b").collect())


def main(servers: str, folder: Path, jars: str) -> None:
    delta = "org.apache.spark.sql.delta.catalog.DeltaCatalog", "io.delta.sql.DeltaSparkSessionExtension"
    settings = dict(zip(("spark.sql.catalog.spark_catalog", "spark.sql.extensions"), delta, strict=True))
    settings |= {"spark.jars": jars, "spark.driver.memory": "1g", "spark.eventcube.partitions": "2"}
    spark = start_session("local[2]", {**settings, "spark.sql.shuffle.partitions": "2"})
    values = records()
    produce(spark, servers, values)
    answer: dict[str, object] = {}

    counts = ec.Counts()
    events = events_from_kafka(spark, servers, "events", COLUMNS, max_per_batch=250)
    found = ec.match(events, QUERY, counters=counts, match_id=True, **SETTINGS)
    folders, checkpoint = folder / "found", folder / "checkpoint"
    answer["batches"] = run(found.writeStream.foreachBatch(BatchFolders(folders)), checkpoint)
    answer["folders"] = pairs(spark.read.parquet(str(folders)))
    answer["set_aside"] = counts["set_aside"]
    forget_last_commit(checkpoint)
    run(found.writeStream.foreachBatch(BatchFolders(folders)), checkpoint)
    answer["again"] = pairs(spark.read.parquet(str(folders)))

    table = events_from_kafka(spark, servers, "events", COLUMNS, stream=False)
    answer["replayed"] = pairs(ec.match(table, QUERY, **SETTINGS))
    set_aside = ec.set_aside(table, time="ts", type="kind")
    answer["poison"] = [row["value"] for row in set_aside.select("kafka.value").collect()]

    tables = found.writeStream.format("delta").option("path", str(folder / "delta"))
    run(tables, folder / "to_delta")
    forget_last_commit(folder / "to_delta")
    run(tables, folder / "to_delta")
    answer["delta"] = pairs(spark.read.format("delta").load(str(folder / "delta")))

    produce_avro(servers, table)
    readings = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", "avro").load()
    parsed = readings.select(from_avro("value", AVRO).alias("event")).select("event.*")
    answer["avro"] = pairs(ec.match(parsed, QUERY, **SETTINGS))

    to_topic = to_kafka(found).writeStream.format("kafka").option("topic", "found")
    to_topic = to_topic.option("kafka.bootstrap.servers", servers)
    run(to_topic, folder / "to_kafka")
    forget_last_commit(folder / "to_kafka")
    run(to_topic, folder / "to_kafka")
    columns = "a bigint, b bigint, start timestamp, match_id string"
    written = events_from_kafka(spark, servers, "found", columns, stream=False).orderBy("kafka.offset").collect()
    answer["written"] = [{name: row[name] for name in ("a", "b", "match_id")} for row in written]
    answer["keys"] = [row["kafka"]["key"] for row in written]
    spark.stop()
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
