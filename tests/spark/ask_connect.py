"""A client of Spark Connect, a process of its own: prints what it found as JSON."""

from __future__ import annotations

import json
import os
import sys
import warnings

from pyspark.sql import SparkSession

import eventcube as ec
from eventcube.spark.java import ensure_java
from eventcube.spark.ship import ship
from tests.spark.ask_cluster import QUERIES, events, probe

SEVERAL = {"keyed": QUERIES["keyed"], "limit": QUERIES["limit"]}


def main() -> None:
    """Ask a server that is started here."""
    warnings.simplefilter("ignore")
    ensure_java()
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    spark = SparkSession.builder.remote("local[2]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.conf.set("spark.eventcube.partitions", "2")
    frame = spark.createDataFrame(events())
    answer: dict[str, object] = {"kind": type(frame).__module__, "shipped": str(ship(spark))}
    answer["answers"] = {
        name: sorted(map(str, ec.match(frame, query, type="type").toArrow().to_pylist()))
        for name, query in QUERIES.items()
    }
    several = ec.match(frame, SEVERAL, type="type")
    answer["several"] = several.count()
    answer["wide"] = ec.wide(several, "limit", SEVERAL["limit"]).count()
    answer["aside"] = ec.set_aside(
        frame.selectExpr("CAST(ts AS string) ts", "nullif(type, 'A') type"), type="type"
    ).count()
    frame.createOrReplaceTempView("events")
    try:
        ec.match(spark, "PATTERN A a FROM evnets", type="type")
    except ec.BindError as error:
        answer["unknown"] = str(error)
    named = ec.match_all(spark, {"named": "PATTERN A a FROM events RETURN a"}, type="type", flat=True)["named"]
    answer["named"] = [named.columns, named.count()]
    schema = "executor string, package string, kernels string"
    answer["where"] = [row.asDict() for row in frame.mapInArrow(probe(), schema).distinct().collect()]
    spark.stop()
    sys.stdout.write("\n" + json.dumps(answer))


if __name__ == "__main__":
    main()
