"""How the package begins where it was shipped as a zip file: this file is its `__init__.py` there.

A package inside a zip file has no place of its own to keep compiled kernels in, so every application would compile them
anew, for several seconds on every executor. It is unpacked once for each machine and user instead, in a folder named
after its content.
"""

from __future__ import annotations

import importlib
import tempfile
import zipfile
from pathlib import Path

from eventcube.folders import private_folders


def unpacked(archive: Path) -> Path | None:
    """The folder with the archive's content, made if need be; None if nothing can be written anywhere."""
    for parent in private_folders():
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


if __name__ == "eventcube":
    _folder = unpacked(Path(__file__).parent.parent)
    if _folder is not None:
        __path__ = [str(_folder / "eventcube")]

    # What `__init__.py` is elsewhere; `pack` puts it there under this name.
    _begin = importlib.import_module("eventcube._begin")
    globals().update({name: getattr(_begin, name) for name in ("__all__", "__version__", *_begin.__all__)})
