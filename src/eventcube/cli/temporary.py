"""Atomic output: temporary files and folders beside the output path, renamed to it when they are complete.

The writer locks its temporary file. Unlocked ones were left behind by a killed process, and the next run for the same
path removes them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time as clock
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_MARK = "eventcube"
# A younger file may not be locked yet.
_YOUNG_SECONDS = 60


@contextmanager
def temporary_file(path: Path) -> Iterator[Path]:
    """An empty file beside the path, which it replaces at the end of the block."""
    _remove_abandoned(path)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=_prefix(path))
    temporary = Path(name)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield temporary
        temporary.chmod(0o644)
        if path.is_dir() and not path.is_symlink():
            remove(path)
        temporary.replace(path)
    finally:
        os.close(descriptor)
        temporary.unlink(missing_ok=True)


@contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """A folder beside the path, which it replaces at the end of the block."""
    _remove_abandoned(path)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=_prefix(path)))
    descriptor = os.open(temporary, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # A subfolder: Spark removes and creates its output folder, which would lose the lock.
        inside = temporary / path.name
        inside.mkdir(mode=0o755)
        yield inside
        if path.exists() or path.is_symlink():
            # Renamed, not removed, so that a kill cannot leave half of it.
            path.replace(temporary / "previous")
        inside.replace(path)
    finally:
        os.close(descriptor)
        shutil.rmtree(temporary, ignore_errors=True)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _prefix(path: Path) -> str:
    return f".{path.name}.{_MARK}-"


def _remove_abandoned(path: Path) -> None:
    """Remove the temporary files of killed runs for the same path."""
    for leftover in path.parent.iterdir():
        if leftover.name.startswith(_prefix(path)):
            # It may be removed already, another user's, or locked by its writer.
            with suppress(OSError):
                _remove_if_abandoned(leftover)


def _remove_if_abandoned(leftover: Path) -> None:
    if clock.time() - leftover.stat().st_mtime < _YOUNG_SECONDS:
        return
    descriptor = os.open(leftover, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove(leftover)
    finally:
        os.close(descriptor)
