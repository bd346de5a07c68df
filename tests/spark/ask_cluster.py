"""The driver of the cluster test, a process of its own: prints what it found as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

import eventcube as ec
from eventcube.spark.session import start_session
from eventcube.spark.ship import ship

QUERIES = {
    "keyed": "PATTERN SEQ(A a, !(C c, c.k = a.k), B b, a.k = b.k) WITHIN 9 ms",
    "sliced": "PATTERN SEQ(A a, B b, !C c) WITHIN 7 ms",
    "count": "PATTERN SEQ(A a, B b) WITHIN 5 ms AGG COUNT(*)",
    "limit": "PATTERN SEQ(A a, B b) WITHIN 5 ms LIMIT 5",
}


def events() -> pa.Table:
    """Events without ties."""
    count = 600
    return pa.table(
        {
            "ts": pa.array(range(0, count * 500, 500)).cast(pa.timestamp("us", "UTC")),
            "type": ["ABCAB"[(3 * i + i // 5) % 5] for i in range(count)],
            "k": [i % 7 for i in range(count)],
        }
    )


def probe() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function that tells where a worker has the package from; sent as it is, since workers lack this module."""

    def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import eventcube
        import eventcube.engine.kernels

        for _ in batches:
            pass
        row = {"executor": str(Path.cwd()), "package": eventcube.__file__, "kernels": eventcube.engine.kernels.__file__}
        yield pa.RecordBatch.from_pylist([row])

    return where


def main(master: str) -> None:
    """Ask before and after the package was shipped."""
    settings = {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "768m", "spark.cores.max": "2"}
    spark = start_session(master, settings)
    answer: dict[str, object] = {}
    frame = spark.createDataFrame(events()).repartition(4)
    try:
        ec.match(frame, QUERIES["keyed"], type="type")
    except ec.OptionError as error:
        answer["before"] = str(error)
    answer["shipped"] = str(ship(spark))
    answer["answers"] = {
        name: sorted(map(str, ec.match(frame, query, type="type").toArrow().to_pylist()))
        for name, query in QUERIES.items()
    }
    schema = "executor string, package string, kernels string"
    answer["where"] = [row.asDict() for row in frame.repartition(8).mapInArrow(probe(), schema).distinct().collect()]
    spark.stop()
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1])
