"""Tells where the time of the engine's queries goes, stage by stage, and what events out of order cost.

For a run, the few functions in which stages begin and end are wrapped in timers, and put back afterwards. A function
that is called inside another one counts for its own stage only, so that the stages of a run add up to its time; what no
timer covers is the rest. A generator is timed each time that it is asked for the next item.
"""

from __future__ import annotations

import gc
import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import eventcube.engine.sinks.matches as match_sink
import eventcube.engine.store as stores
import eventcube.runtime.ingest as ingests
from eventcube.bench.checksum import checksum, same_matches
from eventcube.bench.engine import eventcube_answer
from eventcube.bench.measure import Column, alternate, judged, listed, machine, one_core, save, screen
from eventcube.bench.trades import Trades
from eventcube.bench.workload import Q1, Q2, Q4
from eventcube.bench.workload import Sequence as Query
from eventcube.engine.engine import Engine
from eventcube.engine.execute import Execution
from eventcube.engine.output import Output
from eventcube.engine.state import State
from eventcube.engine.type_codes import TypeCodes
from eventcube.runtime.ingest import Ingest
from eventcube.runtime.input_profile import InputProfile
from eventcube.runtime.runtime import Runtime

# The package has a function of that name, too.
matching = import_module("eventcube.match")

# The rate of shuffled events over that of sorted ones, at least.
GOAL = 0.4
REST = "rest"
# The functions whose time is that of a stage, less that of the functions of other stages inside them.
STAGES: dict[str, tuple[tuple[Any, str], ...]] = {
    "planning": ((matching, "queries_by_name"), (Runtime, "plan")),
    "times": ((matching, "read_times"), (ingests, "read_times"), (Ingest, "take")),
    "types": ((TypeCodes, "codes"), (InputProfile, "record_types")),
    # Whether events are in order, and where they are not, what puts them in order.
    "sorting": ((matching, "run"), (Ingest, "release"), (stores.SortedRows, "__init__")),
    "stacking": ((State, "append"), (State, "purge")),
    "windows": ((stores.SortedRows, "windows"), (stores, "links")),
    "joins": ((Execution, "run"), (Execution, "count")),
    "output": ((Output, "batch"), (match_sink, "joined"), (matching, "_table")),
    REST: ((Engine, "feed"),),
}


@dataclass(frozen=True, slots=True)
class StageRow:
    """A query: rates in events a second without timers, and milliseconds of each stage (processor time).

    The stages are those of the run with timers that took the median time.
    """

    query: str
    events: int
    matches: int
    rate: float
    processor_rate: float
    of_sorted: float | None
    """Its rate over that of the same query over the same events in order, by processor time."""
    planning: float
    times: float
    types: float
    sorting: float
    stacking: float
    windows: float
    joins: float
    output: float
    rest: float

    @property
    def total(self) -> float:
        """The milliseconds of all stages."""
        return sum(float(getattr(self, stage)) for stage in STAGES)


class Stopwatch:
    """The seconds of each stage; a stage inside another one stops the other's time."""

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self._clock = clock
        self._stages = [REST]
        self._since = clock()

    @contextmanager
    def timing(self, stage: str) -> Iterator[None]:
        """Count the time for a stage, until it ends or another one begins."""
        self._note()
        self._stages.append(stage)
        try:
            yield
        finally:
            self._note()
            self._stages.pop()

    def stop(self) -> dict[str, float]:
        """The seconds of each stage so far."""
        self._note()
        return self.seconds

    def _note(self) -> None:
        now = self._clock()
        self.seconds[self._stages[-1]] += now - self._since
        self._since = now


@contextmanager
def timers(watch: Stopwatch) -> Iterator[None]:
    """Have the functions of all stages timed."""
    wrapped = [(owner, name, vars(owner)[name], stage) for stage, places in STAGES.items() for owner, name in places]
    try:
        for owner, name, function, stage in wrapped:
            setattr(owner, name, _timed(function, stage, watch))
        yield
    finally:
        for owner, name, function, _ in wrapped:
            setattr(owner, name, function)


def _timed(function: Callable[..., Any], stage: str, watch: Stopwatch) -> Callable[..., Any]:
    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        with watch.timing(stage):
            return function(*arguments, **named)

    @wraps(function)
    def generate(*arguments: Any, **named: Any) -> Iterator[Any]:
        items = function(*arguments, **named)
        while True:
            with watch.timing(stage):
                try:
                    item = next(items)
                except StopIteration:
                    return
            yield item

    return generate if inspect.isgeneratorfunction(function) else call


def bench_stages(out: Path, *, events: int = 1_000_000, repetitions: int = 7) -> list[StageRow]:
    """Measures Q1, Q2 and Q4, and Q1 over shuffled events; prints the table, and saves it as `engine-stages`."""
    console = screen(150)
    table = Trades(events).table()
    shuffled = table.take(pa.array(np.random.default_rng(7).permutation(events)))
    cases = {"Q1": (Q1, table), "Q2": (Q2, table), "Q4": (Q4, table), "Q1, shuffled": (Q1, shuffled)}
    with one_core():
        matches = {name: _matches(name, query, table, given) for name, (query, given) in cases.items()}
        sides = {name: partial(eventcube_answer, given, query) for name, (query, given) in cases.items()}
        timings = alternate(sides, repetitions)
        stages = {name: stages_of(query, given, repetitions) for name, (query, given) in cases.items()}
    rows = [
        StageRow(
            query=name,
            events=events,
            matches=matches[name],
            rate=events / timing.median,
            processor_rate=events / timing.busy,
            of_sorted=timings["Q1"].busy / timing.busy if name == "Q1, shuffled" else None,
            **{stage: seconds * 1e3 for stage, seconds in stages[name].items()},
        )
        for name, timing in timings.items()
    ]
    console.print(listed(f"Where the time goes: ms of processor time, median of {repetitions}", COLUMNS, rows))
    console.print("Rates, in M events/s, are of runs without timers; CPU: by processor time.")
    header = {"machine": machine(), "repetitions": repetitions}
    console.print(f"Saved: {save(out, 'engine-stages', header, rows)}")
    return rows


def stages_of(query: Query, table: pa.Table, repetitions: int) -> dict[str, float]:
    """The seconds of each stage of the run with the median time."""
    runs = []
    for _ in range(repetitions):
        gc.collect()
        watch = Stopwatch()
        with timers(watch):
            answer = eventcube_answer(table, query)
            runs.append(dict(watch.stop()))
        del answer
    return sorted(runs, key=lambda seconds: sum(seconds.values()))[len(runs) // 2]


def _matches(name: str, query: Query, table: pa.Table, given: pa.Table) -> int:
    """The number of matches, if they do not depend on the order of the events."""
    answers = {"sorted": eventcube_answer(table, query), "as given": eventcube_answer(given, query)}
    return same_matches(name, {side: checksum(answer.to_batches()) for side, answer in answers.items()})


COLUMNS: Sequence[Column] = (
    Column("query", lambda r: r.query),
    Column("rate", lambda r: f"{r.rate / 1e6:.1f}"),
    Column("CPU", lambda r: f"{r.processor_rate / 1e6:.1f}"),
    Column("of sorted", lambda r: "" if r.of_sorted is None else judged(f"{r.of_sorted:.2f}", met=r.of_sorted >= GOAL)),
    Column("goal", lambda r: "" if r.of_sorted is None else f"{GOAL:g}"),
    Column("all ms", lambda r: f"{r.total:.1f}"),
    *(Column(stage, lambda r, stage=stage: f"{getattr(r, stage):.1f}") for stage in STAGES),  # type: ignore[misc]
)
