"""Files and folders under a name of their own until they are whole, beside the place that they are for.

While one is written, its writer holds a lock on it. So what a process that was killed has left behind can be told from
what another one is writing, and the next run for the same place removes it.
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
# Anything younger may be about to be locked.
_YOUNG_SECONDS = 60


@contextmanager
def temporary_file(path: Path) -> Iterator[Path]:
    """An empty file beside the path, which takes its place, and that of what was there, only when it is whole."""
    _remove_abandoned(path)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=_prefix(path))
    temporary = Path(name)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield temporary
        temporary.chmod(0o644)
        remove(path)
        temporary.replace(path)
    finally:
        os.close(descriptor)
        temporary.unlink(missing_ok=True)


@contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """A folder to write to, which takes the place of the path, and of what was there, only when it is whole."""
    _remove_abandoned(path)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=_prefix(path)))
    descriptor = os.open(temporary, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # One further down: Spark removes a folder and makes it anew, which would lose the lock.
        inside = temporary / path.name
        inside.mkdir(mode=0o755)
        yield inside
        remove(path)
        inside.replace(path)
    finally:
        os.close(descriptor)
        shutil.rmtree(temporary, ignore_errors=True)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _prefix(path: Path) -> str:
    return f".{path.name}.{_MARK}-"


def _remove_abandoned(path: Path) -> None:
    """Remove what earlier runs for the same place left behind when they were killed."""
    for left in path.parent.iterdir():
        if left.name.startswith(_prefix(path)):
            # Gone meanwhile, another user's, or locked by a process that is writing it: none of our business.
            with suppress(OSError):
                _remove_if_abandoned(left)


def _remove_if_abandoned(left: Path) -> None:
    if clock.time() - left.stat().st_mtime < _YOUNG_SECONDS:
        return
    descriptor = os.open(left, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove(left)
    finally:
        os.close(descriptor)
