"""Measures funnels of visits on Spark, beside the same pipeline that returns nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from eventcube.bench.aggregate_goals import OF_NOTHING, Goal
from eventcube.bench.measure import Column, alternate, judged, listed, machine, save
from eventcube.bench.spark import run_whole
from eventcube.bench.visits import Visits
from eventcube.match import match
from eventcube.spark.batch import shuffled_dataframe
from eventcube.spark.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STEPS = "PATTERN SEQ(Visit v, View w, Cart c, Pay p) WHERE v.user = w.user = c.user = p.user WITHIN 1 day"
FUNNELS = {
    "all": f"{_STEPS} AGG COUNT(*) AS ways",
    "by country and hour": f"{_STEPS} GROUPBY v.country AS country, p.ts EVERY 1 hour AS hour AGG COUNT(*) AS ways",
}


@dataclass(frozen=True, slots=True)
class FunnelRow:
    """A funnel: its groups and matches, seconds (median), and the ratio of its rate to that of returning nothing."""

    query: str
    events: int
    users: int
    groups: int
    matches: int
    seconds: float
    nothing_seconds: float
    of_nothing: float


def bench_funnel(
    console: Console, out: Path, data: Path, events: int, users: int, *, master: str = "local[2]", repetitions: int = 3
) -> list[FunnelRow]:
    """Measures each funnel, prints the table, and saves it as `aggregate-funnel`."""
    folder = Visits(events, users, days=30).write(data / f"visits-{events}-{users}")
    session = start_session(master, {"spark.driver.memory": "4g"})
    rows = []
    try:
        session.conf.set("spark.sql.shuffle.partitions", 2 * session.sparkContext.defaultParallelism)
        frame = session.read.parquet(str(folder.resolve()))
        for name, text in FUNNELS.items():
            console.print(f"{name}: {text}", style="dim", highlight=False)
            funnel = partial(match, frame, text, time="ts", type="action")
            found = funnel().toPandas()
            nothing_of = partial(shuffled_dataframe, frame, text, empty=True, type="action")
            timings = alternate({"match": _runs(funnel), "nothing": _runs(nothing_of)}, repetitions)
            ours, nothing = timings["match"].median, timings["nothing"].median
            matches = int(found["ways"].sum())
            rows.append(FunnelRow(name, events, users, len(found), matches, ours, nothing, nothing / ours))
    finally:
        session.stop()
    title = f"Funnels of four steps, {events:,} events of {users:,} users, {master}, median of {repetitions}"
    console.print(listed(title, COLUMNS, rows))
    goals = [
        Goal(f"funnel {r.query}, rate over that of nothing", r.of_nothing, OF_NOTHING, at_least=True) for r in rows
    ]
    for goal in goals:
        console.print(judged(goal.text, met=goal.met), highlight=False)
    header = {"machine": machine("pyspark"), "master": master, "repetitions": repetitions}
    console.print(f"Saved: {save(out, 'aggregate-funnel', header, rows)}")
    return rows


def _runs(make: Callable[[], DataFrame]) -> Callable[[], None]:
    """A run of all of a frame, planning included."""
    return lambda: run_whole(make())


COLUMNS = (
    Column("funnel", lambda r: r.query),
    Column("groups", lambda r: f"{r.groups:,}"),
    Column("matches", lambda r: f"{r.matches:,}"),
    Column("s", lambda r: f"{r.seconds:.2f}"),
    Column("nothing, s", lambda r: f"{r.nothing_seconds:.2f}"),
    Column("rate / nothing", lambda r: judged(f"{r.of_nothing:.2f}", met=r.of_nothing >= OF_NOTHING)),
)
