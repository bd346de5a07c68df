"""Measures aggregates as users get them, beside counting, enumeration, a plain scan, and DuckDB."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path

import pyarrow as pa
from rich.console import Console

from eventcube.bench.aggregate_cases import AGGREGATES, LENGTHS, WINDOWS, Case, cases, window_for
from eventcube.bench.aggregate_choice import bench_choice
from eventcube.bench.aggregate_goals import Goal, judge
from eventcube.bench.aggregate_memory import bench_memory
from eventcube.bench.aggregate_sides import (
    Answer,
    answer_of,
    check_equal,
    chosen,
    counted,
    enumerated,
    scanned,
    sql_answer,
    sql_forms,
)
from eventcube.bench.engine import duckdb_answers
from eventcube.bench.funnel import bench_funnel
from eventcube.bench.measure import (
    Column,
    Timing,
    alternate,
    fastest,
    grouped,
    judged,
    machine,
    one_core,
    save,
    screen,
    timed,
    widths,
)
from eventcube.bench.plots import Picture, draw
from eventcube.bench.trades import Trades

EVENTS, LARGE_EVENTS, FUNNEL_EVENTS, USERS = 1_000_000, 10_000_000, 20_000_000, 1_000_000
LARGE_MATCHES = 2e10
# More matches than these are not made for comparison, nor joined by DuckDB. Longer chains of joins than this take it
# more memory than there is.
MOST_ENUMERATED, MOST_JOINED, LONGEST_JOINED = 3e7, 1.2e7, 5
JOIN_MEMORY = "4GB"
# A contestant that takes longer than this, in seconds, runs once.
RUNS_ONCE = 1.0


@dataclass(frozen=True, slots=True)
class AggregateRow:
    """One aggregate of a case: seconds, and seconds of processor time, of each side; None where it does not run.

    `seconds` and `processor` are what users get, who have matches counted or made as should cost less. `matches` are
    estimated in floats. `answer` is None if 64 bits do not hold it, or there is no match.
    """

    aggregate: str
    length: int
    window: int
    by_events: bool
    keyed: bool
    events: int
    matches: float
    answer: Answer
    seconds: float
    processor: float
    counting_seconds: float
    counting_processor: float
    scan_seconds: float
    scan_processor: float
    enumeration_seconds: float | None
    enumeration_processor: float | None
    duckdb_seconds: float | None
    duckdb_processor: float | None
    duckdb_form: str
    of_smallest: float = 1.0
    """Processor time of counting over that of the smallest window."""

    @property
    def of_scan(self) -> float:
        """Processor time over that of the plain scan."""
        return self.processor / self.scan_processor

    @property
    def of_best(self) -> float:
        """Processor time over that of the faster of counting and enumeration."""
        return self.processor / min(self.counting_processor, self.enumeration_processor or self.counting_processor)


def bench_aggregate(
    out: Path,
    data: Path,
    parts: Iterable[str],
    *,
    scale: float = 1.0,
    lengths: Sequence[int] = LENGTHS,
    windows: Sequence[int] = WINDOWS,
    master: str = "local[2]",
    repetitions: int = 7,
    plots: bool = True,
) -> None:
    """Measures each part, prints its table and goals, and saves them as `aggregate*.json` and `.csv` in the folder."""
    console = screen(150)
    events = max(100, int(scale * EVENTS))
    for part in parts:
        match part:
            case "windows":
                bench_windows(console, out, events, lengths, windows, repetitions, plots=plots)
            case "large":
                bench_large(console, out, int(scale * LARGE_EVENTS), LARGE_MATCHES * scale, repetitions)
            case "choice":
                bench_choice(console, out, events, lengths, windows, repetitions)
            case "memory":
                bench_memory(console, out, events, lengths, [w for w in windows if w <= events])
            case _:
                users = max(10, int(scale * USERS))
                bench_funnel(
                    console, out, data, int(scale * FUNNEL_EVENTS), users, master=master, repetitions=repetitions
                )


def bench_windows(
    console: Console,
    out: Path,
    events: int,
    lengths: Sequence[int],
    windows: Sequence[int],
    repetitions: int,
    *,
    plots: bool,
) -> list[AggregateRow]:
    """Lengths and windows, of time and of events, keyed and not."""
    table = Trades(events).table()
    with one_core():
        run = duckdb_answers(table, memory=JOIN_MEMORY)
        rows = [
            row
            for case in cases(lengths, windows, most_events=events)
            for row in _measure(console, table, case, run, repetitions)
        ]
    rows = _beside_smallest(rows)
    for (by_events, keyed), series in groupby(rows, key=lambda row: (row.by_events, row.keyed)):
        chosen = [*series]
        title = f"{'Keyed, w' if keyed else 'W'}indows of {'events' if by_events else 'time'}, {events:,} events"
        _print(console, f"{title}: ms of processor time, median of {repetitions}", chosen)
    _save(console, out, "aggregate", judge(rows), rows, repetitions)
    if plots:
        for keyed in (False, True):
            points = [p for row in rows if row.keyed == keyed and not row.by_events for p in _points(row)]
            name, what = ("aggregate-keyed", ", within one account") if keyed else ("aggregate", "")
            title = f"Aggregates over {events:,} trades{what} (processor time)"
            drawn = draw(out / name, title, "window, in events", points, Picture(panels=True))
            console.print(f"Drawn: {drawn}", soft_wrap=True)
    return rows


def bench_large(console: Console, out: Path, events: int, matches: float, repetitions: int) -> list[AggregateRow]:
    """SEQ of 5 with about so many matches; COUNT by enumeration, too, once."""
    window = max(2, window_for(matches, events, 5))
    case = Case(5, window)
    table = Trades(events).table()
    with one_core():
        rows = [*_measure(console, table, case, None, repetitions, most_enumerated=2 * matches)]
    _print(console, f"{case.name}, {events:,} events: ms of processor time, median of {repetitions}", rows)
    _save(console, out, "aggregate-large", judge(rows, large=True), rows, repetitions)
    return rows


def _measure(
    console: Console,
    table: pa.Table,
    case: Case,
    run: Callable[[str], pa.Table] | None,
    repetitions: int,
    *,
    most_enumerated: float | None = None,
) -> Iterator[AggregateRow]:
    console.print(case.text("COUNT"), style="dim", highlight=False)
    # Counting tells first what the others can afford.
    matches = float(answer_of(table, case.numbering) or 0)
    form = ""
    for aggregate in AGGREGATES if most_enumerated is None else ("COUNT", "AVG"):
        answer = counted(table, case, aggregate)
        sides: dict[str, Callable[[], Answer]] = {
            "auto": partial(chosen, table, case, aggregate),
            "counting": partial(counted, table, case, aggregate),
            "plain scan": partial(scanned, table, case, aggregate),
        }
        if matches <= (most_enumerated or MOST_ENUMERATED) and (most_enumerated is None or aggregate == "COUNT"):
            sides["enumeration"] = partial(enumerated, table, case, aggregate)
        if run is not None and matches <= MOST_JOINED and case.length <= LONGEST_JOINED:
            forms = sql_forms(case, aggregate)
            # By processor time: on a busy machine, wall time might not pick DuckDB's best form.
            form = form or fastest(forms, run, tries=1, clock=time.process_time)
            sides["DuckDB"] = partial(sql_answer, run, forms[form])
        timings = _timings(case, aggregate, answer, sides, repetitions)
        yield _row(case, aggregate, table.num_rows, matches, answer, timings, form if "DuckDB" in sides else "")


def _timings(
    case: Case, aggregate: str, answer: Answer, sides: Mapping[str, Callable[[], Answer]], repetitions: int
) -> dict[str, Timing]:
    """The timings of sides that agree; those that take long run once."""
    once: dict[str, Timing] = {}
    for name in ("enumeration", "DuckDB"):
        if name in sides:
            begun = time.process_time()
            seconds, other = timed(sides[name])
            once[name] = Timing((seconds,), (time.process_time() - begun,))
            check_equal(case, aggregate, answer, other, name)
    in_turns = {name: run for name, run in sides.items() if name not in once or once[name].best <= RUNS_ONCE}
    return {**once, **alternate(in_turns, repetitions)}


def _row(
    case: Case,
    aggregate: str,
    events: int,
    matches: float,
    answer: Answer,
    timings: Mapping[str, Timing],
    form: str,
) -> AggregateRow:
    ours, counting, scan = timings["auto"], timings["counting"], timings["plain scan"]
    made, joined = timings.get("enumeration"), timings.get("DuckDB")
    return AggregateRow(
        aggregate=aggregate,
        length=case.length,
        window=case.window,
        by_events=case.by_events,
        keyed=case.keyed,
        events=events,
        matches=matches,
        answer=answer,
        seconds=ours.median,
        processor=ours.busy,
        counting_seconds=counting.median,
        counting_processor=counting.busy,
        scan_seconds=scan.median,
        scan_processor=scan.busy,
        enumeration_seconds=made.median if made else None,
        enumeration_processor=made.busy if made else None,
        duckdb_seconds=joined.median if joined else None,
        duckdb_processor=joined.busy if joined else None,
        duckdb_form=form,
    )


def _beside_smallest(rows: Sequence[AggregateRow]) -> list[AggregateRow]:
    """The rows with their processor time over that of the smallest window of the same query."""

    def query(row: AggregateRow) -> tuple[str, int, bool, bool]:
        return row.aggregate, row.length, row.by_events, row.keyed

    smallest: dict[tuple[str, int, bool, bool], AggregateRow] = {}
    for row in rows:
        if query(row) not in smallest or row.window < smallest[query(row)].window:
            smallest[query(row)] = row
    return [replace(row, of_smallest=row.counting_processor / smallest[query(row)].counting_processor) for row in rows]


@dataclass(frozen=True, slots=True)
class _Point:
    """A point of a chart."""

    x: str
    mode: str
    strategy: str
    seconds: float
    view_bytes: int = 0


def _points(row: AggregateRow) -> Iterator[_Point]:
    sides = {
        "auto": row.processor,
        "counting": row.counting_processor,
        "plain scan": row.scan_processor,
        "enumeration": row.enumeration_processor,
        "DuckDB": row.duckdb_processor,
    }
    for side, seconds in sides.items():
        if seconds is not None:
            yield _Point(f"{row.window:,}, SEQ of {row.length}", row.aggregate, side, seconds)


def _save(
    console: Console,
    out: Path,
    name: str,
    goals: Sequence[Goal],
    rows: Sequence[AggregateRow],
    repetitions: int,
) -> None:
    for goal in goals:
        console.print(judged(goal.text, met=goal.met), highlight=False)
    header = {
        "machine": machine("duckdb"),
        "repetitions": repetitions,
        "goals": {goal.name: {"figure": goal.figure, "at most": goal.limit, "met": goal.met} for goal in goals},
    }
    console.print(f"Saved: {save(out, name, header, rows)}")


def _print(console: Console, title: str, rows: Sequence[AggregateRow]) -> None:
    chosen = widths(COLUMNS, rows, console.width)
    console.print(grouped(title, COLUMNS, chosen, rows))


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:,.1f}"


COLUMNS: Sequence[Column] = (
    Column("SEQ of", lambda r: str(r.length)),
    Column("window", lambda r: f"{r.window:,}"),
    Column("", lambda r: r.aggregate),
    Column("matches", lambda r: f"{r.matches:,.0f}" if r.matches < 1e7 else f"{r.matches:.2g}"),
    Column("auto", lambda r: _ms(r.processor)),
    Column("wall", lambda r: _ms(r.seconds)),
    Column("/faster", lambda r: f"{r.of_best:.2f}"),
    Column("counting", lambda r: _ms(r.counting_processor)),
    Column("scan", lambda r: _ms(r.scan_processor)),
    Column("/scan", lambda r: f"{r.of_scan:.1f}"),
    Column("/smallest", lambda r: f"{r.of_smallest:.2f}"),
    Column("enumeration", lambda r: _ms(r.enumeration_processor)),
    Column("DuckDB", lambda r: _ms(r.duckdb_processor)),
)
