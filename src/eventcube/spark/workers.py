"""Checks that Spark's Python workers can run the package, before a query does."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from eventcube.errors import OptionError
from eventcube.spark.columns import is_connect

_PACKAGE = Path(__file__).parents[1]
# Packages that a worker imports to match events; Spark needs the first two, but no pandas.
_NEEDED = ("numpy", "pyarrow", "eventcube", "numba", "lark", "yaml")
# Run by an interpreter on this machine, in syntax that old versions know.
_PROBE = """
import sys
print('%d.%d' % sys.version_info[:2])
print(sys.executable)
sys.path[1:1] = sys.argv[2:]
import importlib.util
print(', '.join(name for name in sys.argv[1].split(',') if importlib.util.find_spec(name) is None))
"""
_LOCAL = re.compile(r"local(\[.*\])?")
_MISMATCH = re.compile(r"PYTHON_VERSION_MISMATCH.*?different version[^:]*: (?P<worker>\d+\.\d+)", re.DOTALL)
_LACKING = re.compile(r"No module named '([\w.]+)'")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python interpreter: its version (major and minor, which Spark compares) and its path."""

    version: str | None
    path: str

    def __str__(self) -> str:
        return f"Python {self.version} ({self.path})" if self.version else self.path


DRIVER = Interpreter(f"{sys.version_info[0]}.{sys.version_info[1]}", sys.executable)
# The result of the check for each session: None if it passed, or the error.
_checked: dict[object, OptionError | None] = {}


def check_workers(session: SparkSession) -> None:
    """Refuse a session whose Python workers cannot run the package.

    An interpreter on this machine is probed in a process, without a job, unless it is the driver's. On a cluster one
    row is sent through a worker. Each session is checked once, and again after files were sent to its workers.
    """
    key = _identity(session)
    if key not in _checked:
        try:
            _check(session)
            _checked[key] = None
        except OptionError as error:
            # Files that a Connect client sends later are not known here, so check again next time.
            if is_connect(session):
                raise
            _checked[key] = error
    refusal = _checked[key]
    if refusal is not None:
        raise OptionError(refusal.message, code=refusal.code, hint=refusal.hint)


def _identity(session: Any) -> object:
    """The key of a session and the files sent to its workers."""
    if is_connect(session):
        return session.session_id
    context = session.sparkContext
    return context.applicationId, tuple(context._python_includes or ())


def _check(session: Any) -> None:
    if is_connect(session):
        _check_worker(session, "the server's Python")
        return
    context = session.sparkContext
    if _LOCAL.fullmatch(context.master) is None:
        _check_worker(session, context.pythonExec)
    elif not (_is_driver(context.pythonExec) and _is_installed()):
        _check_program(context)


def _is_driver(program: str) -> bool:
    """Whether the program is the driver's interpreter; a link to it from another environment is not."""
    path = shutil.which(program)
    if path is None:
        return False
    worker, driver = Path(path), Path(sys.executable)
    return worker.parent.resolve() == driver.parent.resolve() and worker.resolve() == driver.resolve()


def _is_installed() -> bool:
    """Whether a new process of this interpreter finds the package."""
    if str(_PACKAGE.parent) in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        return True
    try:
        importlib.metadata.distribution("eventcube")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _check_program(context: Any) -> None:
    """Refuse an interpreter on this machine that does not start, has another version, or lacks a package."""
    program, jvm = context.pythonExec, context._jvm
    sent = context._python_includes or ()
    files = Path(jvm.org.apache.spark.SparkFiles.getRootDirectory()) if sent else Path()
    paths = [jvm.PythonUtils.sparkPythonPath(), context.environment.get("PYTHONPATH"), jvm.System.getenv("PYTHONPATH")]
    # The environment in which Spark starts workers.
    variables = {
        **os.environ,
        **context.environment,
        "PATH": jvm.System.getenv("PATH") or "",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    command = [program, "-c", _PROBE, ",".join(_NEEDED), *(str(files / name) for name in sent)]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=60, env=variables)
        why = process.stderr.strip().split("\n")[-1] or f"exit code {process.returncode}"
        output = process.stdout.splitlines()
    except (OSError, subprocess.SubprocessError) as error:
        why, output = str(error), []
    if len(output) < 2:
        raise _refused(
            f"Spark's workers are to run {program}, which does not start ({why}); you run {DRIVER}", local=True
        )
    version, path, *lacks = output
    if version != DRIVER.version:
        raise _other_version(Interpreter(version, path), local=True)
    if lacks and lacks[0]:
        raise _lacking(Interpreter(version, path), lacks[0], local=True)


def _check_worker(session: Any, named: str) -> None:
    """Send one row through a worker, which returns its version, its path and the packages it lacks."""
    try:
        row = session.range(0, 1, 1, 1).mapInArrow(_probe(_NEEDED), "version string, path string, lacks string")
        version, path, lacks = row.collect()[0]
    except (PySparkException, Py4JError) as error:
        message = str(error)
        if mismatch := _MISMATCH.search(message):
            raise _other_version(Interpreter(mismatch["worker"], named), local=False) from None
        if lacking := _LACKING.search(message):
            raise _lacking(Interpreter(None, named), lacking[1].split(".")[0], local=False) from None
        if "Cannot run program" in message:
            raise _refused(f"Spark's workers cannot start {named}; you run {DRIVER}", local=False) from None
        # Another failure, which the query itself reports better.
        return
    if lacks:
        raise _lacking(Interpreter(version, path), lacks, local=False)


def _probe(needed: tuple[str, ...]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that a worker runs; pickled by value, since the worker may lack this module."""

    def probe(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib.util
        import sys

        for _ in batches:
            pass
        lacks = [name for name in needed if importlib.util.find_spec(name) is None]
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        row = {"version": version, "path": sys.executable, "lacks": ", ".join(lacks)}
        yield pa.RecordBatch.from_pylist([row])

    return probe


def _other_version(worker: Interpreter, local: bool) -> OptionError:
    return _refused(f"Spark's workers run {worker}, but you run {DRIVER}: the versions must be the same", local)


def _lacking(worker: Interpreter, lacks: str, local: bool) -> OptionError:
    ship = "" if local else "; eventcube.spark.ship.ship(spark) sends eventcube itself"
    return _refused(f"Spark's workers run {worker}, which lacks {lacks}; you run {DRIVER}", local, ship)


def _refused(message: str, local: bool, more: str = "") -> OptionError:
    if local:
        hint = f"before the session starts, set PYSPARK_PYTHON={DRIVER.path} in the environment"
    else:
        hint = (
            f"install eventcube for a Python {DRIVER.version} there, name it in PYSPARK_PYTHON or "
            f"spark.pyspark.python, and start a new session{more}"
        )
    return OptionError(message, code="EC436", hint=hint)
