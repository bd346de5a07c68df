"""Measures the peak memory of an aggregate over windows and lengths, each in a process of its own.

`python -m eventcube.bench.aggregate_memory events.parquet QUERY` prints a JSON object.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from rich.console import Console

from eventcube.bench.aggregate_cases import Case
from eventcube.bench.aggregate_goals import OF_LEAST_MEMORY as LIMIT
from eventcube.bench.aggregate_goals import Goal
from eventcube.bench.aggregate_sides import answer_of, only_scanning
from eventcube.bench.fresh_process import peak_mib
from eventcube.bench.measure import Column, judged, listed, machine, one_core, save
from eventcube.bench.trades import Trades
from eventcube.options import COUNT

AGGREGATE = "AVG"


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """Peak resident memory in MiB: once the events are read and a plain scan is done, and once an average is known."""

    length: int
    window: int
    events: int
    scan_mib: float
    peak_mib: float


def bench_memory(
    console: Console, out: Path, events: int, lengths: Sequence[int], windows: Sequence[int]
) -> list[MemoryRow]:
    """Measures each length and window, prints the table, and saves it as `aggregate-memory`."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / "aggregate-events.parquet"
    pq.write_table(Trades(events).table(), file)
    rows = [
        MemoryRow(length, window, events, *_measured(file, Case(length, window).text(AGGREGATE)))
        for length in lengths
        for window in windows
    ]
    file.unlink()
    console.print(listed(f"{AGGREGATE} over {events:,} events: peak memory of a new process, MiB", COLUMNS, rows))
    # A longer pattern reads more of the events, with or without an engine, so lengths are not compared.
    goals = [_goal(length, [row.peak_mib for row in rows if row.length == length]) for length in lengths]
    for goal in goals:
        console.print(judged(goal.text, met=goal.met), highlight=False)
    header = {"machine": machine(), "goals": {g.name: {"figure": g.figure, "at most": g.limit} for g in goals}}
    console.print(f"Saved: {save(out, 'aggregate-memory', header, rows)}")
    return rows


def _goal(length: int, peaks: Sequence[float]) -> Goal:
    return Goal(f"memory of SEQ of {length}, the most of all windows over the least", max(peaks) / min(peaks), LIMIT)


def _measured(file: Path, text: str) -> tuple[float, float]:
    command = [sys.executable, "-m", "eventcube.bench.aggregate_memory", str(file), text]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        raise RuntimeError(f"{text} failed in a process of its own:\n{process.stderr}")
    measured = json.loads(process.stdout)
    return measured["scan"], measured["peak"]


def main(file: str, text: str) -> None:
    """Runs a plain scan and the query, and prints the peak memory after each."""
    with one_core():
        table = pq.read_table(file)
        with only_scanning():
            answer_of(table, text, COUNT)
        scan = peak_mib()
        answer_of(table, text)
    print(json.dumps({"scan": scan, "peak": peak_mib()}))


COLUMNS = (
    Column("SEQ of", lambda r: str(r.length)),
    Column("window", lambda r: f"{r.window:,}"),
    Column("plain scan", lambda r: f"{r.scan_mib:.0f}"),
    Column(AGGREGATE, lambda r: f"{r.peak_mib:.0f}"),
)


if __name__ == "__main__":
    main(*sys.argv[1:])
