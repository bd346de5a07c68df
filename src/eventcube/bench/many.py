"""Compares many related queries in one run with the same queries one after the other, here and in DuckDB.

One core, the same trades and the whole results as Arrow; each side parses and plans its queries, too. What `pushes.py`
measures of the same queries follows: planning, pushes of one event, and bytes of states.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from rich.console import Console

from eventcube.bench.checksum import Checksum, checksum, same_matches
from eventcube.bench.engine import duckdb_answers
from eventcube.bench.measure import Column, alternate, fastest, judged, listed, machine, one_core, save, screen
from eventcube.bench.plots import Picture, draw
from eventcube.bench.pushes import measure_planning, measure_pushes, measure_states
from eventcube.bench.self_join import duckdb_forms
from eventcube.bench.trades import Trades
from eventcube.bench.workload import Sequence as Query
from eventcube.bench.workload import related_queries
from eventcube.match import match, match_all
from eventcube.options import ENUMERATE

NUMBERS = (1, 10, 50, 200)
KINDS = ("count", "matches")
# The time of so many queries together over that of one after the other, at most.
GOALS = {("count", 50): 0.4, ("matches", 50): 0.5}
# DuckDB runs so many of the queries: more take long, and tell nothing new.
MOST_SQL = 10

Answers = dict[str, pa.Table]


@dataclass(frozen=True, slots=True)
class ManyRow:
    """A number of queries: medians in seconds of wall time and (`busy`) of processor time.

    `ratio` is the time together over that of one after the other; `duckdb_each` is DuckDB's time for each of the
    queries that it was asked, and `times_duckdb` that over the time together for each query, by processor time.
    """

    kind: str
    queries: int
    events: int
    matches: int
    together: float
    together_busy: float
    apart: float
    apart_busy: float
    ratio: float
    processor_ratio: float
    goal: float | None
    duckdb_queries: int
    duckdb_each: float
    duckdb_each_busy: float
    duckdb_forms: str
    times_duckdb: float


def bench_many(
    out: Path,
    *,
    events: int = 1_000_000,
    repetitions: int = 5,
    numbers: Sequence[int] = NUMBERS,
    plots: bool = True,
) -> list[ManyRow]:
    """Measures everything, prints tables, and saves them and a plot as `many*` in the folder."""
    console = screen(150)
    table = Trades(events).table()
    queries = related_queries(max(numbers))
    header = {"machine": machine("duckdb"), "repetitions": repetitions}
    with one_core():
        rows = _measure(console, table, queries, numbers, repetitions)
        title = f"{events:,} events on one core, seconds, median of {repetitions}; CPU: processor time"
        console.print(listed(title, COLUMNS, rows))
        console.print(f"DuckDB: milliseconds for each query, measured on the first {MOST_SQL} queries at most.")
        console.print(f"Saved: {save(out, 'many', header, rows)}")
        measure_planning(console, out, queries, numbers, repetitions)
        measure_pushes(console, out, queries, numbers)
        measure_states(console, out, numbers)
    if plots:
        title = "related queries together and one after the other (processor time)"
        console.print(f"Drawn: {draw(out / 'many', title, 'queries', _points(rows), Picture())}", soft_wrap=True)
    return rows


def together(table: pa.Table, queries: Sequence[Query], kind: str) -> Answers:
    """The results of the queries in one run."""
    return match_all(table, {q.name: _text(q, kind) for q in queries}, time="ts", type="symbol", aggregates=ENUMERATE)


def one_after_the_other(table: pa.Table, queries: Sequence[Query], kind: str) -> Answers:
    """The results of the queries, each in a run of its own."""
    return {q.name: match(table, _text(q, kind), time="ts", type="symbol", aggregates=ENUMERATE) for q in queries}


def by_duckdb(
    sql_answer: Callable[[str], pa.Table], forms: Mapping[int, str], queries: Sequence[Query], kind: str
) -> Answers:
    """The results of the first queries in DuckDB, in the form that is best for their length."""
    return {q.name: sql_answer(_sql(q, kind)[forms[len(q.symbols)]]) for q in queries[:MOST_SQL]}


def count_matches(queries: Sequence[Query], kind: str, sides: Mapping[str, Answers]) -> int:
    """The number of matches of all queries, if the sides have the same ones, query by query."""
    total = 0
    for query in queries:
        found = {side: answers[query.name] for side, answers in sides.items() if query.name in answers}
        if kind == "matches":
            found = {side: answer.select([*query.variables]) for side, answer in found.items()}
        rows = same_matches(query.name, {side: checksum(answer.to_batches()) for side, answer in found.items()})
        total += rows if kind == "matches" else next(iter(found.values())).column(0)[0].as_py()
    return total


def _measure(
    console: Console, table: pa.Table, queries: Sequence[Query], numbers: Sequence[int], repetitions: int
) -> list[ManyRow]:
    sql_answer = duckdb_answers(table)
    rows: list[ManyRow] = []
    for kind in KINDS:
        forms = _best_forms(queries, kind, sql_answer)
        for number in numbers:
            # No spinner: it would run on the core that is measured.
            console.print(f"{kind}: {number} of {queries[0].pattern}, …", style="dim", highlight=False)
            rows.append(_row(table, queries[:number], kind, sql_answer, forms, repetitions))
    for number in numbers:
        found = {row.kind: Checksum(row.matches) for row in rows if row.queries == number}
        same_matches(f"{number} queries", found)
    return rows


def _row(
    table: pa.Table,
    queries: Sequence[Query],
    kind: str,
    sql_answer: Callable[[str], pa.Table],
    forms: Mapping[int, str],
    repetitions: int,
) -> ManyRow:
    sides: dict[str, Callable[[], Answers]] = {
        "together": partial(together, table, queries, kind),
        "one after the other": partial(one_after_the_other, table, queries, kind),
        "DuckDB": partial(by_duckdb, sql_answer, forms, queries, kind),
    }
    matches = count_matches(queries, kind, {side: run() for side, run in sides.items()})
    ours, apart, sql = alternate(sides, repetitions).values()
    asked = min(len(queries), MOST_SQL)
    return ManyRow(
        kind=kind,
        queries=len(queries),
        events=table.num_rows,
        matches=matches,
        together=ours.median,
        together_busy=ours.busy,
        apart=apart.median,
        apart_busy=apart.busy,
        ratio=ours.median / apart.median,
        processor_ratio=ours.busy / apart.busy,
        goal=GOALS.get((kind, len(queries))),
        duckdb_queries=asked,
        duckdb_each=sql.median / asked,
        duckdb_each_busy=sql.busy / asked,
        duckdb_forms="; ".join(f"{length} components: {form}" for length, form in sorted(forms.items())),
        times_duckdb=sql.busy / asked * len(queries) / ours.busy,
    )


def _best_forms(queries: Sequence[Query], kind: str, sql_answer: Callable[[str], pa.Table]) -> dict[int, str]:
    """DuckDB's best form for each length, by one query of it."""
    firsts = {len(q.symbols): q for q in reversed(queries)}
    return {n: fastest(_sql(q, kind), sql_answer, clock=time.process_time) for n, q in firsts.items()}


