"""Compiled loops are kept where something can be written, and only where nobody else can."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import eventcube
from eventcube.engine import compiled
from eventcube.errors import EventCubeWarning

_ASK = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from eventcube.engine import kernels
    from eventcube.engine.compiled import cache_folder
print(cache_folder())
print(*(str(w.message).splitlines()[0] for w in caught), sep="\\n")
"""


@pytest.fixture
def read_only(tmp_path: Path) -> Path:
    """The package where nothing can be written beside the engine, not even by root: a file is in the way."""
    package = Path(eventcube.__file__).parent
    copy = tmp_path / "lib" / "eventcube"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "engine" / "__pycache__").write_text("")
    return copy


def ask(package: Path, code: str = _ASK, **environment: str) -> list[str]:
    variables = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    variables |= {"PYTHONPATH": str(package.parent), **environment}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_the_users_cache_is_used_and_said_once(read_only: Path, tmp_path: Path) -> None:
    folder, said = ask(read_only, HOME=str(tmp_path))
    assert Path(folder).is_relative_to(tmp_path / ".cache" / "eventcube" / "compiled")
    assert said.endswith(f"so the engine's compiled loops are kept in {folder}")
    Path(folder, "kernels.nbi").touch()
    assert ask(read_only, HOME=str(tmp_path)) == [folder, ""]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder nobody can write")
def test_a_user_without_a_home_uses_a_private_folder_for_temporary_files(read_only: Path, tmp_path: Path) -> None:
    folder, _ = ask(read_only, HOME="/proc/nowhere", TMPDIR=str(tmp_path))
    place = tmp_path / f"eventcube-{os.getuid()}"
    assert Path(folder).is_relative_to(place)
    assert place.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder nobody can write")
@pytest.mark.parametrize("how", ["others can write it", "a link"])
def test_a_folder_that_may_be_anothers_is_not_used(read_only: Path, tmp_path: Path, how: str) -> None:
    place = tmp_path / f"eventcube-{os.getuid()}"
    if how == "a link":
        (tmp_path / "other").mkdir(mode=0o700)
        place.symlink_to(tmp_path / "other")
    else:
        place.mkdir()
        place.chmod(0o777)
    folder, said = ask(read_only, HOME="/proc/nowhere", TMPDIR=str(tmp_path))
    assert folder == "None"
    assert said.startswith("the engine's compiled loops can be kept nowhere")
    assert not any(place.iterdir())


def test_a_folder_that_was_named_is_used(read_only: Path, tmp_path: Path) -> None:
    folder, said = ask(read_only, NUMBA_CACHE_DIR=str(tmp_path / "named"), HOME=str(tmp_path))
    assert Path(folder).is_relative_to(tmp_path / "named")
    assert said == ""


def test_loops_compiled_by_whoever_installed_the_package_are_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside, folder = tmp_path / "beside", tmp_path / "kept"
    beside.mkdir()
    folder.mkdir()
    (beside / "kernels.seek.nbi").write_bytes(b"index")
    (beside / "kernels.pyc").write_bytes(b"other")
    monkeypatch.setattr(compiled, "_SOURCE_CACHE", beside)
    monkeypatch.setattr(compiled, "_FALLBACK", str(tmp_path))
    monkeypatch.setattr(compiled, "cache_folder", lambda: folder)
    with pytest.warns(EventCubeWarning, match=f"are kept in {folder}"):
        compiled.copy_compiled_loops()
    assert {f.name: f.read_bytes() for f in folder.iterdir()} == {"kernels.seek.nbi": b"index"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled.copy_compiled_loops()


def test_where_nothing_can_be_kept_loops_are_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    njit = compiled.numba.njit

    def refusing(*functions: Any, **settings: bool) -> Any:
        if settings.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*functions, **settings)

    monkeypatch.setattr(compiled.numba, "njit", refusing)
    monkeypatch.setattr(compiled, "LOOPS", {})
    assert compiled.compiled(lambda x: x + 1)(1) == 2
