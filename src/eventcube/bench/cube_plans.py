"""How long it takes to plan how queries are computed from each other, and how well the costs of plans are estimated."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from rich.console import Console

from eventcube.bench.cube_runs import plans_of, run_plan, weighed, weighing, workload_of
from eventcube.bench.cube_workloads import SECTORS, WORKLOADS, CubeWorkload, generated_queries, level_concepts
from eventcube.bench.measure import Column, judged, listed, machine, save
from eventcube.bench.trades import SCHEMA, Trades
from eventcube.bench.workload import related_queries
from eventcube.concepts.concepts import Concepts
from eventcube.engine.reuse.derive import plan_shared, related, with_derivations
from eventcube.optimizer.chase import Chase
from eventcube.optimizer.derivations import DerivationChoice
from eventcube.optimizer.reuse_costs import ReuseCosts
from eventcube.optimizer.reuse_plan import Way
from eventcube.optimizer.workings import Workings
from eventcube.plan.planned import Planned, plan_together
from eventcube.plan.routes import leads_back
from eventcube.plan.workload import WorkloadPlan

# Milliseconds for graph, derivations, costs and tree of so many queries, at most.
PLANNING_GOALS = {10: 16.0, 200: 1_000.0, 2_000: 30_000.0}
# Events whose rates the costs are estimated from.
WEIGHED_EVENTS = 100_000
# Random plans of a workload, and how well costs must be ranked.
PLANS, TRIES, RANK_GOAL = 12, 400, 0.8
# Costs this close to each other are taken to be equal.
CLOSE = 0.03
# Events, and windows in ms, with which plans take some ten to hundred milliseconds.
PLANNED_EVENTS, FEWER_EVENTS, MANY_MATCHES = 500_000, 100_000, "378"
PLAN_WINDOWS, PLAN_WINDOW = {"1": 400, "2": 400, "3": 400}, 150


@dataclass(frozen=True, slots=True)
class CubePlanningRow:
    """Milliseconds of processor time to plan queries that are bound: relate them, find derivations, weigh, choose."""

    queries: str
    number: int
    pairs: int
    derivations: int
    graph_ms: float
    derivations_ms: float
    costs_ms: float
    tree_ms: float
    total_ms: float
    goal_ms: float | None


@dataclass(frozen=True, slots=True)
class EstimateRow:
    """Random plans of a workload: the rank correlations of estimated costs with time, and with rows handled."""

    workload: str
    rates: str
    plans: int
    least_ms: float
    most_ms: float
    by_time: float
    by_rows: float


def measure_planning(console: Console, out: Path, *, repetitions: int, scale: float = 1.0) -> list[CubePlanningRow]:
    """Times the planning of workloads; prints the table and saves it as `cube-planning`."""
    cases: list[tuple[str, Mapping[str, str], Concepts | None]] = [
        ("workload 7", WORKLOADS["7"].texts(200, counted=True), Concepts(SECTORS)),
        ("related", {q.name: q.counting for q in related_queries(200)}, None),
        ("three levels", generated_queries(200), level_concepts()),
        ("three levels", generated_queries(2_000), level_concepts()),
    ]
    rows = []
    for name, texts, concepts in cases if scale >= 1 else cases[:1]:
        console.print(f"planning of {len(texts)} queries: {name}", style="dim", highlight=False)
        rows.append(_planning_row(name, texts, concepts, repetitions if len(texts) <= 200 else 1))
    title = f"Planning of queries that are bound, ms of processor time, median of {repetitions} (2,000 queries: once)"
    console.print(listed(title, PLANNING_COLUMNS, rows))
    console.print(f"Saved: {save(out, 'cube-planning', {'machine': machine(), 'repetitions': repetitions}, rows)}")
    return rows


def _planning_row(name: str, texts: Mapping[str, str], concepts: Concepts | None, repetitions: int) -> CubePlanningRow:
    plans = plans_of(texts, SCHEMA, concepts)
    table = Trades(WEIGHED_EVENTS).table()
    timed = [_plan(plans, concepts, table) for _ in range(repetitions)]
    graph, derivations, weighing, tree = (median(stage) for stage in zip(*(t[0] for t in timed), strict=True))
    _, pairs, found = timed[0]
    return CubePlanningRow(
        queries=name,
        number=len(texts),
        pairs=pairs,
        derivations=found,
        graph_ms=graph,
        derivations_ms=derivations,
        costs_ms=weighing,
        tree_ms=tree,
        total_ms=median(sum(stages) for stages, _, _ in timed),
        goal_ms=PLANNING_GOALS.get(len(texts)),
    )


def _plan(plans: Mapping[str, Planned], concepts: Concepts | None, table: pa.Table) -> tuple[list[float], int, int]:
    """The milliseconds of each stage, and how many pairs and derivations there are."""
    gc.collect()
    together = replace(plan_together(plans, concepts), sharing="chase")
    times = [time.process_time()]
    downward, upward = related(plans, {})
    times.append(time.process_time())
    workload = with_derivations(together, plans, downward, upward)
    times.append(time.process_time())
    pairs = {(edge.finer, edge.coarser) for edge in (*downward, *upward)}
    found = sum(len(query.derivations) for query in workload.queries.values())
    stages = [after - before for before, after in pairwise(times)]
    return [1e3 * seconds for seconds in (*stages, *_weigh(workload, table))], len(pairs), found


class _Weighed(Exception):  # noqa: N818 - no error: it ends a run once the plan is chosen
    """What it took to estimate the costs, and to choose."""


def _weigh(workload: WorkloadPlan, table: pa.Table) -> tuple[float, float]:
    """The seconds to estimate all costs for these events, and to choose the plan; nothing is run."""

    def weigh(choice: DerivationChoice, workings: Workings) -> None:
        begun = time.process_time()
        chase = ReuseCosts(choice.queries, workings).chase()
        estimated = time.process_time()
        chase.cheapest()
        raise _Weighed(estimated - begun, time.process_time() - estimated)

    try:
        with weighing(weigh):
            for _ in workload_of(workload).push(table):
                pass
    except _Weighed as done:
        return done.args[0], done.args[1]
    return 0.0, 0.0


def measure_estimates(console: Console, out: Path, *, scale: float = 1.0, repetitions: int = 3) -> list[EstimateRow]:
    """Compares estimated and measured costs of random plans; prints the table and saves it as `cube-estimates`."""
    rows = []
    for workload in WORKLOADS.values():
        for rates in workload.settings:
            console.print(f"random plans of workload {workload.name}, {rates}", style="dim", highlight=False)
            events = FEWER_EVENTS if workload.name in MANY_MATCHES else PLANNED_EVENTS
            rows.append(_estimate_row(workload, rates, int(events * scale), repetitions))
    title = f"Estimated and measured costs of random plans, rank correlations (goal: {RANK_GOAL})"
    console.print(listed(title, ESTIMATE_COLUMNS, rows))
    console.print(f"Costs within {CLOSE:.0%} of each other count as equal; times are the shortest of {repetitions}.")
    console.print(f"Saved: {save(out, 'cube-estimates', {'machine': machine(), 'repetitions': repetitions}, rows)}")
    return rows


def _estimate_row(workload: CubeWorkload, rates: str, events: int, repetitions: int) -> EstimateRow:
    concepts = Concepts(SECTORS)
    table = workload.trades(rates, events).table()
    texts = workload.texts(PLAN_WINDOWS.get(workload.name, PLAN_WINDOW), counted=True)
    shared = plan_shared(plans_of(texts, SCHEMA, concepts), concepts, "chase")
    chase = weighed(shared, table)
    plans = random_plans(chase, Random(workload.name))
    chosen = [{target: way.derivation for target, way in plan.items()} for plan in plans]
    seconds = [float("inf")] * len(plans)
    for _ in range(repetitions):
        for place, plan in enumerate(chosen):
            seconds[place] = min(seconds[place], run_plan(shared, table, plan).seconds)
    handled = [run_plan(shared, table, plan, count_rows=True).rows for plan in chosen]
    estimated = [chase.cost(plan) for plan in plans]
    by_time, by_rows = rank_correlation(estimated, seconds), rank_correlation(estimated, handled)
    least, most = 1e3 * min(seconds), 1e3 * max(seconds)
    return EstimateRow(workload.name, rates, len(plans), least, most, by_time, by_rows)


def random_plans(chase: Chase, draw: Random) -> list[dict[str, Way]]:
    """Different plans, each with a random way for each query that leads to no circle: as many as there are, or 12."""
    options: dict[str, list[Way | None]] = {}
    for way in chase.ways:
        options.setdefault(way.target, [None]).append(way)
    plans: dict[frozenset[int], dict[str, Way]] = {}
    for _ in range(TRIES):
        plan: dict[str, Way] = {}
        for target in draw.sample([*options], len(options)):
            drawn = draw.choice(options[target])
            if drawn and not leads_back(drawn, plan):
                plan[target] = drawn
        plans.setdefault(frozenset(map(id, plan.values())), plan)
        if len(plans) == PLANS:
            break
    return [*plans.values()]


def rank_correlation(one: ArrayLike, other: ArrayLike) -> float:
    """Spearman's rank correlation; values that are close to each other have the same rank."""
    ranks = [_ranks(np.asarray(values, np.float64)) for values in (one, other)]
    deviations = [rank - rank.mean() for rank in ranks]
    spread = float(np.prod([np.sqrt((d * d).sum()) for d in deviations]))
    return float((deviations[0] * deviations[1]).sum()) / spread if spread else 1.0


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The place of each value in ascending order; the mean of their places for values that count as equal."""
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    ranks = np.empty(len(values))
    begin = 0
    for end in range(1, len(values) + 1):
        if end == len(values) or ascending[end] > ascending[begin] * (1 + CLOSE):
            ranks[order[begin:end]] = (begin + end - 1) / 2
            begin = end
    return ranks


PLANNING_COLUMNS: Sequence[Column] = (
    Column("queries", lambda r: f"{r.number:,}"),
    Column("", lambda r: r.queries),
    Column("pairs", lambda r: f"{r.pairs:,}"),
    Column("derivations", lambda r: f"{r.derivations:,}"),
    Column("graph", lambda r: f"{r.graph_ms:,.1f}"),
    Column("derivations", lambda r: f"{r.derivations_ms:,.1f}"),
    Column("costs", lambda r: f"{r.costs_ms:,.1f}"),
    Column("tree", lambda r: f"{r.tree_ms:,.1f}"),
    Column("all", lambda r: judged(f"{r.total_ms:,.1f}", met=r.total_ms <= (r.goal_ms or r.total_ms))),
    Column("goal", lambda r: "" if r.goal_ms is None else f"{r.goal_ms:,g}"),
)
ESTIMATE_COLUMNS: Sequence[Column] = (
    Column("workload", lambda r: r.workload),
    Column("rates", lambda r: r.rates),
    Column("plans", lambda r: f"{r.plans}"),
    Column("fastest ms", lambda r: f"{r.least_ms:.1f}"),
    Column("slowest ms", lambda r: f"{r.most_ms:.1f}"),
    Column("by time", lambda r: judged(f"{r.by_time:.2f}", met=r.by_time >= RANK_GOAL)),
    Column("by rows", lambda r: judged(f"{r.by_rows:.2f}", met=r.by_rows >= RANK_GOAL)),
)
