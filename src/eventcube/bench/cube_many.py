"""200 related queries together, beside 20 of them one after the other: those of `many.py`, and of a deep hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pyarrow as pa
from rich.console import Console

from eventcube.bench.cube_runs import FIXED, run
from eventcube.bench.cube_workloads import generated_queries, level_concepts
from eventcube.bench.measure import Column, judged, listed, machine, save
from eventcube.bench.trades import Trades
from eventcube.bench.workload import related_queries
from eventcube.concepts.concepts import Concepts

QUERIES, APART = 200, 20
# Related queries together cost less than so many of them one after the other, over so many times the events.
TIMES_EVENTS = (1, 5)


@dataclass(frozen=True, slots=True)
class CubeManyRow:
    """Queries together by one way to share: processor seconds, and as many times what one of them costs by itself.

    `planning` is the time together with hardly any events: reading, planning and weighing.
    """

    queries: str
    events: int
    sharing: str
    seconds: float
    planning: float
    apart: float
    as_many: float
    goal: float | None
    made: int
    candidates: int
    matches: int


def measure_many(console: Console, out: Path, *, events: int, repetitions: int) -> list[CubeManyRow]:
    """Times both workloads; prints the table and saves it as `cube-many`."""
    related = {query.name: query.counting for query in related_queries(QUERIES)}
    rows: list[CubeManyRow] = []
    for times in TIMES_EVENTS:
        # No spinner: it would run on the core that is measured.
        console.print(f"{QUERIES} related queries, {times * events:,} events", style="dim", highlight=False)
        sharings = (*FIXED, "auto") if times == 1 else ("top-down", "auto")
        rows += _rows("related", related, None, times * events, sharings, max(1, repetitions // times))
    console.print(f"{QUERIES} queries on three levels, {events:,} events", style="dim", highlight=False)
    generated, concepts = generated_queries(QUERIES), level_concepts()
    rows += _rows("three levels", generated, concepts, events, (*FIXED, "auto"), max(1, repetitions // 2))
    title = f"{QUERIES} queries counted together and {APART} one after the other, processor time, median"
    console.print(listed(title, COLUMNS, rows))
    console.print(f"Saved: {save(out, 'cube-many', {'machine': machine(), 'repetitions': repetitions}, rows)}")
    return rows


def _rows(
    name: str,
    texts: Mapping[str, str],
    concepts: Concepts | None,
    events: int,
    sharings: Sequence[str],
    repetitions: int,
) -> list[CubeManyRow]:
    table = Trades(events).table()
    few = table.slice(0, 1000)
    work = {sharing: run(texts, concepts, sharing, [table]).counters for sharing in sharings}
    seconds: dict[str, list[float]] = {side: [] for side in (*sharings, "apart")}
    planning: dict[str, list[float]] = {sharing: [] for sharing in sharings}
    for _ in range(repetitions):
        for sharing in sharings:
            seconds[sharing].append(run(texts, concepts, sharing, [table]).seconds)
            planning[sharing].append(run(texts, concepts, sharing, [few]).seconds)
        seconds["apart"].append(_apart(dict([*texts.items()][:APART]), concepts, table))
    apart = median(seconds["apart"])
    return [
        CubeManyRow(
            queries=name,
            events=events,
            sharing=sharing,
            seconds=median(seconds[sharing]),
            planning=median(planning[sharing]),
            apart=apart,
            as_many=median(seconds[sharing]) / apart * APART,
            goal=float(APART) if name == "related" and sharing == "auto" else None,
            made=work[sharing]["made"],
            candidates=work[sharing]["candidates"],
            matches=work[sharing]["matches"],
        )
        for sharing in sharings
    ]


def _apart(texts: Mapping[str, str], concepts: Concepts | None, table: pa.Table) -> float:
    """Processor seconds of the queries, each in a run of its own; garbage is collected between runs, untimed."""
    return sum(run({name: text}, concepts, "independent", [table]).seconds for name, text in texts.items())


COLUMNS: Sequence[Column] = (
    Column("queries", lambda r: r.queries),
    Column("events", lambda r: f"{r.events:,}"),
    Column("sharing", lambda r: r.sharing),
    Column("CPU s", lambda r: f"{r.seconds:.3f}"),
    Column("planning", lambda r: f"{r.planning:.3f}"),
    Column(f"{APART} apart", lambda r: f"{r.apart:.3f}"),
    Column("as many apart", lambda r: judged(f"{r.as_many:.1f}", met=r.as_many <= (r.goal or r.as_many))),
    Column("goal", lambda r: "" if r.goal is None else f"{r.goal:g}"),
    Column("made", lambda r: f"{r.made:,}"),
    Column("candidates", lambda r: f"{r.candidates:,}"),
    Column("matches", lambda r: f"{r.matches:,}"),
)
