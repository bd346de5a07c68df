"""Workers of another Python, or without the package, as far as that can be told without Spark."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException, PySparkRuntimeError

from eventcube.errors import OptionError
from eventcube.spark import workers
from eventcube.spark.workers import DRIVER, check_workers


class Session:
    """A session with one worker, which answers a question or fails."""

    def __init__(self, program: str, master: str = "spark://there:7077", answer: Any = None) -> None:
        self.sparkContext = SimpleNamespace(
            applicationId=f"{program} {master}",
            pythonExec=program,
            master=master,
            environment={},
            _python_includes=[],
            _jvm=SimpleNamespace(
                PythonUtils=SimpleNamespace(sparkPythonPath=lambda: ""), System=SimpleNamespace(getenv=os.environ.get)
            ),
        )
        self.answer = answer
        self.asked = 0

    def range(self, *_: int) -> Session:
        return self

    def mapInArrow(self, question: Any, _: str) -> Session:
        self.question = question
        return self

    def collect(self) -> list[tuple[str, ...]]:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is not None:
            return [self.answer]
        (batch,) = self.question(iter([pa.RecordBatch.from_pydict({"id": [0]})]))
        return [tuple(row.values()) for row in batch.to_pylist()]


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_checked", {})


def refusal(session: Session) -> str:
    with pytest.raises(OptionError) as caught:
        check_workers(session)  # type: ignore[arg-type]
    assert caught.value.code == "EC436"
    return str(caught.value)


def program(folder: Path, said: str) -> str:
    """An interpreter that answers what it is told to."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{said}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The programs that were started."""
    programs: list[str] = []
    run = subprocess.run

    def noted(command: list[str], **settings: Any) -> Any:
        programs.append(command[0])
        return run(command, **settings)

    monkeypatch.setattr(subprocess, "run", noted)
    return programs


def test_this_interpreter_on_this_machine_is_not_asked(monkeypatch: pytest.MonkeyPatch, started: list[str]) -> None:
    session = Session(sys.executable, "local[*]")
    check_workers(session)  # type: ignore[arg-type]
    assert started == []

    def nowhere(_: str) -> None:
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(importlib.metadata, "distribution", nowhere)
    monkeypatch.setattr(workers, "_PACKAGE", Path("/elsewhere/eventcube"))
    again = Session(sys.executable, "local[2]")
    for _ in range(2):
        check_workers(again)  # type: ignore[arg-type]
    assert started == [sys.executable], "a package found by this process alone; once is enough"
    assert session.asked == again.asked == 0


def test_workers_elsewhere_are_asked_once() -> None:
    session = Session("python3")
    check_workers(session)  # type: ignore[arg-type]
    check_workers(session)  # type: ignore[arg-type]
    assert session.asked == 1


def test_another_version_here_is_told_before_any_job_and_not_asked_again(tmp_path: Path, started: list[str]) -> None:
    session = Session(program(tmp_path, "echo 3.99; echo /opt/python; echo pyarrow"), "local[1]")
    said = refusal(session)
    assert f"Spark's workers run Python 3.99 (/opt/python), but you run {DRIVER}" in said
    assert f"PYSPARK_PYTHON={sys.executable}" in said
    assert refusal(session) == said
    assert (len(started), session.asked) == (1, 0)


def test_what_an_interpreter_here_lacks_is_told_before_any_job(tmp_path: Path, started: list[str]) -> None:
    session = Session(
        program(tmp_path, f"echo {DRIVER.version}; echo /usr/bin/python3; echo pyarrow, numba"), "local[1]"
    )
    worker = f"Python {DRIVER.version} (/usr/bin/python3)"
    said = f"Spark's workers run {worker}, which lacks pyarrow, numba; you run {DRIVER}\n"
    assert said in refusal(session)
    assert said in refusal(session)
    assert (len(started), session.asked) == (1, 0)


def test_an_interpreter_is_asked_as_spark_would_start_it(tmp_path: Path) -> None:
    """It finds what lies on the path of the JVM, of the session's environment, and in files that were sent."""
    for name in ("jvm", "environment"):
        (tmp_path / name).mkdir()
    (tmp_path / "jvm" / "one.py").touch()
    (tmp_path / "environment" / "two.py").touch()
    with zipfile.ZipFile(tmp_path / "sent.zip", "w") as sent:
        sent.writestr("three.py", "")
    context = Session(sys.executable, "local[1]").sparkContext
    context.environment = {"PYTHONPATH": str(tmp_path / "environment")}
    variables = {**os.environ, "PYTHONPATH": str(tmp_path / "jvm")}
    context._jvm.System.getenv = variables.get
    files = SimpleNamespace(getRootDirectory=lambda: str(tmp_path))
    context._jvm.org = SimpleNamespace(apache=SimpleNamespace(spark=SimpleNamespace(SparkFiles=files)))
    needed = ("one", "two", "three")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "_NEEDED", needed)
        with pytest.raises(OptionError, match="which lacks three; you run"):
            workers._check_program(context)
        context._python_includes = ["sent.zip"]
        workers._check_program(context)


@pytest.mark.parametrize("said", ["exit 1", None])
def test_a_program_that_does_not_start(said: str | None, tmp_path: Path) -> None:
    path = program(tmp_path, said) if said else str(tmp_path / "nothing")
    said = refusal(Session(path, "local"))
    assert f"Spark's workers are to run {path}, which does not start" in said
    assert f"; you run {DRIVER}" in said


def test_another_version_on_a_cluster() -> None:
    versions = {"worker_version": "3.9", "driver_version": DRIVER.version or ""}
    failure = PySparkRuntimeError(errorClass="PYTHON_VERSION_MISMATCH", messageParameters=versions)
    said = refusal(Session("/opt/py/bin/python3", answer=failure))
    assert f"Spark's workers run Python 3.9 (/opt/py/bin/python3), but you run {DRIVER}" in said
    assert "spark.pyspark.python" in said


def test_a_worker_that_lacks_packages_is_asked_again_only_if_something_was_sent() -> None:
    session = Session("python3", answer=("3.11", "/opt/bin/python3", "eventcube, numba"))
    said = refusal(session)
    assert "run Python 3.11 (/opt/bin/python3), which lacks eventcube, numba; you run" in said
    assert "ship(spark)" in said
    session.answer = None
    assert refusal(session) == said
    assert session.asked == 1
    session.sparkContext._python_includes.append("eventcube-1.zip")
    check_workers(session)  # type: ignore[arg-type]
    assert session.asked == 2


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("ModuleNotFoundError: No module named 'pyarrow.lib'", "run python3, which lacks pyarrow"),
        ('java.io.IOException: Cannot run program "python3": error=2', "workers cannot start python3"),
    ],
)
def test_a_worker_that_cannot_even_be_asked(told: str, expected: str) -> None:
    assert expected in refusal(Session("python3", answer=PySparkException(told)))


def test_other_failures_are_left_to_the_query() -> None:
    check_workers(Session("python3", answer=PySparkException("no executor is free")))  # type: ignore[arg-type]


def test_an_environment_that_links_to_this_interpreter_is_another(tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    assert not workers._is_driver(str(tmp_path / "python"))
    assert workers._is_driver(sys.executable)
