"""Workloads spread over tasks as on Spark, by key and by slices of time, but run in this process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from eventcube.language.syntax import Attribute, CountWindow, Query, TimeWindow
from eventcube.options import Options as Chosen
from eventcube.options import options
from eventcube.plan.planned import plan_query, plan_together
from eventcube.runtime.workload import Workload as Running
from eventcube.schema import HALO
from eventcube.spark import slices
from eventcube.spark.pack import Pack, unpacked
from eventcube.spark.passes import Keyed, Pass, Sliced, passes
from eventcube.spark.slices import SLICE, Slices, slice_width
from tests.differential.compare import read_settings
from tests.differential.setups import Setup
from tests.differential.workload import compare_each, draw_workload
from tests.oracle.event import Event
from tests.oracle.generate import Workload, to_arrow
from tests.oracle.qualify import value_of
from tests.oracle.quals import TICK, chance
from tests.oracle.text import with_text

TASKS = 2


def draw_spread(rng: Random) -> Workload:
    """A workload of queries without LIMIT and groups, most of them with windows of time."""
    case = draw_workload(rng)
    options = replace(case.options, partitioned=case.options.partitioned and chance(rng, 30))
    # Events are sorted before they come to a task.
    events = sorted(case.events, key=lambda e: e.ts)
    events = [replace(e, id=i, key=e.key if options.partitioned else None) for i, e in enumerate(events)]
    sliced = not chance(rng, 20)
    return Workload(tuple(_spreadable(q, sliced) for q in case.queries), events, options)


def _spreadable(query: Query, sliced: bool) -> Query:
    query = replace(query, within=_as_time(query.within) if sliced else query.within, limit=None)
    # Groups are merged over tasks; the row of an event is in one of them.
    return with_text(query if query.per is not None else replace(query, agg=(), group_by=(), having=()))


def _as_time(within: TimeWindow | CountWindow | None) -> TimeWindow:
    match within:
        case TimeWindow():
            return within
        case CountWindow(events=n):
            return TimeWindow(min(n, 9) * TICK)
    return TimeWindow(6 * TICK)


def check_spread(case: Workload, rng: Random) -> int:
    """Every query finds over all tasks what the oracle finds; gives the number of rows."""
    setup = Setup.draw(rng)
    # Slices of one window each, so that even a few events lie in several; now and then of a few.
    windows = rng.choice([1, 1, 3])
    found: dict[str, list[pa.RecordBatch]] = {}
    with (
        setup.applied(),
        patch.object(slices, "_WINDOWS", ((2**62, windows),)),
        patch.object(slices, "_MIN_WIDTH", 1),
    ):
        for name, batch in _run(case, Random(setup.seed)):
            found.setdefault(name, []).append(batch)
    return compare_each(case, found, f"slices of {windows}, {setup}")


def _run(case: Workload, rng: Random) -> Iterator[tuple[str, pa.RecordBatch]]:
    table = to_arrow(case.events)
    chosen = options(**read_settings(case.options))
    schema = chosen.schema(table.schema)
    queries = {f"q{i}": query for i, query in enumerate(case.queries, 1)}
    for pass_ in passes({name: plan_query(query, schema, chosen) for name, query in queries.items()}):
        for task in _tasks(pass_, case.events, table, chosen):
            yield from _run_task(pass_, task, chosen, rng)


def _tasks(pass_: Pass, events: list[Event], table: pa.Table, chosen: Chosen) -> Iterator[pa.Table]:
    """The events of each task, in order of time."""
    match pass_.distribution:
        case Keyed(key):
            groups: dict[Any, list[int]] = {}
            for i, event in enumerate(events):
                groups.setdefault(tuple(value_of(Attribute("e", name), {"e": event}) for name in key), []).append(i)
            tasks = [sorted(i for own in list(groups.values())[at::TASKS] for i in own) for at in range(TASKS)]
            yield from (table.take(rows) for rows in tasks if rows)
        case Sliced(window, behind, ahead):
            cut = Slices(chosen.schema(table.schema), window, slice_width(window), behind, ahead)
            for batch in Pack(cut, TASKS)(iter(table.to_batches())):
                for row in range(batch.num_rows):
                    yield pa.Table.from_batches(unpacked(iter([batch.slice(row, 1)]))).sort_by("ts")
        case _:
            yield table


def _run_task(pass_: Pass, events: pa.Table, chosen: Chosen, rng: Random) -> Iterator[tuple[str, pa.RecordBatch]]:
    if isinstance(pass_.distribution, Sliced):
        chosen = replace(chosen, partition_by=(*chosen.partition_by, SLICE))
        assert {SLICE, HALO} <= set(events.column_names)
    schema = chosen.schema(events.schema, internal=True)
    plans = {name: plan_query(plan.logical.query, schema, chosen) for name, plan in pass_.plans.items()}
    running = Running(plan_together(plans, chosen.concepts), schema)
    start, longest = 0, rng.choice([1, 3, 9, 99])
    while start < events.num_rows:
        size = rng.randint(1, longest)
        yield from running.push(events.slice(start, size))
        start += size
    yield from running.finish()
