"""Measures the choice between counting matches by stages and making them: both ways, the one taken, and estimates.

From the times follow the constants of `optimizer/aggregates.py` that would fit them.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
from rich.console import Console

from eventcube.bench.aggregate_cases import AGGREGATES, Case, cases
from eventcube.bench.aggregate_goals import CHOICE, OF_BEST, Goal
from eventcube.bench.aggregate_sides import only_sorting
from eventcube.bench.measure import Column, judged, listed, machine, one_core, save
from eventcube.bench.trades import Trades
from eventcube.optimizer.aggregates import COUNTING, MAKE_CALL, MAKING
from eventcube.options import AUTO, COUNT, ENUMERATE
from eventcube.runtime import Runtime

# Trades that are pushed at a time, beside all at once: so many times, for windows no longer than this.
PUSHES, TIMES, LONGEST = (100, 3_000), 30, 10_000
# Matches are not made where that should take so many times as long as to count them, unless they are few.
TOO_LONG, FEW = 30.0, 100_000
# Matches from which the time to fold one is told, and seconds below which times are taken to be equal.
FOLDED, LEAST_SECONDS = 100_000, 1e-4
# The run that only sorts events: what both ways have in common.
SORTING = "sorting"


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """A query over trades that are pushed so many at a time: seconds of processor time, and costs as estimated.

    `making` is None where there are too many matches. The query was asked in `calls`, `events` were walked through.
    """

    aggregate: str
    length: int
    window: int
    keyed: bool
    push: int
    calls: int
    events: int
    matches: int
    sorting: float
    counting: float
    making: float | None
    auto: float
    counting_cost: float
    making_cost: float
    taken: str

    @property
    def setting(self) -> tuple[int, int, bool, int]:
        """What rows of several aggregates have in common."""
        return self.length, self.window, self.keyed, self.push

    @property
    def weighed(self) -> bool:
        """Whether the aggregate has an argument."""
        return self.aggregate != "COUNT"

    @property
    def of_best(self) -> float:
        """The time of the way that is taken over that of the faster one."""
        return self.auto / min(self.counting, self.counting if self.making is None else self.making)


def bench_choice(
    console: Console, out: Path, events: int, lengths: Sequence[int], windows: Sequence[int], repetitions: int
) -> list[ChoiceRow]:
    """All trades at once, and small pushes; windows of time, keyed and not."""
    table = Trades(events).table()
    asked = [case for case in cases(lengths, windows, most_events=events) if not case.by_events]
    with one_core():
        rows = [row for case in asked for row in _measured(console, table, case, repetitions)]
    console.print(listed(f"{events:,} trades: ms of processor time, least of {repetitions}", COLUMNS, rows))
    worst = max(rows, key=lambda row: row.of_best)
    where = f"{worst.aggregate} of SEQ of {worst.length} within {worst.window:,} ms, {worst.push:,} trades at a time"
    goal = Goal(CHOICE, worst.of_best, OF_BEST, where)
    console.print(judged(goal.text, met=goal.met), highlight=False)
    fitting = constants(rows)
    for name, value in fitting.items():
        console.print(f"{name} = {value:,.1f}", highlight=False)
    header = {"machine": machine(), "repetitions": repetitions, "constants": fitting}
    console.print(f"Saved: {save(out, 'aggregate-choice', header, rows)}")
    return rows


def _measured(console: Console, table: pa.Table, case: Case, repetitions: int) -> Iterator[ChoiceRow]:
    for push in (table.num_rows, *(push for push in PUSHES if case.window <= LONGEST)):
        # Small pushes come after a window or two.
        first = 0 if push == table.num_rows else min(table.num_rows // 2, 2 * case.window)
        part = table.slice(0, first + TIMES * push)
        for aggregate in AGGREGATES:
            row = _row(part, case, aggregate, first, push, repetitions)
            console.print(
                f"{case.text(aggregate)}, {push:,} at a time: {row.of_best:.2f}", style="dim", highlight=False
            )
            yield row


def _row(table: pa.Table, case: Case, aggregate: str, first: int, push: int, repetitions: int) -> ChoiceRow:
    text = case.text(aggregate)
    counted, weighed = _run(table, text, COUNT, first, push)[0], _run(table, text, AUTO, first, push)[0]
    assert weighed.workload is not None
    (query,) = weighed.workload.engine.queries.values()
    assert query.countable is not None
    expected, taken = query.countable.choice.expected, query.countable.choice.taken
    counting, making = expected.get(COUNTING, 0.0), expected.get(MAKING, 0.0)
    matches = counted.counters["matches"]
    ways = [SORTING, COUNT, AUTO, *([ENUMERATE] if making < TOO_LONG * counting or matches < FEW else [])]
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(repetitions):
        for way in ways:
            gc.collect()
            best[way] = min(best[way], _run(table, text, way, first, push)[1])
    return ChoiceRow(
        aggregate=aggregate,
        length=case.length,
        window=case.window,
        keyed=case.keyed,
        push=push,
        calls=sum(taken.values()),
        events=counted.counters["events_counted"],
        matches=matches,
        sorting=best[SORTING],
        counting=best[COUNT],
        making=best.get(ENUMERATE),
        auto=best[AUTO],
        counting_cost=counting,
        making_cost=making,
        taken=max(taken, key=taken.__getitem__),
    )


def _run(table: pa.Table, text: str, way: str, first: int, push: int) -> tuple[Runtime, float]:
    """A runtime that has seen all events, and how long that took; the first of them are pushed at once."""
    aggregates = COUNT if way == SORTING else way
    runtime = Runtime(text, time="ts", type="symbol", aggregates=aggregates, advise=False)
    with only_sorting() if way == SORTING else nullcontext():
        begun = time.process_time()
        for at in ([0] if first else []) + [*range(first, table.num_rows, push)]:
            for _ in runtime.push(table.slice(at, first if at < first else push)):
                pass
        for _ in runtime.finish():
            pass
        return runtime, time.process_time() - begun


def constants(rows: Sequence[ChoiceRow]) -> dict[str, float]:
    """The nanoseconds of a unit of cost, and the constants that would fit these times.

    What groups cost in each call, however many matches are folded into them, is left out, as both ways have that.
    """
    made = [(row, row.making - row.sorting) for row in rows if row.making is not None and row.making_cost]
    if not made:
        return {}
    joins = [(row.making_cost - row.calls * MAKE_CALL, row.calls, row.calls * row.weighed) for row, _ in made]
    unit, call, groups = _fitted(joins, [seconds for _, seconds in made])
    walks = [(row.calls, row.calls * row.weighed, row.events, row.events * row.weighed) for row in rows]
    count, weight, event, weighed = _fitted(walks, [row.counting - row.sorting for row in rows])
    plain = {row.setting: seconds for row, seconds in made if not row.weighed}
    folds = [
        (seconds - plain[row.setting]) / row.matches
        for row, seconds in made
        if row.weighed and row.setting in plain and row.matches > FOLDED
    ]
    fitting = {
        "COUNT_CALL": count,
        "WEIGHT_CALL": weight - groups,
        "MAKE_CALL": call,
        "IN_LINE + WALK": event,
        "WEIGHT": weighed,
        "FOLD + FOLD_VALUE": median(folds or [0.0]),
    }
    return {"ns": 1e9 * unit, **{name: value / unit for name, value in fitting.items()}}


def _fitted(features: Sequence[Sequence[float]], seconds: Sequence[float]) -> list[float]:
    """The factors with which features add up to times, by least squares of relative errors."""
    weights = 1.0 / np.maximum(np.array(seconds), LEAST_SECONDS)
    factors = np.linalg.lstsq(np.array(features) * weights[:, None], np.array(seconds) * weights, rcond=None)[0]
    return [float(factor) for factor in factors]


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:,.1f}"


COLUMNS = (
    Column("SEQ of", lambda r: f"{r.length}{', keyed' if r.keyed else ''}"),
    Column("window", lambda r: f"{r.window:,}"),
    Column("at a time", lambda r: f"{r.push:,}"),
    Column("", lambda r: r.aggregate),
    Column("matches", lambda r: f"{r.matches:,}" if r.matches < 1e9 else f"{r.matches:.2g}"),
    Column("sorting", lambda r: _ms(r.sorting)),
    Column("counting", lambda r: _ms(r.counting)),
    Column("making", lambda r: _ms(r.making)),
    Column("auto", lambda r: _ms(r.auto)),
    Column("/ faster", lambda r: f"{r.of_best:.2f}"),
    Column("taken", lambda r: r.taken),
    Column("estimated: counting", lambda r: f"{r.counting_cost:,.0f}"),
    Column("making", lambda r: f"{r.making_cost:,.0f}" if r.making_cost < 1e12 else f"{r.making_cost:.2g}"),
)
