from __future__ import annotations

import signal
from collections.abc import Iterator
from ctypes import CFUNCTYPE
from types import FrameType

import pytest
from tests.unit.cli.conftest import Call

from eventcube.engine import warm
from eventcube.engine.compiled import cache_folder


class EndedError(Exception):
    """What the handler of a signal raises."""


class Loop:
    """A loop during whose compilation a signal comes, in a callback as LLVM makes them."""

    def compile(self, _: object) -> None:
        CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGTERM))()


@pytest.fixture
def handler() -> Iterator[None]:
    def end(_: int, __: FrameType | None) -> None:
        raise EndedError

    before = signal.signal(signal.SIGTERM, end)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("handler")
def test_no_signal_is_lost_while_a_loop_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "SIGNATURES", {Loop(): [()]})
    with pytest.raises(EndedError):
        warm.warm()


def test_the_second_time_all_is_there(call: Call) -> None:
    assert call("warm").exit_code == 0
    again = call("warm")
    assert again.exit_code == 0
    assert again.stdout.splitlines()[-1] == f"kept in {cache_folder()}"
