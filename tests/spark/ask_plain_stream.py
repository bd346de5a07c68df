"""A stream in a session made with nothing but `getOrCreate`, in a process of its own: prints its matches as JSON."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

import eventcube as ec

QUERY = "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 20 seconds RETURN a.k AS k, b.ts - a.ts AS wait"


def main(source: str, checkpoint: str) -> None:
    """Match the files of a folder, in the order of their names."""
    spark = SparkSession.builder.getOrCreate()
    events = spark.readStream.schema(spark.read.parquet(source).schema).parquet(source)
    found: list[str] = []

    def note(matches: object, _: int) -> None:
        found.extend(str(row) for row in matches.toArrow().to_pylist())  # type: ignore[attr-defined]

    matches = ec.match(events, QUERY, time="ts", type="kind")
    writer = matches.writeStream.foreachBatch(note).option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()
    sys.stdout.write(json.dumps(sorted(found)))


if __name__ == "__main__":
    main(*sys.argv[1:])
