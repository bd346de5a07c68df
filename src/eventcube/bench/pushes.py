"""Measures workloads of related queries at work: planning, pushes of one event, and the bytes of their states."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from rich.console import Console

from eventcube.bench.measure import Column, alternate, judged, listed, machine, save
from eventcube.bench.trades import SCHEMA, trades
from eventcube.bench.workload import Sequence as Query
from eventcube.bench.workload import related_queries
from eventcube.language.parse import parse
from eventcube.options import options
from eventcube.plan.planned import plan_query, plan_together
from eventcube.runtime.runtime import Runtime

OPTIONS = options(time="ts", type="symbol")
# Milliseconds to plan so many queries, at most.
PLANNING_GOALS = {200: 1000.0}
# Events before the first push that is measured, and pushes.
BEFORE, PUSHES = 2000, 600
# Milliseconds of a push to one query, at most, and to so many as a multiple of it.
PUSH_GOAL, PUSH_GOALS = 0.2, {50: 20.0}
# Changes of a state, each after so many events.
CHANGES, CHANGE_EVENTS = 100, 10
MOST_STATE_QUERIES = 50
# Results and windows in ms: matches of the longer one are too many to return.
STATES = (("count", 20), ("matches", 20), ("count", 2000))
# Changes may add up to so many times the bytes of what came: the events themselves, and counts of matches.
STATE_GOAL = 2.0
_BYTES_OF_COUNT = 8


@dataclass(frozen=True, slots=True)
class WorkloadPlanningRow:
    """Milliseconds of processor time to plan some queries: parse, bind and plan each, plan all together."""

    queries: int
    parse_ms: float
    plan_ms: float
    together_ms: float
    total_ms: float
    goal_ms: float | None


@dataclass(frozen=True, slots=True)
class PushRow:
    """A push of one event: medians in milliseconds of wall and (`busy`) processor time, and events kept afterwards."""

    kind: str
    queries: int
    symbols: int
    ms: float
    busy_ms: float
    times_one: float
    goal: float | None
    kept: int


@dataclass(frozen=True, slots=True)
class StateRow:
    """Bytes of the state of some queries, and of what changed in it over many small pushes.

    `columns` are the bytes of the pushed events' Arrow columns; `counts` are 8 bytes for every query that counts its
    matches, after each push. `changes` and `wholes` are the bytes of a change and of a whole state after each push,
    added up, `at_once` those of one change after all pushes, `fixed` those of a change without an event. `times_came`
    is `changes` over `columns` and `counts`.
    """

    kind: str
    window_ms: int
    queries: int
    kept: int
    whole: int
    columns: int
    counts: int
    at_once: int
    fixed: int
    changes: int
    wholes: int
    times_came: float


def measure_planning(
    console: Console, out: Path, queries: Sequence[Query], numbers: Sequence[int], repetitions: int
) -> list[WorkloadPlanningRow]:
    """Times the planning of workloads; prints the table and saves it as `many-planning`."""
    rows = [_planning_row(queries[:number], repetitions) for number in numbers]
    title = f"Planning, ms of processor time, median of {repetitions}"
    console.print(listed(title, PLANNING_COLUMNS, rows))
    console.print(f"Saved: {save(out, 'many-planning', {'machine': machine(), 'repetitions': repetitions}, rows)}")
    return rows


def measure_pushes(console: Console, out: Path, queries: Sequence[Query], numbers: Sequence[int]) -> list[PushRow]:
    """Times pushes of one event; prints the table and saves it as `many-push`."""
    table = trades(BEFORE + PUSHES)
    rows: list[PushRow] = []
    for kind in ("count", "matches"):
        # The multiples are of one query, whether that is asked for or not.
        timed = {number: _time_pushes(queries[:number], kind, table) for number in sorted({1, *numbers})}
        for number in numbers:
            ms, busy_ms, kept = timed[number]
            symbols = len({symbol for q in queries[:number] for symbol in q.symbols})
            times_one = busy_ms / timed[1][1]
            rows.append(PushRow(kind, number, symbols, ms, busy_ms, times_one, PUSH_GOALS.get(number), kept))
    title = f"A push of one event, ms, median of {PUSHES} after {BEFORE:,} events; CPU: processor time"
    console.print(listed(title, PUSH_COLUMNS, rows))
    console.print(f"Goals: {PUSH_GOAL:g} ms for one query, or a multiple of it.")
    console.print("Kept: events in the state, each once, of the symbols that the queries name and in their window.")
    console.print(f"Saved: {save(out, 'many-push', {'machine': machine(), 'pushes': PUSHES}, rows)}")
    return rows


def measure_states(console: Console, out: Path, numbers: Sequence[int]) -> list[StateRow]:
    """Adds up the bytes of states and changes; prints the table and saves it as `many-state`."""
    rows = [
        _state_row(related_queries(number, window_ms=window_ms), kind)
        for kind, window_ms in STATES
        for number in numbers
        if number <= MOST_STATE_QUERIES
    ]
    if not rows:
        return rows
    title = f"Bytes of states after {BEFORE:,} events, and of what changed in {CHANGES} pushes of {CHANGE_EVENTS} more"
    console.print(listed(title, STATE_COLUMNS, rows))
    console.print("Columns: the pushed events as Arrow. Counts: 8 bytes for each query that counts, after each push.")
    console.print("At once: one change after all pushes. Fixed: one without events.")
    console.print("Changes, wholes: a change, and a whole state, after each push, added up.")
    console.print("Times: changes over columns and counts.")
    console.print(f"Saved: {save(out, 'many-state', {'machine': machine()}, rows)}")
    return rows


def _planning_row(queries: Sequence[Query], repetitions: int) -> WorkloadPlanningRow:
    schema = OPTIONS.schema(SCHEMA)
    parsed = {q.name: parse(q.text) for q in queries}
    planned = {name: plan_query(query, schema, OPTIONS) for name, query in parsed.items()}
    sides: dict[str, Callable[[], object]] = {
        "parse": lambda: [parse(q.text) for q in queries],
        "plan": lambda: [plan_query(query, schema, OPTIONS) for query in parsed.values()],
        "together": lambda: plan_together(planned, None),
    }
    parse_ms, plan_ms, together_ms = (timing.busy * 1e3 for timing in alternate(sides, repetitions).values())
    total, goal = parse_ms + plan_ms + together_ms, PLANNING_GOALS.get(len(queries))
    return WorkloadPlanningRow(len(queries), parse_ms, plan_ms, together_ms, total, goal)


def _runtime(queries: Sequence[Query], kind: str) -> Runtime:
    texts = {q.name: q.text if kind == "matches" else q.counting for q in queries}
    return Runtime(texts, schema=SCHEMA, separate=True, advise=False, time="ts", type="symbol")


def _push(runtime: Runtime, events: pa.Table) -> None:
    for _ in runtime.push(events):
        pass


def _kept(runtime: Runtime) -> int:
    assert runtime.workload is not None
    return runtime.workload.engine.state.size


def _time_pushes(queries: Sequence[Query], kind: str, table: pa.Table) -> tuple[float, float, int]:
    """The median milliseconds of a push in wall and in processor time, and how many events are kept after them."""
    runtime = _runtime(queries, kind)
    _push(runtime, table.slice(0, BEFORE))
    events = [table.slice(place, 1) for place in range(BEFORE, table.num_rows)]
    gc.collect()
    seconds, busy = [], []
    for event in events:
        begun, processor = time.perf_counter(), time.process_time()
        _push(runtime, event)
        busy.append(time.process_time() - processor)
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds) * 1e3, statistics.median(busy) * 1e3, _kept(runtime)


def _state_row(queries: Sequence[Query], kind: str) -> StateRow:
    table = trades(BEFORE + CHANGES * CHANGE_EVENTS)
    runtime = _runtime(queries, kind)
    _push(runtime, table.slice(0, BEFORE))
    kept, whole, begun = _kept(runtime), len(runtime.snapshot()), runtime.version
    fixed = len(runtime.snapshot(since=begun))
    changes = wholes = 0
    for place in range(BEFORE, table.num_rows, CHANGE_EVENTS):
        since = runtime.version
        _push(runtime, table.slice(place, CHANGE_EVENTS))
        changes += len(runtime.snapshot(since=since))
        wholes += len(runtime.snapshot())
    at_once, columns = len(runtime.snapshot(since=begun)), table.slice(BEFORE).nbytes
    counts = _BYTES_OF_COUNT * len(queries) * CHANGES if kind == "count" else 0
    return StateRow(
        kind=kind,
        window_ms=queries[0].window_ms,
        queries=len(queries),
        kept=kept,
        whole=whole,
        columns=columns,
        counts=counts,
        at_once=at_once,
        fixed=fixed,
        changes=changes,
        wholes=wholes,
        times_came=changes / (columns + counts),
    )


PLANNING_COLUMNS: Sequence[Column] = (
    Column("queries", lambda r: f"{r.queries}"),
    Column("parse", lambda r: f"{r.parse_ms:.1f}"),
    Column("bind and plan", lambda r: f"{r.plan_ms:.1f}"),
    Column("plan together", lambda r: f"{r.together_ms:.1f}"),
    Column("all", lambda r: judged(f"{r.total_ms:.1f}", met=r.total_ms <= (r.goal_ms or r.total_ms))),
    Column("goal", lambda r: "" if r.goal_ms is None else f"{r.goal_ms:g}"),
)
PUSH_COLUMNS: Sequence[Column] = (
    Column("result", lambda r: r.kind),
    Column("queries", lambda r: f"{r.queries}"),
    Column("symbols", lambda r: f"{r.symbols}"),
    Column("ms", lambda r: f"{r.ms:.3f}"),
    Column("CPU", lambda r: judged(f"{r.busy_ms:.3f}", met=r.queries > 1 or r.busy_ms <= PUSH_GOAL)),
    Column("times one query", lambda r: judged(f"{r.times_one:.1f}", met=r.times_one <= (r.goal or r.times_one))),
    Column("goal", lambda r: "" if r.goal is None else f"{r.goal:g}"),
    Column("kept", lambda r: f"{r.kept}"),
)
STATE_COLUMNS: Sequence[Column] = (
    Column("result", lambda r: r.kind),
    Column("window ms", lambda r: f"{r.window_ms}"),
    Column("queries", lambda r: f"{r.queries}"),
    Column("kept", lambda r: f"{r.kept:,}"),
    Column("whole state", lambda r: f"{r.whole:,}"),
    Column("columns", lambda r: f"{r.columns:,}"),
    Column("counts", lambda r: f"{r.counts:,}"),
    Column("at once", lambda r: f"{r.at_once:,}"),
    Column("fixed", lambda r: f"{r.fixed:,}"),
    Column("changes", lambda r: f"{r.changes:,}"),
    Column("wholes", lambda r: f"{r.wholes:,}"),
    Column("times", lambda r: judged(f"{r.times_came:.1f}", met=r.times_came <= STATE_GOAL)),
    Column("goal", lambda r: f"{STATE_GOAL:g}"),
)
