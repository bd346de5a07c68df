"""Private folders of this user, safe to store code in and load it from."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path


def private_folders() -> Iterator[Path]:
    """Folders that only this user can write, created if needed; the most durable first."""
    for location in (_in_cache, _in_temporary):
        try:
            folder = location()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = folder.lstat()
        except (OSError, RuntimeError):
            # Path.home() raises RuntimeError for a user without a home.
            continue
        # In a shared folder, another user could have planted code for us to run.
        private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022
        if private and os.access(folder, os.W_OK | os.X_OK):
            yield folder


def _in_cache() -> Path:
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (configured if configured.is_absolute() else Path.home() / ".cache") / "eventcube"


def _in_temporary() -> Path:
    return Path(tempfile.gettempdir(), f"eventcube-{os.getuid()}")
