"""Whether Spark's Python workers can run the package, asked before a query does."""

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
# What a worker imports to match events: Spark's own part needs the first two, and for this no pandas.
_NEEDED = ("numpy", "pyarrow", "eventcube", "numba", "lark", "yaml")
# What an interpreter on this machine is asked: it may be so old that it knows little.
_ASK = """
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
    """A Python: its version, as far as Spark tells workers apart by it, and the path of its program."""

    version: str | None
    path: str

    def __str__(self) -> str:
        return f"Python {self.version} ({self.path})" if self.version else self.path


OWN = Interpreter(f"{sys.version_info[0]}.{sys.version_info[1]}", sys.executable)
# What was found out about the workers of each session: None if they are able, or why they are refused.
_known: dict[object, OptionError | None] = {}


def check_workers(session: SparkSession) -> None:
    """Refuse a session whose Python workers cannot run the package.

    On this machine the interpreter is asked by itself, before any job runs; where it is this very one, nothing is
    asked. Elsewhere one row goes through a worker. Each session is asked once, and again if files were sent to its
    workers since.
    """
    key = _identity(session)
    if key not in _known:
        try:
            _ask(session)
            _known[key] = None
        except OptionError as error:
            # What a Connect client sends to its workers is not known here.
            if is_connect(session):
                raise
            _known[key] = error
    refusal = _known[key]
    if refusal is not None:
        raise OptionError(refusal.message, code=refusal.code, hint=refusal.hint)


def _identity(session: Any) -> object:
    """What tells the session, and what its workers have, from others."""
    if is_connect(session):
        return session.session_id
    context = session.sparkContext
    return context.applicationId, tuple(context._python_includes or ())


def _ask(session: Any) -> None:
    if is_connect(session):
        _check_worker(session, "the server's Python")
        return
    context = session.sparkContext
    if _LOCAL.fullmatch(context.master) is None:
        _check_worker(session, context.pythonExec)
    elif not (_is_own(context.pythonExec) and _is_installed()):
        _check_program(context)


def _is_own(program: str) -> bool:
    """Whether the program is the interpreter that runs now; another environment's is not, though it be a link to it."""
    found = shutil.which(program)
    if found is None:
        return False
    there, here = Path(found), Path(sys.executable)
    return there.parent.resolve() == here.parent.resolve() and there.resolve() == here.resolve()


def _is_installed() -> bool:
    """Whether every start of this interpreter finds the package, however it was found in this one."""
    if str(_PACKAGE.parent) in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        return True
    try:
        importlib.metadata.distribution("eventcube")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _check_program(context: Any) -> None:
    """Refuse an interpreter on this machine that does not start, has another version, or lacks what is needed."""
    program, jvm = context.pythonExec, context._jvm
    sent = context._python_includes or ()
    files = Path(jvm.org.apache.spark.SparkFiles.getRootDirectory()) if sent else Path()
    paths = [jvm.PythonUtils.sparkPythonPath(), context.environment.get("PYTHONPATH"), jvm.System.getenv("PYTHONPATH")]
    # As Spark would start it.
    variables = {
        **os.environ,
        **context.environment,
        "PATH": jvm.System.getenv("PATH") or "",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    question = [program, "-c", _ASK, ",".join(_NEEDED), *(str(files / name) for name in sent)]
    try:
        asked = subprocess.run(question, capture_output=True, text=True, timeout=60, env=variables)
        why = asked.stderr.strip().split("\n")[-1] or f"exit code {asked.returncode}"
        told = asked.stdout.splitlines()
    except (OSError, subprocess.SubprocessError) as error:
        why, told = str(error), []
    if len(told) < 2:
        raise _refused(f"Spark's workers are to run {program}, which does not start ({why}); you run {OWN}", local=True)
    version, path, *lacks = told
    if version != OWN.version:
        raise _other_version(Interpreter(version, path), local=True)
    if lacks and lacks[0]:
        raise _lacking(Interpreter(version, path), lacks[0], local=True)


def _check_worker(session: Any, named: str) -> None:
    """Send one row through a worker, which tells what it is and what it lacks."""
    try:
        row = session.range(0, 1, 1, 1).mapInArrow(_question(_NEEDED), "version string, path string, lacks string")
        version, path, lacks = row.collect()[0]
    except (PySparkException, Py4JError) as error:
        told = str(error)
        if found := _MISMATCH.search(told):
            raise _other_version(Interpreter(found["worker"], named), local=False) from None
        if lacking := _LACKING.search(told):
            raise _lacking(Interpreter(None, named), lacking[1].split(".")[0], local=False) from None
        if "Cannot run program" in told:
            raise _refused(f"Spark's workers cannot start {named}; you run {OWN}", local=False) from None
        # It is not the interpreter, so the query itself will tell it better.
        return
    if lacks:
        raise _lacking(Interpreter(version, path), lacks, local=False)


def _question(needed: tuple[str, ...]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that a worker runs; sent as it is, since the worker may lack this module."""

    def tell(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib.util
        import sys

        for _ in batches:
            pass
        lacks = [name for name in needed if importlib.util.find_spec(name) is None]
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        row = {"version": version, "path": sys.executable, "lacks": ", ".join(lacks)}
        yield pa.RecordBatch.from_pylist([row])

    return tell


def _other_version(worker: Interpreter, local: bool) -> OptionError:
    return _refused(f"Spark's workers run {worker}, but you run {OWN}: the versions must be the same", local)


def _lacking(worker: Interpreter, lacks: str, local: bool) -> OptionError:
    ship = "" if local else "; eventcube.spark.ship.ship(spark) sends eventcube itself"
    return _refused(f"Spark's workers run {worker}, which lacks {lacks}; you run {OWN}", local, ship)


def _refused(message: str, local: bool, more: str = "") -> OptionError:
    if local:
        hint = f"before the session starts, set PYSPARK_PYTHON={OWN.path} in the environment"
    else:
        hint = (
            f"install eventcube for a Python {OWN.version} there, name it in PYSPARK_PYTHON or "
            f"spark.pyspark.python, and start a new session{more}"
        )
    return OptionError(message, code="EC436", hint=hint)
