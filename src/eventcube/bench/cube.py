"""The experiments of the paper on the event cube: workloads 1 to 8, by every way to share their work.

Liu et al. 2011 (E-Cube), section 7. Trades are one millisecond apart, so that a window of 400 ms holds 400 of them. One
core; the ways take turns, each from text to results, which are read and dropped. Matches are counted, or returned with
the times of their events. What `cube_many.py` and `cube_plans.py` measure follows: 200 queries, planning, and how well
costs are estimated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from eventcube.bench.checksum import Checksum, same_matches
from eventcube.bench.cube_many import measure_many
from eventcube.bench.cube_plans import measure_estimates, measure_planning
from eventcube.bench.cube_runs import FIXED, SHARINGS, Run, run
from eventcube.bench.cube_workloads import SECTORS, WORKLOADS, CubeWorkload
from eventcube.bench.measure import Column, judged, listed, machine, one_core, save, screen
from eventcube.bench.plots import Picture, draw
from eventcube.concepts.concepts import Concepts

COUNTED, RETURNED = "count", "matches"
# Trades whose matches are counted, and returned, and those pushed.
EVENTS, RETURNED_EVENTS, PUSHED_EVENTS, PUSH = 1_000_000, 300_000, 50_000, 1_000
# The paper's times that chase is faster than independent queries, and bottom-up for concepts.
PAPER = {
    "1": "7.6",
    "2": "9.9",
    "3": "27.9",
    "4": "bottom-up about 2",
    "5": "bottom-up about 2",
    "6": "bottom-up about 2",
}
# Chase makes at most one of so many rows of what independent queries make, and is so many times faster.
FEWER, FASTER = {"1": 8.0, "2": 10.0, "3": 28.0}, {"1": 3.0, "2": 3.0, "3": 3.0, "4": 1.5}
# Chase takes at most so many times the time of the best fixed plan, and its rows.
TIME_GOAL, CLOSE_TIME_GOAL, ROWS_GOAL = 1.2, 1.05, 1.05


@dataclass(frozen=True, slots=True)
class CubeRow:
    """One way to share in one setting: the shortest processor time, the work, and what they are compared with.

    `rows` are partial matches that steps were given or made. `bound` is how many times faster it could be than
    independent queries: in workloads of two queries if the finer one cost nothing, in others if there were no match.
    `of_best` and `rows_of_best` compare with the best fixed plan; `latency_ms` is that of pushes of 1,000 events.
    """

    workload: str
    rates: str
    result: str
    sharing: str
    events: int
    window: int
    seconds: float
    faster: float
    made: int
    fewer: float
    rows: int
    candidates: int
    matches: int
    us_each: float
    latency_ms: float
    of_best: float
    rows_of_best: float
    bound: float
    paper: str
    fewer_goal: float | None
    faster_goal: float | None
    time_goal: float


def bench_cube(
    out: Path, names: Sequence[str] = (), *, scale: float = 1.0, repetitions: int = 5, plots: bool = True
) -> list[CubeRow]:
    """Measures the workloads and, unless only some are asked for, everything else; saves `cube*` in the folder."""
    console = screen(200)
    header = {"machine": machine(), "repetitions": repetitions, "scale": scale}
    rows: list[CubeRow] = []
    with one_core():
        for name in names or WORKLOADS:
            rows += _measure(console, WORKLOADS[name], scale, repetitions)
        for result in (COUNTED, RETURNED):
            title = f"Matches {'counted' if result == COUNTED else 'returned'}, one core, shortest of {repetitions}"
            console.print(listed(title, COLUMNS, [row for row in rows if row.result == result]), crop=False)
        for note in NOTES:
            console.print(note, highlight=False)
        console.print(f"Saved: {save(out, 'cube', header, rows)}", soft_wrap=True)
        if not names:
            measure_many(console, out, events=int(EVENTS * scale), repetitions=repetitions)
            measure_planning(console, out, repetitions=repetitions, scale=scale)
            measure_estimates(console, out, scale=scale, repetitions=repetitions)
    if plots:
        title = "E-Cube workloads by the way to share (processor time)"
        drawn = draw(out / "cube", title, "workload", _points(rows), Picture(bars=True))
        console.print(f"Drawn: {drawn}", soft_wrap=True)
    return rows


def _measure(console: Console, workload: CubeWorkload, scale: float, repetitions: int) -> Iterator[CubeRow]:
    for rates in workload.settings:
        for result in (COUNTED, RETURNED):
            console.print(f"workload {workload.name}, {rates}: {result}", style="dim", highlight=False)
            yield from _rows(_Setting(workload, rates, result, scale), repetitions)


@dataclass(frozen=True, slots=True)
class _Setting:
    """A workload over trades with some rates, counted or returned."""

    workload: CubeWorkload
    rates: str
    result: str
    scale: float

    @property
    def window(self) -> int:
        return self.workload.window if self.result == COUNTED else self.workload.returned_window

    @property
    def events(self) -> int:
        events = EVENTS if self.result == COUNTED else RETURNED_EVENTS
        return max(2 * PUSH, int(events * self.scale))

    def texts(self, window: int) -> dict[str, str]:
        return self.workload.texts(window, counted=self.result == COUNTED)


def _rows(setting: _Setting, repetitions: int) -> Iterator[CubeRow]:
    workload, concepts = setting.workload, Concepts(SECTORS)
    table = workload.trades(setting.rates, setting.events).table()
    first = table.slice(0, min(len(table), max(2 * PUSH, int(PUSHED_EVENTS * setting.scale))))
    pushes = [first.slice(at, PUSH) for at in range(0, len(first), PUSH)]
    texts = setting.texts(setting.window)
    work = {sharing: run(texts, concepts, sharing, [table], count_rows=True) for sharing in SHARINGS}
    latency = {sharing: run(texts, concepts, sharing, pushes).latency_ms for sharing in SHARINGS}
    sides = {sharing: (texts, sharing) for sharing in SHARINGS}
    if len(workload.queries) == 2:
        sides["bound"] = {workload.coarsest: texts[workload.coarsest]}, "independent"
    else:
        sides["bound"] = setting.texts(1), "chase"
    seconds = dict.fromkeys(sides, float("inf"))
    for _ in range(repetitions):
        for side, (asked, sharing) in sides.items():
            seconds[side] = min(seconds[side], run(asked, concepts, sharing, [table]).seconds)
    place = f"workload {workload.name}, {setting.rates}, {setting.result}"
    matches = same_matches(place, {s: Checksum(made.counters["matches"]) for s, made in work.items()})
    for sharing in SHARINGS:
        yield _row(setting, sharing, seconds, work, latency[sharing], matches)


def _row(
    setting: _Setting,
    sharing: str,
    seconds: Mapping[str, float],
    work: Mapping[str, Run],
    latency_ms: float,
    matches: int,
) -> CubeRow:
    workload, counted = setting.workload, setting.result == COUNTED
    made = {side: max(1, done.counters["made"]) for side, done in work.items()}
    rare = counted and setting.rates != "equal rates"
    return CubeRow(
        workload=workload.name,
        rates=setting.rates,
        result=setting.result,
        sharing=sharing,
        events=setting.events,
        window=setting.window,
        seconds=seconds[sharing],
        faster=seconds["independent"] / seconds[sharing],
        made=work[sharing].counters["made"],
        fewer=made["independent"] / made[sharing],
        rows=work[sharing].rows,
        candidates=work[sharing].counters["candidates"],
        matches=matches,
        us_each=1e6 * seconds[sharing] / max(1, matches),
        latency_ms=latency_ms,
        of_best=seconds[sharing] / min(seconds[fixed] for fixed in FIXED),
        rows_of_best=work[sharing].rows / max(1, min(work[fixed].rows for fixed in FIXED)),
        bound=seconds["independent"] / seconds["bound"],
        paper=PAPER.get(workload.name, ""),
        fewer_goal=FEWER.get(workload.name) if rare else None,
        faster_goal=FASTER.get(workload.name) if rare else None,
        time_goal=CLOSE_TIME_GOAL if workload.change == "both" and counted else TIME_GOAL,
    )


@dataclass(frozen=True, slots=True)
class _Point:
    """A time in the plot."""

    x: str
    mode: str
    strategy: str
    seconds: float


def _points(rows: Sequence[CubeRow]) -> list[_Point]:
    modes = {COUNTED: "counted", RETURNED: "all matches returned"}
    return [
        _Point(
            r.workload if r.rates == "equal rates" else f"{r.workload}, {r.rates}",
            modes[r.result],
            r.sharing,
            r.seconds,
        )
        for r in rows
        if r.sharing != "auto"
    ]


def _is_chase(row: CubeRow) -> bool:
    return row.sharing not in FIXED


def _judged(row: CubeRow, text: str, *, met: bool) -> str:
    """A figure, judged for the plans that the optimizer chooses."""
    return judged(text, met=met) if _is_chase(row) else text


COLUMNS: Sequence[Column] = (
    Column("workload", lambda r: r.workload),
    Column("rates", lambda r: r.rates),
    Column("window", lambda r: f"{r.window}"),
    Column("sharing", lambda r: r.sharing),
    Column("CPU s", lambda r: f"{r.seconds:.3f}"),
    Column("faster", lambda r: _judged(r, f"{r.faster:.2f}", met=r.faster >= (r.faster_goal or 0))),
    Column("goal", lambda r: f"{r.faster_goal:g}" if r.faster_goal and _is_chase(r) else ""),
    Column("bound", lambda r: f"{r.bound:.1f}"),
    Column("paper", lambda r: r.paper),
    Column("made", lambda r: f"{r.made:,}"),
    Column("fewer", lambda r: _judged(r, f"{r.fewer:,.1f}", met=r.fewer >= (r.fewer_goal or 0))),
    Column("goal", lambda r: f"{r.fewer_goal:g}" if r.fewer_goal and _is_chase(r) else ""),
    Column("rows", lambda r: f"{r.rows:,}"),
    Column("matches", lambda r: f"{r.matches:,}"),
    Column("µs each", lambda r: f"{r.us_each:.4f}"),
    Column("latency ms", lambda r: f"{r.latency_ms:.2f}"),
    Column("/ best", lambda r: _judged(r, f"{r.of_best:.2f}", met=r.of_best <= r.time_goal)),
    Column("rows / best", lambda r: _judged(r, f"{r.rows_of_best:.2f}", met=r.rows_of_best <= ROWS_GOAL)),
)
NOTES = (
    "faster, fewer: than independent queries, in processor time and in rows of partial matches made.",
    "bound: how many times faster it could be, if the finer of two queries cost nothing, or if nothing matched.",
    f"/ best: of the best fixed plan; goals: {TIME_GOAL} ({CLOSE_TIME_GOAL} for 7 and 8, counted), rows {ROWS_GOAL}.",
    "latency: from the push of 1,000 events in which a match ends to its result, processor time.",
)
