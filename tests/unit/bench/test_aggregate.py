"""The benchmark of aggregates: sides that agree, what it judges, and what it writes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from rich.console import Console

from eventcube.bench.aggregate import AggregateRow, bench_aggregate, bench_large, bench_windows
from eventcube.bench.aggregate_cases import AGGREGATES, Case, cases, window_for
from eventcube.bench.aggregate_choice import ChoiceRow, bench_choice, constants
from eventcube.bench.aggregate_goals import Goal, judge
from eventcube.bench.aggregate_memory import bench_memory
from eventcube.bench.aggregate_sides import (
    answer_of,
    check_equal,
    chosen,
    counted,
    enumerated,
    only_scanning,
    scanned,
    sql_answer,
    sql_forms,
)
from eventcube.bench.checksum import MatchesDifferError
from eventcube.bench.engine import duckdb_answers
from eventcube.bench.trades import Trades
from eventcube.engine.sinks.counted import CountedSink
from eventcube.explain import explain
from eventcube.optimizer.aggregates import COUNTING, MAKE_CALL, MAKING

TABLE = Trades(5_000, accounts=10).table()


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("by_events", [False, True])
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_all_sides_agree(aggregate: str, by_events: bool, keyed: bool) -> None:
    case = Case(3, 1_000 if keyed else 100, by_events, keyed)
    run = duckdb_answers(TABLE)
    ours = counted(TABLE, case, aggregate)
    assert ours
    check_equal(case, aggregate, ours, chosen(TABLE, case, aggregate), "auto")
    check_equal(case, aggregate, ours, enumerated(TABLE, case, aggregate), "enumeration")
    for form, sql in sql_forms(case, aggregate).items():
        check_equal(case, aggregate, ours, sql_answer(run, sql), form)


@pytest.mark.parametrize("case", cases([8], [100]), ids=lambda c: c.name)
def test_no_query_makes_matches(case: Case) -> None:
    for aggregate in AGGREGATES:
        plan = explain(case.text(aggregate), TABLE.schema, time="ts", type="symbol")
        assert "aggregates  without making matches" in plan


def test_the_number_of_matches_is_told_beyond_64_bits() -> None:
    case = Case(8, 100_000)
    exact = counted(TABLE, Case(3, 100), "COUNT")
    assert answer_of(TABLE, Case(3, 100).numbering) == exact
    many = Trades(100_000).table()
    assert counted(many, case, "COUNT") is None
    number = answer_of(many, case.numbering)
    assert number is not None
    assert number > 2**63


def test_a_plain_scan_finds_no_match_and_leaves_nothing_behind() -> None:
    search = CountedSink.search
    assert scanned(TABLE, Case(3, 100), "COUNT") == 0
    assert scanned(TABLE, Case(3, 100), "SUM") is None
    assert CountedSink.search is search
    with pytest.raises(ZeroDivisionError), only_scanning():
        raise ZeroDivisionError
    assert CountedSink.search is search


def test_sides_that_differ_are_refused() -> None:
    check_equal(Case(3, 100), "AVG", 1.0, 1.0 + 1e-12, "DuckDB")
    for ours, theirs in ((1, 2), (1.0, 1.1), (None, 1)):
        with pytest.raises(MatchesDifferError, match="counted"):
            check_equal(Case(3, 100), "AVG", ours, theirs, "DuckDB")


def test_a_window_for_a_number_of_matches() -> None:
    case = Case(3, window_for(50_000, 20_000, 3))
    matches = counted(Trades(20_000).table(), case, "COUNT")
    assert matches == pytest.approx(50_000, rel=0.2)


def row(
    aggregate: str, processor: float, of_smallest: float = 1.0, length: int = 3, enumeration: float | None = None
) -> AggregateRow:
    times = (0.1, processor, 0.1, processor, 0.1, 0.1, enumeration, enumeration)
    return AggregateRow(aggregate, length, 100, False, False, 10, 1e13, 1, *times, None, None, "", of_smallest)


def test_goals_are_judged_by_the_worst_row_of_each_length() -> None:
    rows = [
        row("COUNT", 0.2, enumeration=0.4),
        row("COUNT", 0.31),
        row("SUM", 0.49),
        row("AVG", 0.1, 1.4),
        row("COUNT", 0.3, length=5, enumeration=0.2),
    ]
    goals = [(round(goal.figure, 2), goal.met) for goal in judge(rows)]
    expected = [(3.1, False), (3.0, True), (4.9, True), (1.0, True), (1.4, False), (1.0, True), (1.0, True)]
    assert goals == [*expected, (1.5, False)]
    (seconds,) = judge(rows, large=True)
    assert seconds.met


def test_a_rate_has_a_least_value() -> None:
    assert Goal("rate", 0.9, 0.8, at_least=True).text == "met: rate: 0.90, at least 0.8"
    assert not Goal("rate", 0.7, 0.8, at_least=True).met


def test_windows(tmp_path: Path) -> None:
    console = Console(width=150, quiet=True)
    rows = bench_windows(console, tmp_path, 2_000, (3,), (100, 1_000, 1_000_000), 1, plots=True)
    # Two windows, of time and of events, keyed and not; the third is longer than the events.
    assert len(rows) == 2 * 2 * 2 * len(AGGREGATES)
    assert {row.of_smallest for row in rows if row.window == 100} == {1.0}
    assert all(row.enumeration_seconds and row.duckdb_seconds for row in rows)
    with (tmp_path / "aggregate.csv").open() as file:
        assert len([*csv.DictReader(file)]) == len(rows)
    assert "goals" in json.loads((tmp_path / "aggregate.json").read_text())
    for name in ("aggregate", "aggregate-keyed"):
        assert (tmp_path / f"{name}.png").stat().st_size > 100
        assert "<!-- counting -->" in (tmp_path / f"{name}.svg").read_text()


def test_large_enumerates_once_to_compare(tmp_path: Path) -> None:
    rows = bench_large(Console(quiet=True), tmp_path, 5_000, 1e5, 1)
    assert [(row.aggregate, row.enumeration_seconds is not None) for row in rows] == [("COUNT", True), ("AVG", False)]
    assert (tmp_path / "aggregate-large.json").exists()


def test_choice(tmp_path: Path) -> None:
    rows = bench_choice(Console(quiet=True), tmp_path, 20_000, (3,), (100,), 1)
    # In one batch, and in small pushes; keyed or not.
    assert len(rows) == 3 * 2 * len(AGGREGATES)
    assert {row.taken for row in rows} == {COUNTING, MAKING}
    assert all(row.matches for row in rows if not row.keyed)
    saved = json.loads((tmp_path / "aggregate-choice.json").read_text())
    assert len(saved["rows"]) == len(rows)
    assert {"ns", "COUNT_CALL", "MAKE_CALL"} <= set(saved["constants"])


def test_constants_are_those_that_explain_the_times() -> None:
    ns = 2e-9
    rows = [
        ChoiceRow(
            aggregate, 3, window, False, 100, calls, events, matches, 0.1,
            # Groups cost 10,000 for each call, in both ways.
            counting=0.1 + ns * (calls * (5e4 + 4e4 * weighed) + events * (20 + 7 * weighed)),
            making=0.1 + ns * (calls * (4e4 + 1e4 * weighed) + matches * (10 + 30 * weighed)),
            auto=0.1, counting_cost=1.0, making_cost=calls * MAKE_CALL + matches * (10 + 30 * weighed), taken=COUNTING,
        )
        for window, (calls, events, matches) in enumerate([(1, 10**6, 10**7), (30, 10**4, 10**8), (9, 10**5, 1)])
        for aggregate, weighed in (("COUNT", 0), ("SUM", 1))
    ]  # fmt: skip
    expected = {
        "ns": 2, "COUNT_CALL": 5e4, "WEIGHT_CALL": 3e4, "MAKE_CALL": 4e4, "IN_LINE + WALK": 20, "WEIGHT": 7,
        "FOLD + FOLD_VALUE": 30,
    }  # fmt: skip
    assert constants(rows) == pytest.approx(expected, rel=0.02)


def test_memory(tmp_path: Path) -> None:
    (row,) = bench_memory(Console(quiet=True), tmp_path, 1_000, (3,), (100,))
    assert row.peak_mib >= row.scan_mib > 50
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["aggregate-memory.csv", "aggregate-memory.json"]


def test_parts_are_chosen(tmp_path: Path) -> None:
    bench_aggregate(tmp_path, tmp_path, ["large"], scale=0.0005, repetitions=1)
    assert {path.stem for path in tmp_path.iterdir()} == {"aggregate-large"}
