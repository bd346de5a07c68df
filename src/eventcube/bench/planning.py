"""Times planning: how long a query takes to plan, and how soon a Spark task is ready with a plan it was sent."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from rich.table import Table

from eventcube.bench.measure import alternate, machine, one_core, save, screen
from eventcube.language.parse import parse
from eventcube.options import options
from eventcube.plan.planned import plan_query, plan_together
from eventcube.plan.workload import WorkloadPlan
from eventcube.runtime.workload import Workload

COLUMNS = pa.schema(
    {"ts": pa.timestamp("us"), "kind": pa.string(), "id": pa.string(), "room": pa.int64(), "x": pa.int64()}
)
OPTIONS = options(type="kind")


def _nested(depth: int) -> str:
    pattern = "A z"
    for level in range(depth):
        pattern = f"{'SEQ' if level % 2 else 'AND'}(A a{level}, {pattern}, B b{level})"
    return pattern


# The query of the README, and shapes whose plans once grew out of bounds.
QUERIES = {
    "README": "SEQ(Recycle r, Wash w, !AND(Sharpen s, Disinfect d, s.room = d.room, s.id = d.id = r.id), Operate o, "
    "r.id = w.id = o.id) WITHIN 10 minutes RETURN r.id AS tool, o.ts - w.ts AS after_washing",
    "AND of 100": f"AND({', '.join(f'A a{i}' for i in range(100))}) WITHIN 1 s",
    "SEQ of 500, one key": f"SEQ({', '.join(f'A a{i}' for i in range(500))}) "
    f"WHERE {' = '.join(f'a{i}.id' for i in range(500))} WITHIN 1 s",
    "30 levels of AND and SEQ": f"{_nested(30)} WITHIN 1 s",
}


@dataclass(frozen=True, slots=True)
class PlanningRow:
    """The milliseconds to plan a query from its text, and to be ready with the pickled plan; its size in bytes."""

    query: str
    plan_ms: float
    ready_ms: float
    plan_bytes: int


def bench_planning(out: Path, *, repetitions: int = 15) -> list[PlanningRow]:
    """Measures each query, prints the table, and saves it as `planning.json` and `planning.csv` in the folder."""
    console = screen()
    with one_core():
        rows = [_measure(name, f"PATTERN {text}", repetitions) for name, text in QUERIES.items()]
    table = Table(title=f"Planning on one core, median of {repetitions}", title_justify="left")
    for column in ("query", "text to plan, ms", "task ready, ms", "pickled plan, bytes"):
        table.add_column(column, justify="left" if column == "query" else "right")
    for row in rows:
        table.add_row(row.query, f"{row.plan_ms:.2f}", f"{row.ready_ms:.2f}", f"{row.plan_bytes:,}")
    console.print(table)
    console.print("Task ready: from the pickled plan to an engine that takes its first row.")
    console.print(f"Saved: {save(out, 'planning', {'machine': machine(), 'repetitions': repetitions}, rows)}")
    return rows


def _measure(name: str, text: str, repetitions: int) -> PlanningRow:
    shipped = pickle.dumps(_plan(text))
    sides = {"plan": lambda: _plan(text), "ready": lambda: _engine(shipped)}
    timings = alternate(sides, repetitions)
    return PlanningRow(name, timings["plan"].median * 1e3, timings["ready"].median * 1e3, len(shipped))


def _plan(text: str) -> WorkloadPlan:
    return plan_together({"q1": plan_query(parse(text), OPTIONS.schema(COLUMNS), OPTIONS)}, None)


def _engine(shipped: bytes) -> Workload:
    plan: WorkloadPlan = pickle.loads(shipped)  # noqa: S301 - made above
    return Workload(plan, plan.queries["q1"].plan.schema)
