"""`explain`: the plan of a query over events of any kind, as text or in a notebook."""

from __future__ import annotations

from typing import Any, Unpack

import pyarrow as pa

from eventcube import markup
from eventcube.engine.views.strategy import check_strategies
from eventcube.errors import OptionError
from eventcube.language.parse import parse
from eventcube.language.syntax import Query
from eventcube.match import run
from eventcube.options import Options, Settings, invalid_argument, options
from eventcube.plan import explain as plan
from eventcube.runtime.frames import is_spark, to_arrow
from eventcube.runtime.runtime import Runtime
from eventcube.settings import takes_settings


class Explanation(str):
    """A plan as text; a notebook shows the plan as a folding tree."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        query, _, plan = self.partition("\n\n")
        return markup.page(markup.query(query), markup.tree(markup.branches(plan.splitlines())))

    def __repr__(self) -> str:
        return str(self)


@takes_settings
def explain(query: str | Query, events: Any, *, analyze: bool = False, **settings: Unpack[Settings]) -> Explanation:
    """How a query would run over events: keys, predicates by class, steps, and the columns of the result.

    Events are whatever `match` takes, or just their Arrow schema; no rows are read. With `analyze` the query runs in
    this process, its matches are dropped, and the counters stand beside the cost model's estimates for each strategy.
    """
    if not isinstance(query, str | Query):
        raise invalid_argument("query", query, "one query as text")
    chosen = options(**settings)
    return explain_query(parse(query) if isinstance(query, str) else query, events, chosen, analyze=analyze)


def explain_query(query: Query, events: Any, options: Options, *, analyze: bool = False) -> Explanation:
    """`explain` with a parsed query and options."""
    if is_spark(events):
        from eventcube.spark.tables import one_table

        events = one_table(events, {"query": query})
    check_strategies(options.strategy, [query])
    text = plan.explain(query, columns_of(events), options)
    return Explanation(f"{text}\n{_measured(query, events, options)}" if analyze else text)


def _measured(query: Query, events: Any, options: Options) -> str:
    if isinstance(events, pa.Schema):
        raise OptionError("there are no events to analyze", code="EC419", hint="hand over events, not their columns")
    table = events.toArrow() if is_spark(events) else to_arrow(events)
    runtime = Runtime.from_options(query, options, schema=table.schema)
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
    # No rows are needed, except in pandas, where only values show the type of an object column.
    return to_arrow(events.head(0) if module == "polars" else events).schema
