"""Folders of this user that code may be kept in and loaded from."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path


def private_folders() -> Iterator[Path]:
    """Folders that this user, and nobody else, can write, the most lasting first; they are made if need be."""
    for place in (_in_cache, _in_temporary):
        try:
            folder = place()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = folder.lstat()
        except (OSError, RuntimeError):
            # A user without a home is a RuntimeError.
            continue
        # In a folder for all, another user could have put something there for us to run.
        own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
        if own and os.access(folder, os.W_OK | os.X_OK):
            yield folder


def _in_cache() -> Path:
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (chosen if chosen.is_absolute() else Path.home() / ".cache") / "eventcube"


def _in_temporary() -> Path:
    return Path(tempfile.gettempdir(), f"eventcube-{os.getuid()}")
