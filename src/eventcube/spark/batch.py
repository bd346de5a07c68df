"""`match` over a Spark DataFrame: a plan for Spark, which nothing runs until the result is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Unpack

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from eventcube.engine.counts import Counts
from eventcube.errors import OptionError
from eventcube.language.syntax import Query
from eventcube.options import Options, RowSettings, options
from eventcube.plan.advice import warn_of_conditions
from eventcube.plan.event_columns import event_columns
from eventcube.plan.logical import LogicalQuery
from eventcube.plan.parts import own_strategies
from eventcube.plan.physical import MatchSink, PhysicalQuery
from eventcube.plan.planned import Planned, plan_query
from eventcube.plan.result import result_schema
from eventcube.runtime.queries import Queries, check_options, queries_by_name
from eventcube.runtime.shared_result import check_shareable, long_schema
from eventcube.schema import HALO, INTERNAL, EventSchema, Kind, check_names, kind_of
from eventcube.spark.columns import Batches, arrow_schema, check_apart, check_readable, column, map_batches
from eventcube.spark.counted import Count, counted, observed
from eventcube.spark.earliest import ORDER, OrderKeys, tie_breakers, with_order
from eventcube.spark.groups import Merge, partial_schema
from eventcube.spark.pack import PACKED, TASK, Pack, unpacked
from eventcube.spark.partition import Share, Work
from eventcube.spark.passes import Keyed, Pass, Sliced, passes
from eventcube.spark.pushdown import coded_types, usable
from eventcube.spark.settings import budget, partitions
from eventcube.spark.slices import SLICE, Slices, slice_width
from eventcube.spark.source import warn_of_source, warn_of_types
from eventcube.spark.tables import one_table
from eventcube.spark.wide import flat_frame
from eventcube.spark.workers import check_workers

_PLACE = INTERNAL + "place"


def match_dataframe(
    events: DataFrame | SparkSession,
    queries: Queries,
    options: Options,
    *,
    flat: bool = False,
    counters: Counts | None = None,
) -> DataFrame:
    """The matches as a DataFrame that is computed when it is used; what is wrong with the queries is said at once.

    A session in place of events stands for the table that FROM names.
    """
    asked = queries_by_name(queries)
    check_options(asked, options)
    single = isinstance(queries, str | Query)
    return _Call(options, flat, counters).frame(one_table(events, asked), asked, single)


def match_dataframes(
    events: DataFrame | SparkSession,
    queries: Mapping[str, Query],
    options: Options,
    *,
    flat: bool = False,
    counters: Counts | None = None,
) -> dict[str, DataFrame]:
    """For each query a DataFrame of its own, computed when it is used; see `match_dataframe`."""
    check_options(queries, options)
    call = _Call(options, flat, counters)
    tables = {name: one_table(events, {name: query}) for name, query in queries.items()}
    return {name: call.frame(tables[name], {name: query}, True) for name, query in queries.items()}


@dataclass(frozen=True, slots=True)
class _Call:
    """The options of one call, and the frames of its queries."""

    options: Options
    flat: bool
    counters: Counts | None

    def frame(self, events: DataFrame, queries: Mapping[str, Query], single: bool) -> DataFrame:
        if events.isStreaming:
            raise OptionError("the events are a stream", code="EC409", hint="read them as a batch: spark.read…")
        batch = _Batch(events, queries, single, self.options)
        for plan in batch.plans.values():
            warn_of_conditions(plan.bound)
            warn_of_source(plan.logical.query, events)
            warn_of_types(plan.bound)
        if self.counters is not None:
            batch.count(self.counters)
        found = batch.frame()
        if self.flat:
            (logical,) = (plan.logical for plan in batch.plans.values())
            found = flat_frame(found, result_schema(logical), event_columns(logical.query))
        check_workers(events.sparkSession)
        return found


def spread_dataframe(events: DataFrame, query: str, **settings: Unpack[RowSettings]) -> DataFrame:
    """What the tasks of `match` get to see of the events for one query, handed on as it is through the same steps.

    It is there to measure Spark's own part of the work.
    """
    batch = _Batch(events, queries_by_name(query), True, options(**settings))
    return batch.spread(passes(batch.plans)[0])


class _Batch:
    """One call of `match`: from bound queries to the frame."""

    def __init__(self, events: DataFrame, queries: Mapping[str, Query], single: bool, options: Options) -> None:
        self.events, self.single, self.options = events, single, options
        self.counted: Count | None = None
        self.columns = arrow_schema(events)
        self.schema = options.schema(self.columns)
        self.plans = {name: plan_query(q, self.schema, options) for name, q in queries.items()}
        for name in queries:
            check_names(result_schema(self.plans[name].logical).names, "the result has")
        if not single:
            check_shareable(queries)
        needed = self._needed(list(self.plans.values()))
        check_apart(events, needed)
        check_readable(self.columns, needed)

    def count(self, counters: Counts) -> None:
        """Count what is done, and unless that is not wanted, what rows there are."""
        self.counted = counted(self.events, counters)
        if counters.counts_rows:
            queries = [plan.logical for plan in self.plans.values()]
            self.events = observed(self.events, counters, self.schema, queries)

    def frame(self) -> DataFrame:
        """The result of all queries."""
        limited = {n: p for n, p in self.plans.items() if self._is_limited(p)}
        free = {n: p for n, p in self.plans.items() if n not in limited}
        found = [self._matches(each) for each in (passes(free) if free else [])]
        found += [self._earliest(each) for each in (passes(limited) if limited else [])]
        return reduce(DataFrame.union, found)

    def _is_limited(self, plan: Planned) -> bool:
        return isinstance(plan.physical.sink, MatchSink) and plan.physical.sink.limit is not None

    def _limit(self, plan: Planned) -> int:
        """How many matches a query with a limit gives."""
        sink = plan.physical.sink
        assert isinstance(sink, MatchSink)
        assert sink.limit is not None
        return sink.limit

    # What a pass gives.

    def _matches(self, each: Pass) -> DataFrame:
        logical = each.queries[0]
        if logical.query.agg:
            return self._groups(each, logical)
        tasks = self._task_plans(each)
        shares = tuple(
            Share({n: p for n, p in tasks.items() if p.forward is forward}, forward)
            for forward in (False, True)
            if any(p.forward is forward for p in tasks.values())
        )
        return self._mapped(each, shares, self._result(logical))

    def _earliest(self, each: Pass) -> DataFrame:
        shares = tuple(Share({n: with_order(p)}, p.forward, OrderKeys(p)) for n, p in self._task_plans(each).items())
        limits = {n: self._limit(p) for n, p in each.plans.items()}
        result = self._result(each.queries[0])
        found = self._mapped(each, shares, result.append(pa.field(ORDER, pa.binary(), nullable=False)))
        if self.single:
            kept = found.orderBy(ORDER).limit(min(limits.values()))
            return kept.drop(ORDER)
        place = F.row_number().over(Window.partitionBy("query").orderBy(ORDER))
        most = F.create_map(*[F.lit(value) for pair in limits.items() for value in pair])
        ranked = found.withColumn(_PLACE, place).where(F.col(_PLACE) <= most[F.col("query")])
        return ranked.drop(ORDER, _PLACE)

    def _groups(self, each: Pass, logical: LogicalQuery) -> DataFrame:
        schema = partial_schema(logical.results)
        shares = tuple(Share({n: p}, p.forward) for n, p in self._task_plans(each).items())
        partial = self._mapped(each, shares, schema)
        result = result_schema(logical)
        keys = [n for n in schema.names if n.startswith("k")]
        if keys:
            partial = partial.repartition(partitions(self.events), *[_exact(n, schema) for n in keys])
        else:
            partial = partial.union(self._no_groups(schema)).repartition(1)
        return map_batches(partial, Merge(logical.results, result), result)

    def _no_groups(self, schema: pa.Schema) -> DataFrame:
        """A row to start from, so that nothing found is a result too."""
        types = from_arrow_schema(schema)
        empty = [
            F.lit(0 if f.name.startswith("n") or self._counts(f.name) else None).cast(f.dataType).alias(f.name)
            for f in types
        ]
        return self.events.sparkSession.range(1).select(*empty)

    def _counts(self, name: str) -> bool:
        results = next(iter(self.plans.values())).logical.results
        return name.startswith("a") and results.agg[int(name[1:])].function == "COUNT"

    def _result(self, logical: LogicalQuery) -> pa.Schema:
        return result_schema(logical) if self.single else long_schema(self.schema)

    # How the events get there.

    def _task_plans(self, each: Pass) -> dict[str, PhysicalQuery]:
        """The plans over the columns that tasks see: only what is needed, with slices as partitions."""
        schema = self._task_schema(each)
        queries = {n: p.logical.query for n, p in each.plans.items()}
        # Strategies for parts of other queries are none of these.
        chosen = replace(self.options, strategy=own_strategies(self.options.strategy, queries.values()))
        return {n: plan_query(q, schema, chosen).physical for n, q in queries.items()}

    def _task_schema(self, each: Pass) -> EventSchema:
        fields = list(arrow_schema(self._kept(each)))
        if coded_types(each.queries, self.events.schema):
            names = pa.dictionary(pa.int16(), pa.string())
            fields = [f.with_type(names) if f.name == self.options.type else f for f in fields]
        chosen = self.options
        if isinstance(each.spread, Sliced):
            fields += [pa.field(SLICE, pa.int64()), pa.field(HALO, pa.int8())]
            chosen = replace(chosen, partition_by=(*chosen.partition_by, SLICE))
        return chosen.schema(pa.schema(fields), internal=True)

    def _mapped(self, each: Pass, shares: tuple[Share, ...], result: pa.Schema) -> DataFrame:
        schema = self._task_schema(each)
        plans = [(p, share.keys is not None) for share in shares for p in share.plans.values()]
        ties = {name for p, ranked in plans if ranked or p.scan.by_count for name in tie_breakers(p)}
        work = Work(
            shares,
            schema,
            self.single,
            result,
            tuple(n for n in schema.columns.names if n in ties),
            budget(self.events),
            coded_types(each.queries, self.events.schema),
            self.counted,
        )
        return self._through(each, work, result)

    def spread(self, each: Pass) -> DataFrame:
        """The events as the tasks of a pass see them, handed on as they are."""
        fields = [pa.field(f.name, f.type) for f in arrow_schema(self._kept(each))]
        if isinstance(each.spread, Sliced):
            fields += [pa.field(SLICE, pa.int64()), pa.field(HALO, pa.int8())]
        return self._through(each, iter, pa.schema(fields))

    def _through(self, each: Pass, work: Callable[[Batches], Batches], result: pa.Schema) -> DataFrame:
        """What the work makes of the events that the queries can use, where they can use them."""
        kept = self._kept(each)
        count = partitions(self.events)
        match each.spread:
            case Keyed(key):
                return map_batches(kept.repartition(count, *[_exact(n, self.columns) for n in key]), work, result)
            case Sliced(window, behind, ahead):
                slices = Slices(self.schema, window, slice_width(window), behind, ahead)
                packed = map_batches(kept, Pack(slices, count), PACKED)
                packed = packed.repartitionById(count, F.col(TASK))
                return map_batches(packed, lambda batches: work(unpacked(batches)), result)
            case _:
                return map_batches(kept.repartition(1), work, result)

    def _kept(self, each: Pass) -> DataFrame:
        """The events that the queries can use, with the columns that they need."""
        kept = self.events.where(reduce(Column.__and__, usable(each.queries, self.events.schema)))
        kept = kept.select(*[column(n) for n in self._needed(list(each.plans.values()))])
        return self._coded(kept, coded_types(each.queries, self.events.schema))

    def _coded(self, frame: DataFrame, types: tuple[str, ...]) -> DataFrame:
        """The frame with the place of each type among the types, which is less to carry than its name."""
        if not types or self.options.type is None:
            return frame
        own = F.array_position(F.array(*[F.lit(t) for t in types]), column(self.options.type)).cast("smallint")
        return frame.select(*[own.alias(n) if n == self.options.type else column(n) for n in frame.columns])

    def _needed(self, plans: Sequence[Planned]) -> list[str]:
        """The columns that the queries need, in the order of the frame."""
        chosen = self.options
        needed = {chosen.time, *([chosen.type] if chosen.type else []), *chosen.partition_by, *chosen.order_by}
        for plan in plans:
            needed |= {*plan.logical.columns, *plan.logical.key}
        return [n for n in self.columns.names if n in needed]


def _exact(name: str, schema: pa.Schema) -> Column:
    """The column, such that what the engine takes for equal is equal: numbers as floats, and NaN as null."""
    own = column(name)
    if kind_of(schema.field(name).type) is not Kind.FLOAT:
        return own
    number = own.cast("double")
    return F.when(~F.isnan(number), number + F.lit(0.0))
