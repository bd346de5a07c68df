"""The first run compiles the engine's loops, and says so, wherever its output goes."""

from __future__ import annotations

import json

import pytest
from tests.unit.cli.conftest import Call

from eventcube.cli import compiling
from eventcube.engine import warm

SAID = "compiling the engine's loops, once on this machine; `eventcube warm` does so ahead"
RUN = ("run", "PATTERN SEQ(Login a, Login c) WHERE a.user = c.user WITHIN 1 hour", "events.csv", "--type", "kind")


class Machine:
    """A machine that has nothing compiled yet, and takes ten seconds for it."""

    def __init__(self) -> None:
        self.seconds = 0
        self.compiled = False

    def monotonic(self) -> float:
        return self.seconds

    def uncompiled(self) -> list[str]:
        return [] if self.compiled else ["seek"]

    def warm(self) -> None:
        self.seconds += 10
        self.compiled = True


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(compiling, "clock", made)
    monkeypatch.setattr(warm, "uncompiled", made.uncompiled)
    monkeypatch.setattr(warm, "warm", made.warm)
    return made


@pytest.mark.usefixtures("folder")
def test_the_first_run_says_that_it_compiles_and_tells_that_time_apart(call: Call) -> None:
    said = call(*RUN, "--no-spark", "--out", "m.csv").stderr.splitlines()
    assert said[0] == SAID
    assert said[1].startswith("2 matches in 5 events, ")
    assert said[1].endswith("; compiled in 10.0 s, once")
    again = call(*RUN, "--no-spark", "--out", "m2.csv").stderr
    assert "compil" not in again


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("quiet", ["--quiet", "--json"])
def test_a_quiet_run_compiles_without_a_word(quiet: str, call: Call, machine: Machine) -> None:
    result = call(*RUN, "--no-spark", "--out", "m.csv", quiet)
    assert (result.stderr, machine.compiled) == ("", True)
    if quiet == "--json":
        assert json.loads(result.stdout)["compile_seconds"] == 10.0


@pytest.mark.usefixtures("folder")
def test_a_mistake_is_told_before_anything_is_compiled(call: Call, machine: Machine) -> None:
    assert call(*(word.replace("a.user", "a.usr") for word in RUN), "--no-spark").exit_code == 2
    assert not machine.compiled


@pytest.mark.usefixtures("folder")
def test_an_analysis_compiles_first(call: Call) -> None:
    assert call("explain", RUN[1], "events.csv", "--type", "kind", "--analyze").stderr.startswith(SAID)
