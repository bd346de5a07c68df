"""Sends the package to the executors of a cluster."""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from eventcube.spark.columns import is_connect

_PACKAGE = Path(__file__).parent.parent
_SKIPPED = {"__pycache__"}


def ship(spark: Any) -> Path:
    """Send this package to every executor of the session, also to later ones; returns the zip file.

    What the package needs (numpy, numba, pyarrow, lark, pyyaml) must be installed there.
    """
    folder = Path(tempfile.mkdtemp(prefix="eventcube-"))
    # Executors that start later fetch the file from here, so it stays until this process ends.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = pack(folder)
    if is_connect(spark):
        spark.addArtifacts(str(archive), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(archive))
    return archive


def pack(folder: Path) -> Path:
    """Write a zip file of the package into the folder, named by a hash of its content."""
    files = {
        path.relative_to(_PACKAGE.parent).as_posix(): path.read_bytes()
        for path in sorted(_PACKAGE.rglob("*"))
        if path.is_file() and not _SKIPPED.intersection(path.parts)
    }
    files["eventcube/_package_init.py"] = files["eventcube/__init__.py"]
    files["eventcube/__init__.py"] = files["eventcube/spark/zip_init.py"]
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name} {len(content)} ".encode() + content)
    archive = folder / f"eventcube-{digest.hexdigest()[:16]}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in files.items():
            zipped.writestr(name, content)
    return archive
