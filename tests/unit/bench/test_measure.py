import json
import os
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from eventcube.bench.measure import Column, Timing, alternate, fastest, grouped, judged, listed, one_core, save, widths


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


def test_a_form_that_takes_much_longer_is_tried_once() -> None:
    ran: list[str] = []
    readings = iter([0, 10, 10, 111, 111, 150, 150, 155, 155, 160])
    assert fastest({"a": "A", "b": "B", "c": "C"}, ran.append, tries=2, clock=lambda: next(readings)) == "a"
    assert ran == ["A", "B", "C", "A", "C"]


def test_the_fastest_form_is_that_of_the_best_try() -> None:
    # Readings of the clock at begin and end of each try; a's first try is disturbed.
    readings = iter([0, 9, 9, 12, 12, 13, 13, 16])
    assert fastest({"a": "A", "b": "B"}, lambda form: None, tries=2, clock=lambda: next(readings)) == "a"


def test_results_are_saved_twice(tmp_path: Path) -> None:
    path = save(tmp_path / "bench", "engine", {"repetitions": 3}, [Row("Q1", 2.5)])
    assert json.loads(path.read_text()) == {"repetitions": 3, "rows": [{"query": "Q1", "rate": 2.5}]}
    assert path.with_suffix(".csv").read_text().split() == ["query,rate", "Q1,2.5"]


COLUMNS = [Column("query", lambda r: r.query), Column("events each s", lambda r: f"{r.rate:,.0f}")]
ROWS = [Row("Q1", 1e6), Row("Q1", 2e6), Row("Q2", 3e6)]


@pytest.mark.parametrize(("room", "chosen"), [(80, [5, 9]), (21, [5, 9]), (20, [5]), (2, [5])])
def test_as_many_columns_as_there_is_room_for(room: int, chosen: list[int]) -> None:
    assert widths(COLUMNS, ROWS, room, least=1) == chosen


def test_no_cell_is_cut_and_a_line_is_between_groups() -> None:
    shown = StringIO()
    Console(file=shown, width=10).print(grouped("rates", COLUMNS, [5, 9], ROWS), crop=False)
    assert shown.getvalue().splitlines()[5:] == [
        "│    Q1 │ 1,000,000 │",
        "│    Q1 │ 2,000,000 │",
        "├───────┼───────────┤",
        "│    Q2 │ 3,000,000 │",
        "└───────┴───────────┘",
    ]


def test_a_figure_is_coloured_by_its_goal() -> None:
    shown = StringIO()
    columns = [COLUMNS[0], Column("rate", lambda r: judged(f"{r.rate:,.0f}", met=r.rate > 1e6))]
    Console(file=shown, width=40, force_terminal=True, color_system="standard").print(listed("", columns, ROWS[:2]))
    assert "\x1b[31m1,000,000\x1b[0m" in shown.getvalue()
    assert "\x1b[32m2,000,000\x1b[0m" in shown.getvalue()


def test_one_core_gives_the_others_back() -> None:
    before = os.sched_getaffinity(0)
    with one_core():
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before
