"""Times contestants on one core, and prints and saves the results."""

from __future__ import annotations

import csv
import gc
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from rich.console import Console
from rich.table import Table

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Timing:
    """The seconds of each repetition, in wall time and in processor time."""

    seconds: tuple[float, ...]
    processor: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def busy(self) -> float:
        """The median processor time, which other processes disturb less."""
        return statistics.median(self.processor)

    @property
    def best(self) -> float:
        return min(self.seconds)


def timed(run: Callable[[], T]) -> tuple[float, T]:
    """The seconds of a call, and its result."""
    begun = time.perf_counter()
    result = run()
    return time.perf_counter() - begun, result


def alternate(contestants: Mapping[str, Callable[[], object]], repetitions: int) -> dict[str, Timing]:
    """Each contestant's timings, interleaved so that a busy machine disturbs all of them alike."""
    timings: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    for _ in range(repetitions):
        for name, run in contestants.items():
            # Do not time the garbage collection of the previous call.
            gc.collect()
            begun = time.process_time()
            seconds, _result = timed(run)
            timings[name].append((seconds, time.process_time() - begun))
    return {name: Timing(*zip(*pairs, strict=True)) for name, pairs in timings.items()}


def fastest(
    forms: Mapping[str, str],
    run: Callable[[str], object],
    tries: int = 3,
    clock: Callable[[], float] = time.perf_counter,
) -> str:
    """The form with the fastest try; tries are interleaved, so that a busy moment does not decide.

    A form that took more than ten times as long as another is not tried again.
    """
    best = dict.fromkeys(forms, float("inf"))
    tried = [*forms.items()]
    for _ in range(tries):
        tried = [(name, form) for name, form in tried if best[name] <= 10 * min(best.values())]
        for name, form in tried:
            begun = clock()
            run(form)
            best[name] = min(best[name], clock() - begun)
    return min(best, key=best.__getitem__)


def screen(width: int = 120) -> Console:
    """The console for results; wide enough for the tables if the output is not a terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=width)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its name, and its text for a row."""

    name: str
    text: Callable[[Any], str]


def widths(columns: Sequence[Column], rows: Sequence[Any], available: int, least: int = 4) -> list[int]:
    """The widths of the first columns, as many as fit; names may wrap, cells may not."""
    needed = [max(map(len, (*c.name.split(), *map(c.text, rows)))) for c in columns]
    fitting = [n for n in range(len(columns) + 1) if _total(needed[:n]) <= available]
    return needed[: max([least, *fitting])]


def grouped(title: str, columns: Sequence[Column], chosen: Sequence[int], rows: Sequence[Any]) -> Table:
    """A table of the rows in columns of these widths, with a line wherever the first column changes."""
    table = Table(title=title, title_justify="left", width=_total(chosen))
    for column, width in zip(columns, chosen, strict=False):
        table.add_column(column.name, justify="right", width=width)
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        cells = [column.text(row) for column in columns[: len(chosen)]]
        table.add_row(*cells, end_section=after is not None and columns[0].text(after) != cells[0])
    return table


def listed(title: str, columns: Sequence[Column], rows: Sequence[Any]) -> Table:
    """A table of the rows in columns as wide as need be."""
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column.name, justify="right")
    for row in rows:
        table.add_row(*(column.text(row) for column in columns))
    return table


def judged(text: str, *, met: bool) -> str:
    """A figure for a table, green if it meets its goal and red if not."""
    return f"[{'green' if met else 'red'}]{text}[/]"


def _total(chosen: Sequence[int]) -> int:
    """The width of a table, with its lines and a space on both sides of a cell."""
    return sum(chosen) + 3 * len(chosen) + 1


def one_core() -> AbstractContextManager[None]:
    """Pin this process to one core, if the system can."""

    @contextmanager
    def pinned() -> Any:
        threads = pa.cpu_count()
        pa.set_cpu_count(1)
        allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
        if allowed:
            os.sched_setaffinity(0, {max(allowed)})
        try:
            yield
        finally:
            if allowed:
                os.sched_setaffinity(0, allowed)
            pa.set_cpu_count(threads)

    return pinned()


def machine(*packages: str) -> dict[str, str]:
    """The versions of the packages and the system."""
    named = {name: version(name) for name in ("eventcube", "numpy", "numba", "pyarrow", *packages)}
    return {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}", **named}


def save(folder: Path, name: str, header: Mapping[str, object], rows: Sequence[Any]) -> Path:
    """Writes the rows (dataclasses) as `<name>.json`, with the header, and as `<name>.csv`."""
    folder.mkdir(parents=True, exist_ok=True)
    records = [asdict(row) for row in rows]
    path = folder / f"{name}.json"
    path.write_text(json.dumps({**header, "rows": records}, indent=2) + "\n")
    with (folder / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, records[0])
        writer.writeheader()
        writer.writerows(records)
    return path
