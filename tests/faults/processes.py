"""The processes of a session of the operating system, found in /proc, and ended by their ids.

A program that begins a session keeps all that it starts in it, also processes with a group of their own, as PySpark's
daemon has, and those whose parent has ended.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    """A process that runs, and its command."""

    pid: int
    parent: int
    session: int
    command: str


def processes() -> list[Process]:
    """All processes; those that have ended, but were not waited for, are left out."""
    return [found for entry in Path("/proc").iterdir() if entry.name.isdigit() and (found := _read(entry)) is not None]


def members(session: int) -> list[Process]:
    """The processes of a session."""
    return [process for process in processes() if process.session == session]


def kill_session(session: int) -> int:
    """Kill all processes of a session, also those that it starts meanwhile; gives how many there were."""
    killed = set()
    while alive := members(session):
        for process in alive:
            kill(process.pid)
            killed.add(process.pid)
    return len(killed)


def python_workers(session: int) -> tuple[list[Process], list[Process]]:
    """PySpark's daemons in a session, and the workers that they forked."""
    python = [p for p in members(session) if "pyspark.daemon" in p.command]
    daemons = [p for p in python if p.parent not in {other.pid for other in python}]
    return daemons, [p for p in python if p not in daemons]


def kill(pid: int) -> None:
    """Kill a process, unless it has ended by itself."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def wait_until(happened: Callable[[], object], what: str, within: float = 180, pause: float = 0.005) -> None:
    """Wait for something that another process does."""
    end = time.monotonic() + within
    while not happened():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {within:.0f} seconds")
        time.sleep(pause)


def _read(entry: Path) -> Process | None:
    try:
        # The name of the program, in brackets, can hold anything.
        state, parent, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
        command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in "ZX" else Process(int(entry.name), int(parent), int(session), command)
