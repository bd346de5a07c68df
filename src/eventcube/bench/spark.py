"""Compares `ec.match` on Spark with its pipeline without the engine, and with the best self-join in Spark SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from eventcube.bench.checksum import Checksum, same_matches
from eventcube.bench.measure import alternate, fastest, machine, save, screen
from eventcube.bench.self_join import spark_forms
from eventcube.bench.trades import Trades
from eventcube.bench.workload import ENGINE_QUERIES, KEYED_QUERIES, Q3, Sequence
from eventcube.match import match
from eventcube.spark.batch import shuffled_dataframe
from eventcube.spark.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SIDES = ("match", "identity", "sql")


@dataclass(frozen=True, slots=True)
class SparkRow:
    """One query over one set of events: rates in events a second, 0 for a side that was left out."""

    query: str
    keyed: bool
    events: int
    keys: int
    matches: int
    match_rate: float
    identity_rate: float
    sql_rate: float
    sql_form: str
    of_identity: float
    of_sql: float


@dataclass(frozen=True, slots=True)
class Case:
    """A query, and the shape of its trades."""

    query: Sequence
    trades: Trades


def eventcube_frame(events: DataFrame, query: Sequence) -> DataFrame:
    """The matches by eventcube."""
    matches: DataFrame = match(events, query.text, time="ts", type="symbol")
    return matches


def identity_frame(events: DataFrame, query: Sequence) -> DataFrame:
    """The pipeline of `ec.match` without the engine: the same columns, filter and shuffle, and `mapInArrow`."""
    return shuffled_dataframe(events, query.text, type="symbol")


def run_whole(frame: DataFrame) -> None:
    """Computes every column of every row, without writing them."""
    frame.write.format("noop").mode("overwrite").save()


def frame_checksum(frame: DataFrame, columns: Iterable[str]) -> Checksum:
    """The checksum of these columns, which hold times, over all rows, computed by Spark."""
    values = ", ".join(f"unix_micros(CAST(`{column}` AS TIMESTAMP))" for column in columns)
    total = f"coalesce(sum(CAST(xxhash64({values}) AS DECIMAL(38, 0))), 0)"
    row = frame.selectExpr("count(1) AS number", f"{total} AS total").collect()[0]
    return Checksum(int(row["number"]), int(row["total"]) % 2**64)


def comparison_cases(events: int) -> list[Case]:
    """Q1 to Q5 over the whole time line, and within one account."""
    return [Case(query, Trades(events)) for query in (*ENGINE_QUERIES, *KEYED_QUERIES) if query is not Q3] + [
        Case(Q3, Trades(events))
    ]


def scaling_cases(events: int) -> list[Case]:
    """A twentieth of the events and all of them; 100 to a million keys, with the same matches per event."""
    sizes = [Case(query, Trades(size)) for query in (ENGINE_QUERIES[0], Q3) for size in (events // 20, events)]
    by_keys = [
        Case(replace(Q3, name=f"Q3/{keys}", window_ms=60 * keys), Trades(events, accounts=keys))
        for keys in (100, 1000, 1_000_000)
    ]
    return sizes + by_keys


_KEYED = "a.account = b.account = c.account"
NESTED = {
    "skeleton": f"PATTERN SEQ(INTC a, DELL b, QQQ c, {_KEYED}) WITHIN 60 s",
    "negated": f"PATTERN SEQ(INTC a, !SEQ(MSFT m, FCF f, m.account = f.account = a.account), DELL b, QQQ c, {_KEYED}) "
    "WITHIN 60 s",
    "positive": "PATTERN SEQ(INTC a, SEQ(MSFT m, FCF f, m.account = f.account = a.account, "
    f"m.volume + f.volume > 1860), DELL b, QQQ c, {_KEYED}) WITHIN 60 s",
}
"""A nested query, negated and positive, and its flat skeleton without the nested part."""


@dataclass(frozen=True, slots=True)
class NestedRow:
    """One of the nested queries: its time, and the ratio to the skeleton's time."""

    query: str
    events: int
    matches: int
    seconds: float
    of_skeleton: float


