"""Nothing temporary is left behind: not by a run that was asked to end, and for long not by one that was killed."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventcube.cli.temporary import temporary_file, temporary_folder

QUERY = "PATTERN SEQ(A a, B b) WITHIN 1 hour"


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """Events with far more matches than anyone waits for."""
    count = 20_000
    kinds = ["A"] * (count // 2) + ["B"] * (count // 2)
    pq.write_table(pa.table({"ts": range(count), "kind": kinds}), tmp_path / "events.parquet")
    return tmp_path / "events.parquet"


def running(events: Path, out: Path, wait: Callable[[Path], bool]) -> subprocess.Popen[str]:
    """A run that is in the middle of writing."""
    command = [sys.executable, "-c", "from eventcube.cli import main; main()", "run", QUERY, str(events)]
    command += ["--type", "kind", "--no-spark", "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not wait(out.parent):
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
        assert process.poll() is None, process.communicate()
    return process


def being_written(folder: Path) -> bool:
    """Whether something hidden holds at least a piece of the result."""
    files = [f for left in folder.glob(".*") for f in ([left] if left.is_file() else left.rglob("*")) if f.is_file()]
    return any(f.stat().st_size > 1000 for f in files)


@pytest.mark.parametrize("name", ["matches.csv", "matches"], ids=["a file", "a folder"])
@pytest.mark.parametrize("way", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda s: s.name)
def test_a_run_that_is_ended_leaves_nothing(events: Path, tmp_path: Path, name: str, way: signal.Signals) -> None:
    (tmp_path / "out").mkdir()
    process = running(events, tmp_path / "out" / name, being_written)
    process.send_signal(way)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 128 + way
    assert said.strip() == ("interrupted" if way is signal.SIGINT else "terminated")
    assert list((tmp_path / "out").iterdir()) == []


def test_what_a_killed_run_left_is_removed_by_the_next_one(events: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "matches.csv"
    out.parent.mkdir()
    process = running(events, out, being_written)
    process.kill()
    process.communicate(timeout=120)
    (left,) = out.parent.iterdir()
    assert left.name.startswith(".matches.csv.eventcube-")
    os.utime(left, (0, 0))
    with temporary_file(out) as temporary:
        assert list(out.parent.iterdir()) == [temporary]
    assert list(out.parent.iterdir()) == [out]


@pytest.mark.parametrize("kind", [temporary_file, temporary_folder])
def test_what_another_run_is_writing_stays(tmp_path: Path, kind: Callable[[Path], object]) -> None:
    out, stranger = tmp_path / "matches", tmp_path / ".matches-of-mine"
    stranger.touch()
    left = tmp_path / ".matches.eventcube-abc"
    left.mkdir()
    os.utime(left, (0, 0))
    descriptor = os.open(left, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with kind(out):  # type: ignore[attr-defined]
        assert left.is_dir()
    os.close(descriptor)
    with kind(out):  # type: ignore[attr-defined]
        assert not left.exists()
    assert {f.name for f in tmp_path.iterdir()} == {"matches", ".matches-of-mine"}


def test_what_has_just_begun_stays(tmp_path: Path) -> None:
    young = tmp_path / ".matches.eventcube-abc"
    young.touch()
    with temporary_folder(tmp_path / "matches"):
        assert young.exists()


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    code = (
        "import signal\nfrom eventcube.cli import main\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "import os, click\n@main.command()\ndef hang_up() -> None:\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n    click.echo('still there')\n"
        "main(['hang-up'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "still there\n"


@pytest.mark.parametrize("folder", [False, True])
def test_the_old_output_is_there_until_the_new_one_takes_its_place(folder: bool, tmp_path: Path) -> None:
    out = tmp_path / "matches"
    if folder:
        out.mkdir()
        (out / "part").write_text("old", "utf-8")
    else:
        out.write_text("old", "utf-8")
    seen: list[str] = []

    rename = Path.replace

    def replace_path(self: Path, target: Path) -> Path:
        kept = [p for p in tmp_path.rglob("*") if p.is_file() and p.read_text("utf-8") == "old"]
        seen.append(f"{len(kept)} of the old")
        return rename(self, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", replace_path)
        with (temporary_folder if folder else temporary_file)(out) as new:
            (new / "part" if folder else new).write_text("new", "utf-8")
    assert seen == ["1 of the old"] * (2 if folder else 1), "every rename finds the old output whole"
    assert (out / "part" if folder else out).read_text("utf-8") == "new"
    assert list(tmp_path.iterdir()) == [out]
