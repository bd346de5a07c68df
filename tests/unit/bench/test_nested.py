import csv
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.bench import nested
from eventcube.bench.checksum import MatchesDifferError
from eventcube.bench.nested import bench_nested, experiments
from eventcube.bench.trades import SCHEMA


def test_an_experiment_leaves_tables_and_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = bench_nested(tmp_path, ["5"], scale=0.05, repetitions=1)
    shown = capsys.readouterr()
    assert shown.out.count("Experiment 5: what views hold (count, ") == 2
    assert shown.err.splitlines()[0] == "Experiment 5 (outer events: as many): count, batch"
    assert len(shown.err.splitlines()) == 4
    for ending in ("json", "csv", "png", "svg"):
        assert (tmp_path / f"nested-5.{ending}").stat().st_size > 100
    by = {(r.x, r.mode, r.strategy): r for r in rows}
    assert {r.strategy for r in rows} >= {"iterative", "aggressive", "passive", "balanced", "auto"}
    for x in ("as many", "a quarter"):
        found = {r.matches for r in rows if r.x == x}
        assert len(found) == 1
        aggressive, balanced = (by[x, "count, by trigger", s] for s in ("aggressive", "balanced"))
        assert aggressive.computed >= balanced.computed
        assert aggressive.view_bytes >= balanced.view_bytes


def test_no_ratio_where_nothing_was_computed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = experiments(0.06)
    first = replace(known["2b"].settings[0], by_trigger=False)
    monkeypatch.setattr(nested, "experiments", lambda scale: {"2b": replace(known["2b"], settings=(first,))})
    rows = bench_nested(tmp_path, scale=0.06, repetitions=1, plots=False)
    assert {r.strategy for r in rows} == {*nested.VIEWS, "iterative", "rewrite", "auto"}
    assert {r.fewer for r in rows if r.strategy == "rewrite"} == {None}
    assert {r.fewer for r in rows if r.strategy == "iterative"} == {1.0}
    saved = json.loads((tmp_path / "nested-2b.json").read_text())["rows"]
    assert {r["fewer"] for r in saved if r["strategy"] == "rewrite"} == {None}
    with (tmp_path / "nested-2b.csv").open() as file:
        assert {r["fewer"] for r in csv.DictReader(file) if r["strategy"] == "rewrite"} == {""}
    rewritten = [line.split("│") for line in capsys.readouterr().out.splitlines() if " rewrite " in line]
    assert {cells[7].strip() for cells in rewritten} == {"-"}


def test_a_mode_without_matches_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = experiments(0.03)
    first = replace(known["1"].settings[0], returned=2, by_trigger=False)
    monkeypatch.setattr(nested, "experiments", lambda scale: {"1": replace(known["1"], settings=(first,))})
    rows = bench_nested(tmp_path, scale=0.03, repetitions=1)
    assert {r.mode for r in rows} == {"count, batch"}
    assert "no matches at this scale: 100 (matches, batch)\n" in capsys.readouterr().out


def test_nothing_is_saved_where_there_are_no_matches_at_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = experiments(0.001)
    last = replace(known["6"].settings[-1], strategies=("iterative",))
    monkeypatch.setattr(nested, "experiments", lambda scale: {"6": replace(known["6"], settings=(last,))})
    assert bench_nested(tmp_path, scale=0.001, repetitions=1) == []
    assert "no matches at this scale: 100000, negated (count, batch)" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mode", ["count, batch", "count, by trigger", "matches, batch"])
def test_every_strategy_is_warmed_up_in_the_mode_that_is_measured(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    run = nested._run

    def recorded(query, pushes, strategy):  # type: ignore[no-untyped-def]
        seconds, counters = run(query, pushes, strategy)
        asked.append((strategy, len(pushes), counters))
        return seconds, counters

    monkeypatch.setattr(nested, "_run", recorded)
    setting = experiments(0.01)["1"].settings[2]
    nested._warm_up(setting, mode)
    assert tuple(strategy for strategy, _, _ in asked) == setting.strategies
    assert all((pushes > 10) == (mode == "count, by trigger") for _, pushes, _ in asked)
    assert all(counters["matches"] for _, _, counters in asked)
    assert all(counters["inner_reused"] for strategy, _, counters in asked if strategy in nested.VIEWS)


@pytest.mark.parametrize(
    ("ratio", "shown"), [(None, "-"), (1.0, "1.0"), (9.77, "9.8"), (10.4, "10"), (8008.1, "8,008")]
)
def test_ratios_are_shown_with_the_digits_that_count(ratio: float | None, shown: str) -> None:
    assert nested._ratio(ratio) == shown


def test_every_query_of_the_experiments_can_be_asked() -> None:
    names = set()
    for experiment in experiments(0.001).values():
        for setting in experiment.settings:
            names.add((experiment.name, setting.x))
            assert setting.trades.events == 200 or experiment.name == "6"
            for mode, strategy in itertools.product(nested._modes(setting), setting.strategies):
                ec.Runtime(nested._query(setting, mode), type="symbol", strategy=strategy, schema=SCHEMA)
    assert len(names) > 15


def test_strategies_that_find_as_many_but_other_matches_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = experiments(0.05)
    first = replace(known["1"].settings[0], by_trigger=False, strategies=("iterative", "balanced"))
    monkeypatch.setattr(nested, "experiments", lambda scale: {"1": replace(known["1"], settings=(first,))})
    batches = nested._batches

    def wrong(query: str, pushes: Sequence[pa.Table], strategy: str) -> Iterator[pa.RecordBatch]:
        for batch in batches(query, pushes, strategy):
            start = batch.column("start" if strategy == "iterative" else "end")
            yield pa.RecordBatch.from_arrays([start, *batch.columns[1:]], schema=batch.schema)

    monkeypatch.setattr(nested, "_batches", wrong)
    with pytest.raises(MatchesDifferError, match=r"Experiment 1 \(window in events: 100\): different matches"):
        bench_nested(tmp_path, scale=0.05, repetitions=1, plots=False)
