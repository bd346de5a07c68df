"""Runs one query in a new process, to measure its start-up time and memory.

`python -m eventcube.bench.fresh_process events.parquet Q1 BEGUN` prints a JSON object; BEGUN is the parent's
monotonic clock.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from eventcube.bench.measure import one_core
from eventcube.bench.workload import EVERY_QUERY


@dataclass(frozen=True, slots=True)
class FreshProcess:
    """The measurements of a new process."""

    matches: int
    peak_mib: float
    """The peak memory, with events and the whole result."""
    first_result: float
    """Seconds from its start to the result: interpreter, imports, reading the file, the query."""
    first_answer: float
    """Seconds of the first answer alone."""
    second_answer: float
    """Seconds of the same answer once more."""


def in_fresh_process(events: Path, query: str, *, compiled: bool = True) -> FreshProcess:
    """Measures a query in a new process; without `compiled`, with an empty cache of compiled loops."""
    with tempfile.TemporaryDirectory() as empty:
        environment = dict(os.environ) if compiled else {**os.environ, "NUMBA_CACHE_DIR": empty}
        command = [sys.executable, "-m", "eventcube.bench.fresh_process", str(events), query, repr(time.monotonic())]
        process = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if process.returncode:
        raise RuntimeError(f"{query} failed in a process of its own:\n{process.stderr}")
    return FreshProcess(**json.loads(process.stdout))


def peak_mib() -> float:
    """The peak memory of this process, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not ru_maxrss, which a child inherits from its parent.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main(events: str, query: str, begun: str) -> None:
    """Runs the query twice and prints the measurements."""
    with one_core():
        import pyarrow.parquet as pq

        from eventcube.bench.engine import eventcube_answer

        table = pq.read_table(events)
        started = time.monotonic()
        matches = eventcube_answer(table, EVERY_QUERY[query]).num_rows
        first = time.monotonic()
        peak = peak_mib()
        eventcube_answer(table, EVERY_QUERY[query])
        second = time.monotonic()
    print(json.dumps(asdict(FreshProcess(matches, peak, first - float(begun), first - started, second - first))))


if __name__ == "__main__":
    main(*sys.argv[1:])
