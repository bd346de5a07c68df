import json
import os
from dataclasses import dataclass
from pathlib import Path

from eventcube.bench.measure import Timing, alternate, fastest, one_core, save


@dataclass(frozen=True)
class Row:
    query: str
    rate: float


def test_contestants_take_turns() -> None:
    calls: list[str] = []
    timings = alternate({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 3)
    assert calls == ["a", "b"] * 3
    assert {name: len(t.seconds) for name, t in timings.items()} == {"a": 3, "b": 3}


def test_median_and_best() -> None:
    timing = Timing((3.0, 1.0, 2.0), (0.5, 0.4, 0.6))
    assert (timing.median, timing.best, timing.busy) == (2.0, 1.0, 0.5)


def test_the_fastest_form_is_that_of_the_best_try() -> None:
    # Readings of the clock at begin and end of each try; a's first try is disturbed.
    readings = iter([0, 9, 9, 12, 12, 13, 13, 16])
    assert fastest({"a": "A", "b": "B"}, lambda form: None, tries=2, clock=lambda: next(readings)) == "a"


def test_results_are_saved_twice(tmp_path: Path) -> None:
    path = save(tmp_path / "bench", "engine", {"repetitions": 3}, [Row("Q1", 2.5)])
    assert json.loads(path.read_text()) == {"repetitions": 3, "rows": [{"query": "Q1", "rate": 2.5}]}
    assert path.with_suffix(".csv").read_text().split() == ["query,rate", "Q1,2.5"]


def test_one_core_gives_the_others_back() -> None:
    before = os.sched_getaffinity(0)
    with one_core():
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before
