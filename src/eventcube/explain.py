"""`explain`: the plan of a query over events of any kind, as text or in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import pyarrow as pa

from eventcube import markup
from eventcube.engine.reuse.derive import plan_shared
from eventcube.engine.views.auto import answering
from eventcube.engine.views.strategy import strategies
from eventcube.errors import OptionError
from eventcube.language.parse import parse
from eventcube.language.syntax import Query
from eventcube.match import run
from eventcube.optimizer.choose import INDEX, SCAN
from eventcube.optimizer.derivations import fixed_lines
from eventcube.options import AUTO, CHASE, Options, Settings, options
from eventcube.plan.equal_parts import parts_with_strategies
from eventcube.plan.explain import plan_text
from eventcube.plan.explain_workload import workload_lines
from eventcube.plan.inequalities import all_inequalities
from eventcube.plan.parts import check_strategies
from eventcube.plan.physical import MADE, PhysicalQuery
from eventcube.plan.planned import plan_queries, plan_query, plan_together
from eventcube.plan.workload import WorkloadPlan
from eventcube.runtime.frames import as_frame, is_spark, to_arrow
from eventcube.runtime.queries import Queries, check_options, queries_by_name
from eventcube.runtime.runtime import Runtime
from eventcube.settings import takes_settings

# Events over which choices are shown, at most and at least, and what to run the query over them should cost.
SAMPLED_EVENTS, FEWEST_EVENTS = 100_000, 100
SAMPLED_COST = 2e7


class Explanation(str):
    """A plan as text; a notebook shows the plan as a folding tree."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        query, _, plan = self.partition("\n\n")
        return markup.page(markup.query(query), markup.tree(markup.branches(plan.splitlines())))

    def __repr__(self) -> str:
        return str(self)


@takes_settings
def explain(query: Queries, events: Any, *, analyze: bool = False, **settings: Unpack[Settings]) -> Explanation:
    """How a query would run over events: keys, predicates by class, steps, columns of the result, and choices by cost.

    Of several queries: the stacks of events that they share, and the tree of their steps.

    Events are whatever `match` takes, or just their Arrow schema. If the optimizer has something to choose and the
    events are in this process, the query runs over the first of them, at most 100,000, to show the estimated cost of
    each alternative and the choice. Events on Spark are not read. With `analyze` the query runs over all events in this
    process, its matches are dropped, and the counters stand beside the estimates.
    """
    chosen = options(**settings)
    if not isinstance(query, str | Query):
        return explain_queries(queries_by_name(query), events, chosen, analyze=analyze)
    return explain_query(parse(query) if isinstance(query, str) else query, events, chosen, analyze=analyze)


def explain_query(query: Query, events: Any, options: Options, *, analyze: bool = False) -> Explanation:
    """`explain` with a parsed query and options."""
    if is_spark(events):
        from eventcube.spark.tables import one_table

        events = one_table(events, {"query": query})
    check_strategies(options.strategy, [query], strategies())
    planned = plan_query(query, options.schema(columns_of(events)), options)
    text = plan_text(planned)
    if analyze:
        return Explanation(f"{text}\n{_measured(query, events, options)}")
    return Explanation("\n".join((text, *_choices(planned.physical, query, events, options))))


def explain_queries(
    queries: Mapping[str, Query], events: Any, options: Options, *, analyze: bool = False
) -> Explanation:
    """`explain` of several queries: what they share."""
    if is_spark(events):
        from eventcube.spark.tables import one_table

        events = one_table(events, queries)
    check_options(queries, options)
    schema = options.schema(columns_of(events))
    plans = plan_queries(queries, schema, options)
    workload = replace(plan_together(plans, options.concepts), sharing=options.sharing)
    lines = list(workload_lines(plans, workload))
    if analyze:
        return Explanation("\n".join((*lines, _measured(queries, events, options))))
    if isinstance(events, pa.Schema):
        lines += _unseen([plan_shared(plans, options.concepts, options.sharing)], "as events come")
    elif is_spark(events):
        from eventcube.spark.batch import planned_passes

        lines += _unseen(planned_passes(events, queries, options), "in each task over its events")
    else:
        table = _affordable(_first(events), queries, options)
        runtime = Runtime.from_options(queries, options, schema=table.schema, separate=True, advise=False)
        for _ in run(runtime, table):
            pass
        choices = [f"  {line}" for line in runtime.choices()]
        lines += (
            [f"choices     over the first {table.num_rows:,} events, by estimated cost", *choices] if choices else []
        )
    return Explanation("\n".join(lines))


