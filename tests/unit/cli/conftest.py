"""Events in files, and a way to call the command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from eventcube.cli import main
from eventcube.engine.warm import uncompiled, warm

EVENTS = """\
ts,kind,user,amount
2026-01-01 09:00:00,Login,ann,1.5
2026-01-01 09:00:10,Login,bob,2.5
2026-01-01 09:00:20,Logout,bob,3.5
2026-01-01 09:00:30,Login,ann,4.5
2026-01-01 09:00:40,Login,bob,5.5
"""

Call = Callable[..., Result]


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    """A command says that it compiles, if it is the first."""
    if uncompiled():
        warm()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `events.csv`, and the current one."""
    (tmp_path / "events.csv").write_text(EVENTS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call() -> Call:
    """`eventcube …`; anything but an exit code is a failure."""

    def invoke(*arguments: str) -> Result:
        result = CliRunner().invoke(main, arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke
