"""One call of `match` on Spark: its queries, planned and checked for the columns of a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from eventcube.language.syntax import Query
from eventcube.options import Options
from eventcube.plan.logical import LogicalQuery
from eventcube.plan.parts import own_strategies
from eventcube.plan.planned import Planned, plan_queries
from eventcube.plan.result import result_schema
from eventcube.runtime.shared_result import check_shareable, long_schema
from eventcube.schema import EventSchema, Kind, check_names, kind_of
from eventcube.spark.columns import arrow_schema, check_readable, check_unambiguous, column
from eventcube.spark.passes import Pass


class Request:
    """What is asked of a DataFrame, a table or a stream: mistakes are raised here."""

    def __init__(self, events: DataFrame, queries: Mapping[str, Query], single: bool, options: Options) -> None:
        self.events, self.single, self.options = events, single, options
        self.columns = arrow_schema(events)
        self.schema = options.schema(self.columns)
        self.plans = plan_queries(queries, self.schema, options)
        for name in queries:
            check_names(result_schema(self.plans[name].logical).names, "the result has")
        if not single and not all(query.agg for query in queries.values()):
            check_shareable(queries)
        needed = self.needed_columns(list(self.plans.values()))
        check_unambiguous(events, needed)
        check_readable(self.columns, needed)

    def needed_columns(self, plans: Sequence[Planned]) -> list[str]:
        """The columns that the queries need, in the order of the frame."""
        chosen = self.options
        needed = {chosen.time, *([chosen.type] if chosen.type else []), *chosen.partition_by, *chosen.order_by}
        for plan in plans:
            needed |= {*plan.logical.columns, *plan.logical.key}
        return [n for n in self.columns.names if n in needed]

    def plans_over(self, schema: EventSchema, pass_: Pass) -> dict[str, Planned]:
        """The plans of a pass over other columns of the events."""
        queries = {n: p.logical.query for n, p in pass_.plans.items()}
        # Leave out strategies for nested parts of other queries.
        chosen = replace(self.options, strategy=own_strategies(self.options.strategy, queries.values()))
        return plan_queries(queries, schema, chosen)

    def result_schema(self, logical: LogicalQuery) -> pa.Schema:
        """The columns of the result."""
        return result_schema(logical) if self.single else long_schema(self.schema)


def normalized(name: str, schema: pa.Schema) -> Column:
    """The column with the equality of the engine: numbers as floats, NaN as null, -0.0 as 0.0."""
    values = column(name)
    if kind_of(schema.field(name).type) is not Kind.FLOAT:
        return values
    number = values.cast("double")
    return F.when(~F.isnan(number), number + F.lit(0.0))
