"""What `eventcube cube` says of a workload file that it cannot use: word for word, with exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.golden.titled import Titled, read_titled

from eventcube.cli import main

CASES = read_titled("bad_workloads.txt")
EVENTS = """\
ts,place,person
2026-01-01 09:00:00,DallasBus,ann
2026-01-01 09:10:00,DallasShelter,bob
2026-01-01 09:20:00,Tulsa,ann
"""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_bad_workload_is_told_in_one_message(case: Titled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("moves.yaml").write_text(case.given + "\n", encoding="utf-8")
    Path("events.csv").write_text(EVENTS, encoding="utf-8")
    result = CliRunner().invoke(main, ["cube", "moves.yaml", "events.csv", "--no-spark", "--out", "matches.csv"])
    assert result.stderr.strip("\n") == case.expected
    assert (result.stdout, result.exit_code) == ("", 2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["events.csv", "moves.yaml"]
