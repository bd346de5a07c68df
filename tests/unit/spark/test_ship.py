"""The package as a zip file, in processes that have nothing else of it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from eventcube.spark.ship import pack
from eventcube.spark.zip_init import unpack

_ASK = """
import eventcube, eventcube.engine.kernels
import pyarrow as pa
events = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "B"]})
found = eventcube.match(events, "PATTERN SEQ(A a, B b) WITHIN 5 us", type="type")
print(eventcube.__file__, eventcube.engine.kernels.__file__, found.num_rows, sep="\\n")
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack(tmp_path_factory.mktemp("zip"))


def _ask(archive: Path, **environment: str) -> list[str]:
    variables = {**os.environ, "PYTHONPATH": str(archive), **environment}
    variables.pop("XDG_CACHE_HOME", None)
    done = subprocess.run([sys.executable, "-c", _ASK], env=variables, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_zip_is_named_after_its_content_and_holds_what_is_not_python_too(archive: Path, tmp_path: Path) -> None:
    assert pack(tmp_path).name == archive.name
    names = zipfile.ZipFile(archive).namelist()
    assert "eventcube/language/grammar.lark" in names
    assert not [n for n in names if "__pycache__" in n]


def test_a_shipped_package_is_unpacked_once_and_keeps_its_compiled_kernels(archive: Path, tmp_path: Path) -> None:
    package, kernels, found = _ask(archive, HOME=str(tmp_path))
    assert package.startswith(str(archive))
    assert kernels.startswith(str(tmp_path / ".cache" / "eventcube" / archive.stem))
    assert found == "2"
    compiled = list(Path(kernels).parent.glob("__pycache__/*.nbi"))
    assert compiled


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder nobody can write")
def test_a_user_without_a_home_uses_the_folder_for_temporary_files(archive: Path, tmp_path: Path) -> None:
    _, kernels, found = _ask(archive, HOME="/proc/nowhere", TMPDIR=str(tmp_path))
    assert kernels.startswith(str(tmp_path))
    assert found == "2"


def test_a_folder_that_others_can_write_is_not_trusted(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "tmp"))
    (tmp_path / "cache" / "eventcube").mkdir(parents=True)
    (tmp_path / "cache" / "eventcube").chmod(0o777)
    folder = unpack(archive)
    assert folder is not None
    assert folder.is_relative_to(tmp_path / "tmp")
