"""A standalone cluster on this machine: a master and workers, each a process of its own, ended by their ids."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from eventcube.spark.java import find_java

STARTED_WITHIN = 90


@contextmanager
def standalone(folder: Path, workers: int = 2, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """The address of a running cluster; it is gone when the block ends, however it ends."""
    home = Path(pyspark.__file__).parent
    variables = {
        **os.environ,
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / "work"),
        **(environment or {}),
    }
    command = [str(home / "bin" / "spark-class")]
    with ExitStack() as stack:
        master = [*command, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0"]
        log = stack.enter_context(_running([*master, "--webui-port", "0"], folder / "master.log", variables))
        address = _said(log, r"Starting Spark master at (spark://\S+)")
        worker = [*command, "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0"]
        logs = [
            stack.enter_context(
                _running([*worker, "--cores", "1", "--memory", "1g", address], folder / f"worker{i}.log", variables)
            )
            for i in range(workers)
        ]
        for log in logs:
            _said(log, r"(Successfully registered with master)")
        yield address


@contextmanager
def _running(command: list[str], log: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """A process in a group of its own, so that what it starts ends with it."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)
    try:
        yield log
    finally:
        for way in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, way)
                process.wait(timeout=20)
                break
            except subprocess.TimeoutExpired:
                continue
            except ProcessLookupError:
                process.wait(timeout=20)
                break


def _said(log: Path, pattern: str) -> str:
    """What a process wrote to its log, as soon as it has."""
    end = time.monotonic() + STARTED_WITHIN
    while time.monotonic() < end:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.2)
    raise TimeoutError(f"{log.name} never said {pattern!r}:\n{log.read_text(errors='replace')[-2000:]}")
