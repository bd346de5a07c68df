"""The `__init__.py` of the package in the zip file that `ship` sends to executors.

Numba cannot cache compiled kernels inside a zip file, so every application would compile them again, for several
seconds on every executor. This file unpacks the package instead, once for each machine and user, into a folder named
by a hash of its content.
"""

from __future__ import annotations

import importlib
import tempfile
import zipfile
from pathlib import Path

from eventcube.folders import private_folders


def unpack(archive: Path) -> Path | None:
    """The folder with the archive's content, created if needed; None if no folder can be written."""
    for parent in private_folders():
        folder = parent / archive.stem
        if folder.is_dir():
            return folder
        try:
            with tempfile.TemporaryDirectory(dir=parent) as temporary:
                inside = Path(temporary, archive.stem)
                zipfile.ZipFile(archive).extractall(inside)
                # Several workers may do this at once: the first one wins.
                inside.rename(folder)
        except OSError:
            pass
        if folder.is_dir():
            return folder
    return None


if __name__ == "eventcube":
    _folder = unpack(Path(__file__).parent.parent)
    if _folder is not None:
        __path__ = [str(_folder / "eventcube")]

    # The regular `__init__.py`, which `pack` stores under this name.
    _package = importlib.import_module("eventcube._package_init")
    globals().update({name: getattr(_package, name) for name in ("__all__", "__version__", *_package.__all__)})
