from pathlib import Path

from eventcube.bench.nested import bench_nested, experiments


def test_an_experiment_leaves_tables_and_pictures(tmp_path: Path) -> None:
    rows = bench_nested(tmp_path, ["5"], scale=0.05, repetitions=1)
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


def test_every_query_of_the_experiments_can_be_asked() -> None:
    names = set()
    for experiment in experiments(0.001).values():
        for setting in experiment.settings:
            names.add((experiment.name, setting.x))
            assert setting.trades.events == 200 or experiment.name == "6"
    assert len(names) > 15
