"""Stages of a run: each moment counts for one of them, and afterwards the engine is as it was."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from eventcube.bench import stages
from eventcube.bench.engine import eventcube_answer
from eventcube.bench.stages import REST, STAGES, Stopwatch, bench_stages, timers
from eventcube.bench.trades import Trades
from eventcube.bench.workload import Q1
from eventcube.errors import EventCubeError
from eventcube.match import match


def test_a_stage_inside_another_one_stops_its_time() -> None:
    readings = iter([0.0, 1.0, 3.0, 7.0, 15.0, 31.0])
    watch = Stopwatch(lambda: next(readings))
    with watch.timing("joins"), watch.timing("windows"):
        pass
    seconds = watch.stop()
    assert {stage: spent for stage, spent in seconds.items() if spent} == {REST: 17, "joins": 10, "windows": 4}


def test_every_stage_is_timed_and_the_functions_are_put_back() -> None:
    places = [(owner, name) for timed in STAGES.values() for owner, name in timed]
    before = [vars(owner)[name] for owner, name in places]
    moments = iter(range(10_000_000))
    watch = Stopwatch(lambda: next(moments))
    table = Trades(5_000).table()
    with timers(watch):
        timed = eventcube_answer(table, Q1)
    # The clock ticks whenever a stage begins or ends.
    assert all(watch.stop().values())
    assert timed.equals(eventcube_answer(table, Q1))
    assert [vars(owner)[name] for owner, name in places] == before


def test_an_error_leaves_no_timer_behind() -> None:
    before = stages.State.append
    with pytest.raises(EventCubeError), timers(Stopwatch()):
        match(Trades(10).table(), "PATTERN SEQ(")
    assert stages.State.append is before


def test_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = bench_stages(tmp_path, events=20_000, repetitions=1)
    assert [row.query for row in rows] == ["Q1", "Q2", "Q4", "Q1, shuffled"]
    assert rows[0].matches == rows[-1].matches > 0
    assert [row.of_sorted is None for row in rows] == [True, True, True, False]
    assert "Where the time goes" in capsys.readouterr().out
    with (tmp_path / "engine-stages.csv").open() as file:
        assert set(STAGES) < set(next(iter(csv.DictReader(file))))
