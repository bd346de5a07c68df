"""Shows progress on a terminal, and removes it at the end."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

INTERVAL_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Reading:
    """The progress of the work; `total` is None while it is unknown."""

    done: int = 0
    total: int | None = None
    note: str = ""


@contextmanager
def working(title: str, poll: Callable[[], Reading] | None = None, *, quiet: bool = False) -> Iterator[None]:
    """Show the title, the elapsed time and the progress from `poll`, on standard error, while the block runs."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    # A copy of the descriptor: standard error may be redirected while Spark starts.
    with os.fdopen(os.dup(sys.stderr.fileno()), "w") as terminal, _progress_bar(title, poll, Console(file=terminal)):
        yield


@contextmanager
def _progress_bar(title: str, poll: Callable[[], Reading] | None, console: Console) -> Iterator[None]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(24), TextColumn("{task.fields[note]}"))
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task(title, total=None, note="")
        stop = threading.Event()
        watcher = threading.Thread(target=_watch, args=(progress, task, poll, stop), daemon=True)
        if poll is not None:
            watcher.start()
        try:
            yield
        finally:
            stop.set()
            if poll is not None:
                watcher.join(timeout=2)


def _watch(progress: Progress, task: TaskID, poll: Callable[[], Reading], stop: threading.Event) -> None:
    while not stop.wait(INTERVAL_SECONDS):
        reading = poll()
        progress.update(task, completed=reading.done, total=reading.total, note=reading.note)
