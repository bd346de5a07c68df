"""Answers one query in a process of its own: what start-up costs, and how much memory the answer takes.

`python -m eventcube.bench.fresh events.parquet Q1 BEGUN` prints a JSON object; BEGUN is the parent's monotonic clock.
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
class Fresh:
    """What a new process took."""

    matches: int
    peak_mib: float
    """The most memory it ever held, events and whole result included."""
    first_result: float
    """Seconds from its start until the result was there: interpreter, imports, reading the file, answering."""
    first_answer: float
    """Seconds of the first answer alone."""
    second_answer: float
    """Seconds of the same answer once more."""


def in_fresh_process(events: Path, query: str, *, compiled: bool = True) -> Fresh:
    """Measures a query in a new process; not `compiled` means that nothing was ever compiled on this machine."""
    with tempfile.TemporaryDirectory() as empty:
        environment = dict(os.environ) if compiled else {**os.environ, "NUMBA_CACHE_DIR": empty}
        command = [sys.executable, "-m", "eventcube.bench.fresh", str(events), query, repr(time.monotonic())]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"{query} failed in a process of its own:\n{done.stderr}")
    return Fresh(**json.loads(done.stdout))


def peak_mib() -> float:
    """The most memory this process has held, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not ru_maxrss, which a child takes over from the process that started it.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main(events: str, query: str, begun: str) -> None:
    """Answers the query twice and prints what it took."""
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
    print(json.dumps(asdict(Fresh(matches, peak, first - float(begun), first - started, second - first))))


if __name__ == "__main__":
    main(*sys.argv[1:])
