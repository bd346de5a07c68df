"""The benchmark of the event cube: all ways to share find the same matches, and its tables have what they say."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from rich.console import Console

from eventcube.bench import cube_many
from eventcube.bench.cube import bench_cube
from eventcube.bench.cube_plans import _estimate_row, measure_planning, random_plans, rank_correlation
from eventcube.bench.cube_runs import FIXED, SHARINGS, plans_of, weighed
from eventcube.bench.cube_workloads import SECTORS, WORKLOADS, generated_queries
from eventcube.bench.trades import SCHEMA
from eventcube.concepts.concepts import Concepts
from eventcube.engine.reuse.derive import plan_shared


def test_tables_and_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = bench_cube(tmp_path, ["1", "4"], scale=0.02, repetitions=1)
    assert {(r.workload, r.result, r.sharing) for r in rows} == {
        (workload, result, sharing) for workload in "14" for result in ("count", "matches") for sharing in SHARINGS
    }
    assert all(r.matches > 0 for r in rows)
    assert {r.fewer for r in rows if r.sharing == "independent"} == {1.0}
    assert [r.fewer_goal for r in rows if r.workload == "1" and r.rates == "INTC at 1/20" and r.result == "count"] == [
        8.0
    ] * len(SHARINGS)
    assert len(json.loads((tmp_path / "cube.json").read_text())["rows"]) == len(rows)
    for ending in ("csv", "png", "svg"):
        assert (tmp_path / f"cube.{ending}").stat().st_size > 100
    shown = capsys.readouterr().out
    for words in ("Matches counted", "Matches returned", "bound:", "Drawn: "):
        assert words in shown


def test_many_queries_and_planning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cube_many, "QUERIES", 30)
    monkeypatch.setattr(cube_many, "APART", 2)
    console = Console(quiet=True)
    rows = cube_many.measure_many(console, tmp_path, events=2_000, repetitions=1)
    assert {r.sharing for r in rows if r.queries == "three levels"} == {*FIXED, "auto"}
    for name in ("related", "three levels"):
        for events in {r.events for r in rows if r.queries == name}:
            assert len({r.matches for r in rows if (r.queries, r.events) == (name, events)}) == 1
    (planned,) = measure_planning(console, tmp_path, repetitions=1, scale=0.01)
    assert (planned.number, planned.goal_ms) == (10, 16.0)
    assert 0 < planned.pairs <= planned.derivations
    assert planned.costs_ms > 0


def test_random_plans_are_different_and_run() -> None:
    workload, concepts = WORKLOADS["7"], Concepts(SECTORS)
    plans = plans_of(workload.texts(50, counted=True), SCHEMA, concepts)
    chase = weighed(plan_shared(plans, concepts, "chase"), workload.trades("equal rates", 20_000).table())
    drawn = random_plans(chase, Random(1))
    assert len({frozenset((t, w.sources) for t, w in plan.items()) for plan in drawn}) > 6
    row = _estimate_row(WORKLOADS["4"], "equal rates", 5_000, 1)
    assert row.plans == 3
    assert row.least_ms <= row.most_ms


def test_close_values_have_the_same_rank() -> None:
    assert rank_correlation([1, 2, 3], [10, 20, 30]) == pytest.approx(1.0)
    assert rank_correlation([1, 2, 3], [30, 20, 10]) == pytest.approx(-1.0)
    assert rank_correlation([1.0, 1.01, 2], [5.0, 4.9, 9]) == pytest.approx(1.0)


def test_generated_queries_are_different_and_fewer_are_the_first_of_more() -> None:
    queries = generated_queries(50)
    assert len(set(queries.values())) == 50
    assert generated_queries(10).items() <= queries.items()
