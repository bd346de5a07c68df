"""Starts a Spark session on this machine, with the settings that suit eventcube."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from eventcube.signals import signals_wait
from eventcube.spark.java import ensure_java

# Few shuffle partitions and large Arrow batches: each partition is one engine call, and it sorts by itself.
SETTINGS: Mapping[str, str] = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

# The time that a JVM gets to remove its temporary files.
PATIENCE_SECONDS = 20
_LOGGING = Path(__file__).with_name("log4j2.properties").as_uri()


def start_session(
    master: str = "local[*]", settings: Mapping[str, str] | None = None, *, name: str = "eventcube"
) -> SparkSession:
    """A session on `master` (the running one, if there is one), with the given settings over eventcube's own."""
    # Spark logs each failed query again, as JSON; the exception says it already.
    for logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    local = master.startswith("local")
    if local:
        ensure_java()
        # Workers must be this interpreter, whatever `python3` is on the PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    quiet = {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING}"} if local else {}
    config = {"spark.master": master, "spark.app.name": name, **SETTINGS, **quiet, **(settings or {})}
    builder = SparkSession.builder
    for key, value in config.items():
        builder = builder.config(key, value)
    if SparkContext._gateway is not None or "://" in master.removeprefix("spark://").removeprefix("k8s://"):
        return builder.getOrCreate()
    return _start_jvm_and_session(builder, config)


def _start_jvm_and_session(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession:
    """A session in a JVM of its own, which ends if the start fails or a signal comes meanwhile."""
    try:
        # A JVM that is interrupted while it starts would never end.
        with signals_wait():
            SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(settings.items())))
        return builder.getOrCreate()
    except BaseException:
        end_jvm(PATIENCE_SECONDS)
        raise


def end_jvm(patience: float = 0) -> bool:
    """End the JVM that Python started, with all its jobs; false if there is none.

    It gets `patience` seconds to clean up.
    """
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    if patience:
        # Or the server would print that its connection is lost.
        server = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
        if server is not None:
            server.shutdown()
        with suppress(OSError):
            # The JVM ends when its standard input closes.
            process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    process.kill()
    process.wait()
    SparkContext._gateway = SparkContext._jvm = None
    return True
