"""Compares the engine with DuckDB: the same queries and trades, one core, the whole result as Arrow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Table

from eventcube.bench.checksum import checksum, same_matches
from eventcube.bench.fresh_process import FreshProcess, in_fresh_process
from eventcube.bench.measure import alternate, fastest, machine, one_core, save, screen
from eventcube.bench.self_join import duckdb_forms
from eventcube.bench.trades import Trades
from eventcube.bench.workload import ENGINE_QUERIES, SELECTIVE_QUERIES, Sequence
from eventcube.match import match

GOALS = {"Q1": 3.0, "Q2": 3.0, "Q3": 3.0, "Q4": 3.0, "Q5": 5.0}


@dataclass(frozen=True, slots=True)
class EngineRow:
    """One query: rates in events a second (median of the repetitions), start-up in seconds, memory in MiB."""

    query: str
    events: int
    matches: int
    eventcube_rate: float
    eventcube_best: float
    duckdb_rate: float
    duckdb_best: float
    duckdb_form: str
    ratio: float
    processor_ratio: float
    """The ratio of processor time, which is more reliable on a busy machine."""
    peak_mib: float
    first_result: float
    first_answer: float


def eventcube_answer(table: pa.Table, query: Sequence) -> pa.Table:
    """The whole result by eventcube in this process."""
    return match(table, query.text, time="ts", type="symbol")


def duckdb_answers(table: pa.Table, memory: str = "") -> Callable[[str], pa.Table]:
    """A function that runs SQL over the trades in a DuckDB table, on one thread, in so much memory if that is given."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET enable_progress_bar = false")
    if memory:
        connection.execute(f"SET memory_limit = '{memory}'")
        connection.execute("SET temp_directory = ''")
    connection.register("arrow_trades", table)
    connection.execute("CREATE TABLE trades AS FROM arrow_trades")
    return lambda sql: connection.sql(sql).to_arrow_table()


def bench_engine(
    out: Path, *, events: int = 1_000_000, repetitions: int = 7, selective: bool = False
) -> list[EngineRow]:
    """Measures each query, prints the table, and saves it as `engine.json` and `engine.csv` in the folder.

    `selective`: the queries with inequalities that few events meet, in `engine-selective.json` and `.csv`.
    """
    queries = SELECTIVE_QUERIES if selective else ENGINE_QUERIES
    name = "engine-selective" if selective else "engine"
    console = screen()
    shape = Trades(events)
    table = shape.table()
    file = out / "engine-events.parquet"
    out.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, file)
    rows = []
    with one_core():
        sql_answer = duckdb_answers(table)
        for query in queries:
            # No spinner: it would run on the core that is measured.
            console.print(f"{query.name}: {query.text}", style="dim", highlight=False)
            rows.append(_measure(query, table, file, sql_answer, repetitions))
    cold = in_fresh_process(file, rows[0].query, compiled=False)
    console.print(_table(rows, repetitions))
    console.print("Start: seconds from a new process to its first whole result, reading the events included.")
    console.print(f"First start ever, nothing compiled yet ({rows[0].query}): {cold.first_result:.1f} s to the result.")
    header = {"machine": machine("duckdb"), "repetitions": repetitions, "first_start_ever": cold.first_result}
    console.print(f"Saved: {save(out, name, header, rows)}")
    file.unlink()
    return rows


def _measure(
    query: Sequence, table: pa.Table, file: Path, sql_answer: Callable[[str], pa.Table], repetitions: int
) -> EngineRow:
    forms = duckdb_forms(query)
    # By processor time: on a busy machine, wall time might not pick DuckDB's best form.
    form = fastest(forms, sql_answer, clock=time.process_time)
    matches = _match_count(query, eventcube_answer(table, query), sql_answer(forms[form]))
    timings = alternate(
        {"duckdb": lambda: sql_answer(forms[form]), "eventcube": lambda: eventcube_answer(table, query)}, repetitions
    )
    fresh: FreshProcess = in_fresh_process(file, query.name)
    events = table.num_rows
    return EngineRow(
        query=query.name,
        events=events,
        matches=matches,
        eventcube_rate=events / timings["eventcube"].median,
        eventcube_best=events / timings["eventcube"].best,
        duckdb_rate=events / timings["duckdb"].median,
        duckdb_best=events / timings["duckdb"].best,
        duckdb_form=form,
        ratio=timings["duckdb"].median / timings["eventcube"].median,
        processor_ratio=timings["duckdb"].busy / timings["eventcube"].busy,
        peak_mib=fresh.peak_mib,
        first_result=fresh.first_result,
        first_answer=fresh.first_answer,
    )


def _match_count(query: Sequence, ours: pa.Table, theirs: pa.Table) -> int:
    """The number of matches, if both sides have the same ones; start and end are the first and the last event."""
    shared = [*query.variables]
    theirs = theirs.select([shared[0], shared[-1], *shared])
    results = {"eventcube": ours.select(["start", "end", *shared]), "DuckDB": theirs}
    return same_matches(query.name, {side: checksum(table.to_batches()) for side, table in results.items()})


def _table(rows: Iterable[EngineRow], repetitions: int) -> Table:
    table = Table(title=f"M events/s on one core, median of {repetitions}", title_justify="left")
    for column in ("query", "matches", "eventcube", "DuckDB", "ratio", "CPU ratio", "goal", "peak MiB", "start s"):
        table.add_column(column, justify="right")
    for row in rows:
        goal = GOALS.get(row.query, 0.0)
        table.add_row(
            row.query,
            f"{row.matches:,}",
            f"{row.eventcube_rate / 1e6:.2f}",
            f"{row.duckdb_rate / 1e6:.2f}",
            f"[{'green' if row.ratio >= goal else 'red'}]{row.ratio:.2f}[/]",
            f"{row.processor_ratio:.2f}",
            f"{goal:g}",
            f"{row.peak_mib:.0f}",
            f"{row.first_result:.2f}",
        )
    return table
