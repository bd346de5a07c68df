"""How the package begins where it was shipped as a zip file: this file is its `__init__.py` there.

A package inside a zip file has no place of its own to keep compiled kernels in, so every application would compile them
anew, for several seconds on every executor. It is unpacked once for each machine and user instead, in a folder named
after its content.
"""

from __future__ import annotations

import importlib
import os
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path


def unpacked(archive: Path) -> Path | None:
    """The folder with the archive's content, made if need be; None if nothing can be written anywhere."""
    for parent in _places():
        folder = parent / archive.stem
        if folder.is_dir():
            return folder
        try:
            with tempfile.TemporaryDirectory(dir=parent) as temporary:
                inside = Path(temporary, archive.stem)
                zipfile.ZipFile(archive).extractall(inside)
                # Several workers may be doing the same: whoever is first has done it for all.
                inside.rename(folder)
        except OSError:
            pass
        if folder.is_dir():
            return folder
    return None


def _places() -> Iterator[Path]:
    """Folders of this user that can be written, the most lasting first."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    for place in (cache / "eventcube", Path(tempfile.gettempdir(), f"eventcube-{os.getuid()}")):
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = place.stat()
        except OSError:
            continue
        # In a folder for all, another user could have put something there for us to run.
        if found.st_uid == os.getuid() and not found.st_mode & 0o022 and os.access(place, os.W_OK):
            yield place


if __name__ == "eventcube":
    _folder = unpacked(Path(__file__).parent.parent)
    if _folder is not None:
        __path__ = [str(_folder / "eventcube")]

    # What `__init__.py` is elsewhere; `pack` puts it there under this name.
    _begin = importlib.import_module("eventcube._begin")
    globals().update({name: getattr(_begin, name) for name in ("__all__", "__version__", *_begin.__all__)})
