"""Where results go, what happens if they cannot go there, and what was there before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.cli.conftest import EVENTS, Call

from eventcube.cli.in_process import InProcess

PAIRS = "PATTERN SEQ(Login a, Login c) WHERE a.user = c.user WITHIN 1 hour"
LOCAL = ("--type", "kind", "--no-spark")
COMMAND = (sys.executable, "-c", "from eventcube.cli import main; main()")

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize("out", ["/proc/x", "/proc/x.csv", "notes/x", "notes/x.csv", "/dev/full", "/dev/null"])
@pytest.mark.parametrize("option", ["--out", "--set-aside"])
def test_a_place_that_cannot_be_written(option: str, out: str, call: Call, folder: Path) -> None:
    (folder / "notes").write_text("a file")
    (folder / "events.csv").write_text(EVENTS + ",Login,cat,1\n", encoding="utf-8")
    result = call("run", PAIRS, "events.csv", *LOCAL, option, out, "--overwrite", "--quiet")
    assert result.exit_code == 2
    assert result.stderr.startswith("error[EC42")
    assert len(result.stderr.splitlines()) == 2
    assert Path("/dev/null").is_char_device()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("arguments", [("--format", "csv"), ("--format", "jsonl"), ()])
def test_standard_output_is_full(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [*COMMAND, "run", PAIRS, "events.csv", *LOCAL, *arguments], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert ended.returncode == 2
    assert b"Traceback" not in ended.stderr
    assert b"No space left on device" in ended.stderr


@pytest.mark.parametrize("arguments", [("--format", "csv"), ("--format", "jsonl"), ()])
def test_a_reader_that_goes_away_ends_it_quietly(arguments: tuple[str, ...], folder: Path) -> None:
    pq.write_table(pa.table({"ts": range(20_000), "kind": ["A"] * 20_000}), folder / "many.parquet")
    query = "PATTERN SEQ(A a, A b) WITHIN 2 us"
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [*COMMAND, "run", query, "many.parquet", *LOCAL, *arguments],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_a_folder_appears_only_when_it_is_whole(call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call("run", PAIRS, "events.csv", *LOCAL, "--out", "found").exit_code == 0
    before = (folder / "found" / "part-00000.parquet").read_bytes()

    def broken(*_: object) -> int:
        assert (folder / "found" / "part-00000.parquet").exists()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(InProcess, "write_file", broken)
        assert call("run", PAIRS, "events.csv", *LOCAL, "--out", "found", "--overwrite").exit_code == 130
    assert sorted(f.name for f in folder.iterdir()) == ["events.csv", "found"]
    assert (folder / "found" / "part-00000.parquet").read_bytes() == before
    assert call("run", PAIRS, "events.csv", *LOCAL, "--out", "found", "--overwrite", "--format", "csv").exit_code == 0
    assert [f.name for f in (folder / "found").iterdir()] == ["part-00000.csv"]


def test_what_an_earlier_run_set_aside_is_removed(call: Call, folder: Path) -> None:
    (folder / "aside.csv").write_text("old")
    result = call("run", PAIRS, "events.csv", *LOCAL, "--set-aside", "aside.csv", "--overwrite")
    assert result.exit_code == 0
    assert not (folder / "aside.csv").exists()


@pytest.mark.parametrize("name", ["x.txt", "x.csv.gz", "x.xlsx"])
def test_an_ending_that_says_no_format_is_refused(name: str, call: Call) -> None:
    for option in ("--out", "--set-aside"):
        result = call("run", PAIRS, "events.csv", *LOCAL, option, name)
        assert result.exit_code == 2
        assert f"error[EC420]: {option} {name} ends in none of the formats" in result.stderr
        assert "hint: .parquet, .csv and .jsonl are one file" in result.stderr


def test_a_format_that_is_said_needs_no_ending_that_says_it(call: Call, folder: Path) -> None:
    assert call("run", PAIRS, "events.csv", *LOCAL, "--out", "x.txt", "--format", "csv").exit_code == 0
    assert (folder / "x.txt").read_text().startswith('"start"')
    assert call("run", PAIRS, "events.csv", *LOCAL, "--out", "v1.2/").exit_code == 0
    assert (folder / "v1.2" / "part-00000.parquet").exists()
