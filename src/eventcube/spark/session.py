"""Starts a Spark session on this machine, with the settings that suit eventcube."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
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

# So long a JVM may take to remove its own temporary files.
PATIENCE_SECONDS = 20
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
    """A session in a JVM of its own, which ends if the start fails or a signal comes meanwhile."""
    try:
        with _signals_later():
            SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(settings.items())))
        return builder.getOrCreate()
    except BaseException:
        end_jvm(PATIENCE_SECONDS)
        raise


@contextmanager
def _signals_later() -> Iterator[None]:
    """Hold back Ctrl-C, and other signals that Python handles, while the block runs.

    A JVM cut off while it starts would never end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    noted: list[int] = []
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    held = {number: handler for number, handler in handlers.items() if callable(handler)}
    for each in held:
        signal.signal(each, lambda number, _: noted.append(number))
    try:
        yield
    finally:
        for each, handler in held.items():
            signal.signal(each, handler)
    for number in noted:
        held[signal.Signals(number)](number, None)


def end_jvm(patience: float = 0) -> bool:
    """End the JVM that Python started, if it did, and whatever runs there.

    For so many seconds it may clean up behind itself.
    """
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    if patience:
        # Or it would print that nobody writes to it any more.
        listening = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
        if listening is not None:
            listening.shutdown()
        with suppress(OSError):
            # It ends by itself when nobody can write to it any more.
            process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    process.kill()
    process.wait()
    SparkContext._gateway = SparkContext._jvm = None
    return True