def bench_nested_spark(
    out: Path, data: Path, events: int, *, master: str = "local[*]", repetitions: int = 3
) -> list[NestedRow]:
    """Times nested queries over keyed events beside their flat skeleton; the same table and files as `bench_spark`."""
    console = screen()
    session = start_session(master, {"spark.driver.memory": "4g"})
    try:
        frame = _events(session, Trades(events), data)

        def matches(text: str) -> DataFrame:
            result: DataFrame = match(frame, f"{text} RETURN a.ts AS a, b.ts AS b, c.ts AS c", time="ts", type="symbol")
            return result

        counts = {name: matches(text).count() for name, text in NESTED.items()}
        runs: dict[str, Callable[[], object]] = {
            name: partial(lambda text: run_whole(matches(text)), text) for name, text in NESTED.items()
        }
        times = {name: timing.median for name, timing in alternate(runs, repetitions).items()}
    finally:
        session.stop()
    rows = [NestedRow(n, events, counts[n], times[n], times[n] / times["skeleton"]) for n in NESTED]
    table = Table(title=f"Nested queries on Spark, {events:,} events, median of {repetitions}", title_justify="left")
    for column in ("query", "matches", "s", "/skeleton"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(row.query, f"{row.matches:,}", f"{row.seconds:.2f}", f"{row.of_skeleton:.2f}")
    console.print(table)
    header = {"machine": machine("pyspark"), "master": master, "repetitions": repetitions}
    console.print(f"Saved: {save(out, 'spark-nested', header, rows)}")
    return rows


def bench_spark(
    out: Path,
    data: Path,
    cases: Iterable[Case],
    *,
    name: str = "spark",
    master: str = "local[*]",
    repetitions: int = 3,
    sides: Iterable[str] = SIDES,
    settings: Mapping[str, str] | None = None,
) -> list[SparkRow]:
    """Measures each case, prints the table, and saves it as `<name>.json` and `<name>.csv` in the folder."""
    console = screen()
    session = start_session(master, {"spark.driver.memory": "4g", **(settings or {})})
    session.conf.set("spark.sql.shuffle.partitions", 2 * session.sparkContext.defaultParallelism)
    chosen = tuple(sides)
    rows = []
    try:
        for case in cases:
            console.print(f"{case.query.name}: {case.query.text}", style="dim", highlight=False)
            rows.append(_measure(session, case, data, repetitions, chosen))
    finally:
        session.stop()
    console.print(_table(rows, repetitions))
    header = {"machine": machine("pyspark"), "master": master, "repetitions": repetitions}
    console.print(f"Saved: {save(out, name, header, rows)}")
    return rows


def _measure(session: SparkSession, case: Case, data: Path, repetitions: int, sides: tuple[str, ...]) -> SparkRow:
    query = case.query
    frame = _events(session, case.trades, data)
    contestants: dict[str, Callable[[], object]] = {}
    form, checksums, variables = "", {}, [*query.variables]
    if "match" in sides:
        contestants["match"] = lambda: run_whole(eventcube_frame(frame, query))
        checksums["eventcube"] = frame_checksum(eventcube_frame(frame, query), ["start", "end", *variables])
    if "identity" in sides:
        contestants["identity"] = lambda: run_whole(identity_frame(frame, query))
    if "sql" in sides:
        forms = spark_forms(query)
        frame.createOrReplaceTempView("trades")
        # At the measured size: another form may be faster for fewer events.
        form = fastest(forms, lambda sql: run_whole(session.sql(sql)), tries=1)
        contestants["sql"] = lambda: run_whole(session.sql(forms[form]))
        times = [variables[0], variables[-1], *variables]
        checksums["Spark SQL"] = frame_checksum(session.sql(forms[form]), times)
    matches = same_matches(query.name, checksums) if checksums else 0
    rates = {side: case.trades.events / timing.median for side, timing in alternate(contestants, repetitions).items()}
    ours, identity, by_sql = (rates.get(side, 0.0) for side in SIDES)
    return SparkRow(
        query=query.name,
        keyed=query.key is not None,
        events=case.trades.events,
        keys=case.trades.accounts,
        matches=matches,
        match_rate=ours,
        identity_rate=identity,
        sql_rate=by_sql,
        sql_form=form,
        of_identity=ours / identity if identity else 0.0,
        of_sql=ours / by_sql if by_sql else 0.0,
    )


def _events(session: SparkSession, shape: Trades, data: Path) -> DataFrame:
    """The trades as Parquet files, written once."""
    folder = shape.write(data / f"trades-{shape.events}-{shape.accounts}-{shape.seed}")
    return session.read.parquet(str(folder.resolve()))


def _table(rows: Iterable[SparkRow], repetitions: int) -> Table:
    table = Table(title=f"M events/s on Spark, median of {repetitions}", title_justify="left")
    for column in ("query", "events", "keys", "matches", "ec.match", "identity", "SQL", "/identity", "/SQL"):
        table.add_column(column, justify="right")
    for row in rows:
        rates = [f"{rate / 1e6:.2f}" for rate in (row.match_rate, row.identity_rate, row.sql_rate)]
        keys = f"{row.keys:,}" if row.keyed else ""
        ratios = [f"{row.of_identity:.2f}", f"{row.of_sql:.1f}"]
        table.add_row(row.query, f"{row.events:,}", keys, f"{row.matches:,}", *rates, *ratios)
    return table
