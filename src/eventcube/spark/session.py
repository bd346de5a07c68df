"""Starts a Spark session on this machine, with the settings that suit eventcube."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkConf, SparkContext
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
    for logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    local = master.startswith("local")
    if local:
        ensure_java()
        # Workers must be this interpreter, whatever `python3` is on the PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    quiet = {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING}"} if local else {}
    chosen = {"spark.master": master, "spark.app.name": name, **SETTINGS, **quiet, **(settings or {})}
    builder = SparkSession.builder
    for key, value in chosen.items():
        builder = builder.config(key, value)
    if SparkContext._gateway is not None or "://" in master.removeprefix("spark://").removeprefix("k8s://"):
        return builder.getOrCreate()
    return _start_jvm_and_session(builder, chosen)


def _start_jvm_and_session(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession:
    """A session in a JVM of its own, which ends if the start fails or Ctrl-C comes meanwhile."""
    try:
        with _interrupted_later():
            SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(settings.items())))
        return builder.getOrCreate()
    except BaseException:
        _end_jvm()
        raise


@contextmanager
def _interrupted_later() -> Iterator[None]:
    """Hold Ctrl-C back until the block is done: a JVM cut off while it starts would never end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    noted: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if noted:
        raise KeyboardInterrupt


def _end_jvm() -> None:
    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.kill()
        process.wait()
        SparkContext._gateway = SparkContext._jvm = None
