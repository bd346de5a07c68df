"""`explain`: the plan of a query over events of any kind, as text or in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from eventcube import markup
from eventcube.concepts.concepts import Concepts
from eventcube.engine.views.auto import answering
from eventcube.engine.views.strategy import strategies
from eventcube.errors import OptionError
from eventcube.language.parse import parse
from eventcube.language.syntax import Query
from eventcube.match import run
from eventcube.options import AUTO, invalid_argument, options
from eventcube.plan.explain import parts_with_strategies, plan_text
from eventcube.plan.parts import check_strategies
from eventcube.plan.physical import PhysicalQuery
from eventcube.plan.planned import plan_query
from eventcube.runtime.frames import is_spark, to_arrow
from eventcube.runtime.queries import hierarchy
from eventcube.runtime.runtime import Runtime

# Events over which choices are shown, at most and at least, and what to run the query over them should cost.
SAMPLED_EVENTS, FEWEST_EVENTS = 100_000, 100
SAMPLED_COST = 2e7


class Explanation(str):
    """A plan in words; a notebook shows the query and, as a tree that folds, the plan."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        query, _, plan = self.partition("\n\n")
        return markup.page(markup.query(query), markup.tree(markup.branches(plan.splitlines())))

    def __repr__(self) -> str:
        return str(self)


def explain(
    query: str | Query,
    events: Any,
    *,
    concepts: Concepts | Mapping[str, Any] | None = None,
    analyze: bool = False,
    **settings: Any,
) -> Explanation:
    """How a query would run over events: keys, predicates by class, steps, columns of the result, and choices by cost.

    Events are whatever `match` takes, or just their Arrow schema. Settings are those of `match`. If the optimizer has
    something to choose and events are at hand in this process, the query runs over the first of them, at most 100,000,
    to show what each alternative should cost and which one is chosen. Events on Spark are not read. With `analyze` the
    query runs over all events in this process, its matches are thrown away, and what was counted stands beside what was
    expected.
    """
    if not isinstance(query, str | Query):
        raise invalid_argument("query", query, "one query as text")
    query = parse(query) if isinstance(query, str) else query
    if is_spark(events):
        from eventcube.spark.tables import one_table

        events = one_table(events, {"query": query})
    chosen = options(**settings)
    check_strategies(chosen.strategy, [query], strategies())
    planned = plan_query(query, chosen.schema(columns_of(events)), hierarchy(concepts), chosen)
    text = plan_text(planned)
    if analyze:
        return Explanation(f"{text}\n{_measured(query, events, concepts, settings)}")
    return Explanation("\n".join((text, *_choices(planned.physical, query, events, concepts, settings))))


def _choices(
    plan: PhysicalQuery, query: Query, events: Any, concepts: Any, settings: Mapping[str, Any]
) -> Iterator[str]:
    """What the optimizer chooses from; over events at hand, what it chooses and why."""
    parts = [part for part in parts_with_strategies(plan.program) if part.strategy == AUTO]
    if not parts:
        return
    if isinstance(events, pa.Schema) or is_spark(events):
        yield "choices     by cost; costs need events in this process, or analyze"
        if len(plan.alternatives) > 1:
            yield f"  program: {', '.join(alternative.name for alternative in plan.alternatives)}"
        yield from dict.fromkeys(f"  ({part.name}): {', '.join(answering(part))}" for part in parts)
        return
    table = _affordable(_first(events), query, concepts, settings)
    runtime = Runtime(query, schema=table.schema, concepts=concepts, advise=False, **settings)
    for _ in run(runtime, table):
        pass
    assert runtime.workload is not None
    yield f"choices     over the first {table.num_rows:,} events, by costs in events looked at"
    for engine in runtime.workload.engines.values():
        yield from (f"  {line}" for line in engine.choices())


def _first(events: Any) -> pa.Table:
    """The first events, as many as are sampled."""
    if type(events).__module__.split(".")[0] in ("pandas", "polars"):
        events = events.head(SAMPLED_EVENTS)
    return to_arrow(events).slice(0, SAMPLED_EVENTS)


def _affordable(table: pa.Table, query: Query, concepts: Any, settings: Mapping[str, Any]) -> pa.Table:
    """So many of the first events that to run the query over them should not take long."""
    while table.num_rows > FEWEST_EVENTS:
        runtime = Runtime(query, schema=table.schema, concepts=concepts, advise=False, **settings)
        assert runtime.workload is not None
        runtime.workload.ingest.take(table)
        released = runtime.workload.ingest.release(None)
        costs = [engine.estimate(released) for engine in runtime.workload.engines.values()]
        if all(min(cost.expected.values()) <= SAMPLED_COST for cost in costs):
            break
        table = table.slice(0, table.num_rows // 4)
    return table


def _measured(query: Query, events: Any, concepts: Any, settings: Mapping[str, Any]) -> str:
    if isinstance(events, pa.Schema):
        raise OptionError("there are no events to analyze", code="EC419", hint="hand over events, not their columns")
    table = events.toArrow() if is_spark(events) else to_arrow(events)
    runtime = Runtime(query, schema=table.schema, concepts=concepts, **settings)
    for _ in run(runtime, table):
        pass
    return runtime.report()


def columns_of(events: Any) -> pa.Schema:
    """The columns of events of any kind."""
    if isinstance(events, pa.Schema):
        return events
    if is_spark(events):
        from eventcube.spark.columns import arrow_schema

        return arrow_schema(events)
    module = type(events).__module__.split(".")[0]
    # A frame without rows is enough, but in pandas only rows tell what an object is.
    return to_arrow(events.head(0) if module == "polars" else events).schema
