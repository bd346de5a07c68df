"""`explain`: the plan of a query over events of any kind, as text or in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from eventcube import markup
from eventcube.concepts.concepts import Concepts
from eventcube.engine.views.strategy import check_strategies
from eventcube.errors import OptionError
from eventcube.language.parse import parse
from eventcube.language.syntax import Query
from eventcube.match import run
from eventcube.options import AUTO, invalid_argument, strategy_choice
from eventcube.plan import explain as plan
from eventcube.runtime.frames import is_spark, to_arrow
from eventcube.runtime.queries import hierarchy
from eventcube.runtime.runtime import Runtime


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
    """How a query would run over events: keys, predicates by class, steps, and the columns of the result.

    Events are whatever `match` takes, or just their Arrow schema; none is read. Settings are those of `match`. With
    `analyze` the query runs in this process, its matches are thrown away, and what was counted stands beside what the
    cost model expected of each strategy.
    """
    if not isinstance(query, str | Query):
        raise invalid_argument("query", query, "one query as text")
    query = parse(query) if isinstance(query, str) else query
    if is_spark(events):
        from eventcube.spark.tables import one_table

        events = one_table(events, {"query": query})
    check_strategies(strategy_choice(settings.get("strategy", AUTO)), [query])
    text = plan.explain(query, columns_of(events), concepts=hierarchy(concepts), **settings)
    return Explanation(f"{text}\n{_measured(query, events, concepts, settings)}" if analyze else text)


def _measured(query: str | Query, events: Any, concepts: Any, settings: Mapping[str, Any]) -> str:
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
