"""A run on Spark that is asked to end leaves no process and no file behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

QUERY = "PATTERN SEQ(A a, B b) WITHIN 1 hour"
WAIT_SECONDS = 300


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """Events with far more matches than anyone waits for."""
    count = 20_000
    kinds = ["A"] * (count // 2) + ["B"] * (count // 2)
    pq.write_table(pa.table({"ts": range(count), "kind": kinds}), tmp_path / "events.parquet")
    return tmp_path / "events.parquet"


def descendants(process: int) -> set[int]:
    """The processes that a process started, and those that they did."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(text.rpartition(")")[2].split()[1])
    found, more = set(), {process}
    while more:
        more = {child for child, parent in parents.items() if parent in more} - found
        found |= more
    return found


def until(holds: Callable[[], bool]) -> bool:
    """Whether a condition came to hold in time."""
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.1)
    return False


def files(folder: Path) -> Iterator[Path]:
    """All files in a folder, also while others remove some."""
    for path, _, names in os.walk(folder):
        yield from (Path(path, name) for name in names)


def size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
WAYS = pytest.mark.parametrize("way", [signal.SIGTERM, signal.SIGINT], ids=lambda s: s.name)


class Command:
    """`eventcube run` in a process of its own, with folders of its own for all that is temporary."""

    def __init__(self, events: Path, folder: Path, out: str) -> None:
        self.out, self.scratch, self.temporary = (folder / n for n in ("out", "scratch", "tmp"))
        for made in (self.out, self.scratch, self.temporary):
            made.mkdir()
        command = [sys.executable, "-c", "from eventcube.cli import main; main()", "run", QUERY, str(events)]
        command += ["--type", "kind", "--master", "local[2]", "--conf", f"spark.local.dir={self.scratch}"]
        command += ["--conf", f"spark.driver.extraJavaOptions=-Djava.io.tmpdir={self.temporary}"]
        command += ["--format", "csv", "--out", str(self.out / out)]
        environment = {**os.environ, "TMPDIR": str(self.temporary)}
        environment.pop("SPARK_LOCAL_DIRS", None)
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
        )

    def end_when(self, holds: Callable[[], bool], way: signal.Signals) -> None:
        """Send a signal as soon as a condition holds, and check that it is told and leaves nothing behind."""
        process = self.process
        try:
            assert until(lambda: process.poll() is not None or holds())
            assert process.poll() is None, process.communicate()
            started = descendants(process.pid)
            assert started
            process.send_signal(way)
            _, said = process.communicate(timeout=WAIT_SECONDS)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        assert said.split() == ["interrupted" if way is signal.SIGINT else "terminated"]
        assert process.returncode == 128 + way
        assert until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started)), "a process is left"
        assert [path for folder in (self.out, self.scratch, self.temporary) for path in folder.iterdir()] == []


@WAYS
@pytest.mark.parametrize("name", ["matches", "matches.csv"], ids=["a folder", "a file"])
def test_a_run_that_is_ended_leaves_nothing(events: Path, tmp_path: Path, name: str, way: signal.Signals) -> None:
    command = Command(events, tmp_path, name)
    # A folder is written by tasks into the hidden one; a file is collected on Spark's disks first.
    place = command.out if name == "matches" else command.scratch
    command.end_when(lambda: any(size(f) > 1000 for f in files(place)), way)


@WAYS
@pytest.mark.parametrize("place", ["tmp", "scratch"], ids=["the JVM", "the session"])
def test_a_start_that_is_ended_is_told_and_leaves_nothing(
    events: Path, tmp_path: Path, place: str, way: signal.Signals
) -> None:
    command = Command(events, tmp_path, "matches")
    command.end_when(lambda: any((tmp_path / place).glob("spark-*")), way)