def _text(query: Query, kind: str) -> str:
    return query.text if kind == "matches" else query.counting


def _sql(query: Query, kind: str) -> dict[str, str]:
    """The query in all forms of SQL, by name."""
    counted = "SELECT count(*) AS n FROM ({})" if kind == "count" else "{}"
    return {name: counted.format(form) for name, form in duckdb_forms(query).items()}


@dataclass(frozen=True, slots=True)
class _Point:
    """A time in the plot."""

    x: str
    mode: str
    strategy: str
    seconds: float


def _points(rows: Sequence[ManyRow]) -> list[_Point]:
    """The times to draw: DuckDB's only where it ran all queries."""
    points = []
    for row in rows:
        times = {"together": row.together_busy, "one after the other": row.apart_busy}
        if row.duckdb_queries == row.queries:
            times["DuckDB"] = row.duckdb_each_busy * row.queries
        mode = {"count": "counted", "matches": "all matches returned"}[row.kind]
        points += [_Point(f"{row.queries}", mode, side, seconds) for side, seconds in times.items()]
    return points


COLUMNS: Sequence[Column] = (
    Column("result", lambda r: r.kind),
    Column("queries", lambda r: f"{r.queries}"),
    Column("matches", lambda r: f"{r.matches:,}"),
    Column("together", lambda r: f"{r.together:.3f}"),
    Column("CPU", lambda r: f"{r.together_busy:.3f}"),
    Column("one by one", lambda r: f"{r.apart:.3f}"),
    Column("CPU", lambda r: f"{r.apart_busy:.3f}"),
    Column("ratio", lambda r: f"{r.ratio:.2f}"),
    Column("CPU ratio", lambda r: judged(f"{r.processor_ratio:.2f}", met=r.processor_ratio <= (r.goal or 9))),
    Column("goal", lambda r: "" if r.goal is None else f"{r.goal:g}"),
    Column("DuckDB ran", lambda r: f"{r.duckdb_queries}"),
    Column("ms each", lambda r: f"{r.duckdb_each * 1e3:.1f}"),
    Column("CPU", lambda r: f"{r.duckdb_each_busy * 1e3:.1f}"),
    Column("times DuckDB", lambda r: f"{r.times_duckdb:.1f}"),
)
