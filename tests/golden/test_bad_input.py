"""What the command line says of bad input: word for word, in one message, with exit code 2."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.golden.titled import Titled, read_titled

from eventcube.cli import main

CASES = read_titled("bad_input.txt")
EVENTS = """\
ts,kind,user,amount
2026-01-01 09:00:00,Login,ann,1.5
2026-01-01 09:00:10,Login,bob,2.5
2026-01-01 09:00:20,Logout,bob,3.5
"""
FILES = {
    "events.csv": EVENTS,
    "events.txt": EVENTS,
    "empty.csv": "",
    "header.csv": "ts,kind,user,amount\n",
    "ragged.csv": EVENTS + "2026-01-01 09:00:30,Login\n",
    "broken.parquet": "no Parquet, but text\n",
    "broken.jsonl": '{"ts": "2026-01-01T09:00:00", "kind": "Login"}\n{"ts": oops\n',
    "concepts.yaml": "Session: [Login, Logout]\n",
    "broken.yaml": "Session: [Login\n",
    "twice.yaml": "Session: [Login]\nAccess: [Login]\n",
    "moves.yaml": "within: 1 hour\nqueries:\n  a: PATTERN SEQ(Login a, Logout b)\n",
    "typo.neel": "PATTERN SEQ(Login a, Login b)\nWHERE a.user = b.user\nWITIN 1 hour\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_bad_input_is_told_in_one_message(case: Titled, folder: Path) -> None:
    before = sorted(p.name for p in folder.iterdir())
    program, *arguments = shlex.split(case.given)
    assert program == "eventcube"
    result = CliRunner().invoke(main, arguments)
    assert result.stderr.strip("\n") == case.expected
    assert result.stdout == ""
    assert result.exit_code == 2
    assert sorted(p.name for p in folder.iterdir()) == before
