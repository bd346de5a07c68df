"""Starts a Spark session on this machine, with the settings that suit eventcube."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from eventcube.spark.java import ensure_java

# Few shuffle partitions and large Arrow batches: each partition is one engine call, and it sorts by itself.
SETTINGS: Mapping[str, str] = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

_LOGGING = Path(__file__).with_name("log4j2.properties").as_uri()


def start_session(
    master: str = "local[*]", settings: Mapping[str, str] | None = None, *, name: str = "eventcube"
) -> SparkSession:
    """A session on `master` (the running one, if there is one), with the given settings over eventcube's own."""
    # Spark says each failed query a second time, as JSON; what went wrong is in the exception already.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    local = master.startswith("local")
    if local:
        ensure_java()
        # Workers must be this interpreter, whatever `python3` is on the PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName(name)
    quiet = {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING}"} if local else {}
    for key, value in {**SETTINGS, **quiet, **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