def _unseen(workloads: Sequence[WorkloadPlan], when: str) -> Iterator[str]:
    """Which queries are computed from which, as far as that is known without events."""
    ways = sum(len(query.derivations) for workload in workloads for query in workload.queries.values())
    if ways and workloads[0].sharing in (AUTO, CHASE):
        counted = f"{ways:,} way{'s' * (ways != 1)}"
        yield f"choices     by cost, {when}, among {counted} to compute a query from others"
    fixed = [f"  {line}" for workload in workloads for line in fixed_lines(workload)]
    if fixed:
        yield "choices     the same for all events"
        yield from fixed


def _choices(plan: PhysicalQuery, query: Query, events: Any, options: Options) -> Iterator[str]:
    """What the optimizer chooses from; over events at hand, what it chooses and why."""
    parts = [part for part in parts_with_strategies(plan.program) if part.strategy == AUTO]
    joins = all_inequalities(plan.program)
    unseen = isinstance(events, pa.Schema) or is_spark(events)
    # Without events, the plan has told already that aggregates can be computed in two ways.
    if not (plan.sink.by_cost and not unseen if plan.sink.name in MADE else parts or joins):
        return
    if unseen:
        yield "choices     by cost; ec.explain over events in this process, or analyze, estimates it"
        if len(plan.alternatives) > 1:
            yield f"  program: {', '.join(alternative.name for alternative in plan.alternatives)}"
        yield from dict.fromkeys(f"  ({part.name}): {', '.join(answering(part))}" for part in parts)
        yield from (f"  where {conditions}: {INDEX}, {SCAN}" for conditions in joins)
        return
    table = _affordable(_first(events), query, options)
    runtime = Runtime.from_options(query, options, schema=table.schema, advise=False)
    for _ in run(runtime, table):
        pass
    choices = [f"  {line}" for line in runtime.choices()]
    if choices:
        yield f"choices     over the first {table.num_rows:,} events, by estimated cost"
        yield from choices


def _first(events: Any) -> pa.Table:
    """The first events, as many as are sampled."""
    if type(events).__module__.split(".")[0] in ("pandas", "polars"):
        events = events.head(SAMPLED_EVENTS)
    return to_arrow(events).slice(0, SAMPLED_EVENTS)


def _affordable(table: pa.Table, query: Queries, options: Options) -> pa.Table:
    """So many of the first events that to run the query over them should not take long."""
    while table.num_rows > FEWEST_EVENTS:
        runtime = Runtime.from_options(query, options, schema=table.schema, separate=True, advise=False)
        assert runtime.workload is not None
        runtime.workload.ingest.take(table)
        released = runtime.workload.ingest.release(None)
        costs = runtime.workload.engine.estimates(released)
        if all(min(cost.expected.values()) <= SAMPLED_COST for cost in costs):
            break
        table = table.slice(0, table.num_rows // 4)
    return table


def _measured(query: Queries, events: Any, options: Options) -> str:
    if isinstance(events, pa.Schema):
        raise OptionError("there are no events to analyze", code="EC419", hint="hand over events, not their columns")
    table = events.toArrow() if is_spark(events) else to_arrow(events)
    runtime = Runtime.from_options(query, options, schema=table.schema, separate=True)
    for _ in run(runtime, table):
        pass
    return runtime.report()


def columns_of(events: Any) -> pa.Schema:
    """The columns of events of any kind, or of their schema in Arrow, Spark, polars or pandas."""
    if isinstance(events, pa.Schema):
        return events
    if is_spark(events):
        from eventcube.spark.columns import arrow_schema

        return arrow_schema(events)
    module = type(events).__module__.split(".")[0]
    # No rows are needed, except in pandas, where only values show the type of an object column.
    frame = as_frame(events)
    return to_arrow(frame.head(0) if module == "polars" else frame).schema
