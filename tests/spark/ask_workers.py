"""A driver with a session of its own, whose workers run another Python: prints what it was told as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import SparkSession

import eventcube as ec
from eventcube.spark.java import ensure_java
from eventcube.spark.ship import ship


def refusal(call: Callable[[], object]) -> str | None:
    """What is said of a call that is refused."""
    try:
        call()
    except ec.OptionError as error:
        return str(error)
    return None


def main(python: str, shipped: bool) -> None:
    """Ask twice with workers that lack something, and again when the package was sent to them."""
    ensure_java()
    os.environ |= {"PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"}
    # Workers would find the package where this process did.
    os.environ.pop("PYTHONPATH", None)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    answer: dict[str, object] = {"executable": sys.executable}
    events = spark.createDataFrame(pa.table({"ts": [1, 2], "type": ["A", "B"]}))
    query = "PATTERN SEQ(A a, B b) WITHIN 5 us"
    answer["refused"] = [refusal(lambda: ec.match(events, query, type="type")) for _ in range(2)]
    answer["jobs"] = len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))
    if shipped:
        ship(spark)
        answer["found"] = ec.match(events, query, type="type").count()
    spark.stop()
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], shipped="shipped" in sys.argv)
