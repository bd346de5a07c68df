"""Runs workloads of the event cube: the time and the work of each way to share, and the latency of results."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import pyarrow as pa

from eventcube.concepts.concepts import Concepts
from eventcube.engine.execute import Execution
from eventcube.engine.kernels import Ints
from eventcube.engine.reuse.derive import plan_shared
from eventcube.engine.table import Table
from eventcube.language.parse import parse
from eventcube.optimizer.chase import Chase
from eventcube.optimizer.derivations import DerivationChoice
from eventcube.optimizer.reuse_costs import ReuseCosts
from eventcube.optimizer.workings import Workings
from eventcube.options import ENUMERATE, options
from eventcube.plan.planned import Planned, plan_query
from eventcube.plan.steps import Bind, FilterByState, KeepLatest, Step
from eventcube.plan.workload import Derivation, WorkloadPlan
from eventcube.runtime.workload import Workload

FIXED = ("independent", "top-down", "bottom-up")
SHARINGS = (*FIXED, "chase", "auto")


@dataclass(frozen=True, slots=True)
class Run:
    """One run: processor seconds, counters, the rows that its steps handled, and ms from arrival to result."""

    seconds: float
    counters: Mapping[str, int]
    rows: int = 0
    latency_ms: float = 0.0


def plans_of(texts: Mapping[str, str], columns: pa.Schema, concepts: Concepts | None) -> dict[str, Planned]:
    """Each query planned by itself."""
    chosen = options(time="ts", type="symbol", concepts=concepts, aggregates=ENUMERATE)
    schema = chosen.schema(columns)
    return {name: plan_query(parse(text), schema, chosen) for name, text in texts.items()}


def run(
    texts: Mapping[str, str],
    concepts: Concepts | None,
    sharing: str,
    pushes: Sequence[pa.Table],
    *,
    count_rows: bool = False,
) -> Run:
    """Run queries from their text on; the results are read and dropped."""
    gc.collect()
    begun = time.process_time()
    plans = plans_of(texts, pushes[0].schema, concepts)
    plan = plan_shared(plans, concepts, sharing)
    return feed(workload_of(plan), pushes, begun=begun, count_rows=count_rows)


def workload_of(plan: WorkloadPlan) -> Workload:
    """A planned workload, ready to run."""
    return Workload(plan, next(iter(plan.queries.values())).plan.schema)


def feed(workload: Workload, pushes: Sequence[pa.Table], *, begun: float, count_rows: bool = False) -> Run:
    """Push events; a match waits for as long as the push takes in which its last event comes."""
    waited, found = 0.0, 0
    with counted_rows() if count_rows else nullcontext([0]) as rows:
        for events in (*pushes, None):
            pushed = time.process_time()
            for _ in workload.finish() if events is None else workload.push(events):
                pass
            if len(pushes) > 1:
                took, matches = time.process_time() - pushed, workload.counters["matches"]
                waited, found = waited + took * (matches - found), matches
    seconds = time.process_time() - begun
    return Run(seconds, workload.counters, rows[0], 1e3 * waited / max(1, found))


@contextmanager
def counted_rows() -> Iterator[list[int]]:
    """Count the partial matches that steps are given or make: work, the same on every machine.

    Matches that are only counted are no rows: their number is that of events between two places of a stack.
    """
    rows = [0]
    step, sought = Execution.step, Execution.range_of

    def counted_step(self: Execution, a_step: Step, table: Table) -> Iterator[Table]:
        joins = isinstance(a_step, Bind)
        idle = isinstance(a_step, FilterByState) and self.store.all_have(a_step.states)
        rows[0] += 0 if joins or idle or isinstance(a_step, KeepLatest) else len(table)
        for made in step(self, a_step, table):
            rows[0] += len(made) if joins else 0
            yield made

    def counted_range(self: Execution, bind: Bind, table: Table) -> tuple[Ints, Ints]:
        rows[0] += len(table)
        return sought(self, bind, table)

    Execution.step, Execution.range_of = counted_step, counted_range  # type: ignore[assignment, method-assign]
    try:
        yield rows
    finally:
        Execution.step, Execution.range_of = step, sought  # type: ignore[method-assign]


@contextmanager
def weighing(weigh: Callable[[DerivationChoice, Workings], None]) -> Iterator[None]:
    """Have this called whenever a plan is to be chosen."""

    def called(self: DerivationChoice, names: Sequence[str], workings: Workings) -> None:
        weigh(self, workings)

    original = DerivationChoice._weigh
    DerivationChoice._weigh = called  # type: ignore[method-assign]
    try:
        yield
    finally:
        DerivationChoice._weigh = original  # type: ignore[method-assign]


def weighed(plan: WorkloadPlan, events: pa.Table) -> Chase:
    """What all queries cost by themselves and from each other, as the optimizer estimates it for these events."""
    found: list[Chase] = []
    with weighing(lambda choice, workings: found.append(ReuseCosts(choice.queries, workings).chase(every=True))):
        for _ in workload_of(plan).push(events):
            pass
    return found[0]


def run_plan(
    plan: WorkloadPlan, events: pa.Table, chosen: Mapping[str, Derivation], *, count_rows: bool = False
) -> Run:
    """Run a planned workload, with queries computed from others as chosen."""
    workload = workload_of(plan)
    for group in workload.engine.groups:
        group.reuse.fix(chosen)
    gc.collect()
    return feed(workload, [events], begun=time.process_time(), count_rows=count_rows)
