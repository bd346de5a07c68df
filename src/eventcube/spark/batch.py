"""`match` over a Spark DataFrame: builds a lazy DataFrame of the matches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Unpack

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from eventcube.cube.levels import levels_schema
from eventcube.engine.aggregate import ESTIMATE
from eventcube.engine.counts import Counts
from eventcube.engine.reuse.derive import plan_shared
from eventcube.errors import OptionError
from eventcube.language.syntax import Query
from eventcube.options import Options, RowSettings, options
from eventcube.plan.advice import warn_of_conditions
from eventcube.plan.event_columns import event_columns
from eventcube.plan.logical import LogicalQuery
from eventcube.plan.planned import Planned
from eventcube.plan.result import group_schema, result_schema
from eventcube.plan.workload import WorkloadPlan, plan_workload
from eventcube.runtime.queries import Queries, check_options, queries_by_name
from eventcube.runtime.watermark import microseconds_of
from eventcube.schema import HALO, INTERNAL, EventSchema
from eventcube.spark.columns import Batches, arrow_schema, column, map_batches
from eventcube.spark.counters import AddCounters, observe_rows, task_counters
from eventcube.spark.groups import COUNTED, GROUPS, Merge, MergeCounts, MergeLevels, in_tasks, partial_schema
from eventcube.spark.limit import ORDER, OrderKeys, tie_breakers, with_order
from eventcube.spark.origin import Origin
from eventcube.spark.pack import PACKED, TASK, Pack, unpacked
from eventcube.spark.passes import Keyed, Pass, Sliced, passes
from eventcube.spark.pushdown import coded_types, usable
from eventcube.spark.request import Request, normalized
from eventcube.spark.settings import budget, partitions
from eventcube.spark.slices import SLICE, Slices, slice_width
from eventcube.spark.source import warn_of_source, warn_of_types
from eventcube.spark.stream import Stream
from eventcube.spark.tables import one_table
from eventcube.spark.task import MatchTask, PlanGroup
from eventcube.spark.watermarks import as_last_watermark
from eventcube.spark.wide import flat_frame
from eventcube.spark.workers import check_workers

_ROW_NUMBER = INTERNAL + "row_number"


def match_dataframe(
    events: DataFrame | SparkSession,
    queries: Queries,
    options: Options,
    *,
    flat: bool = False,
    counters: Counts | None = None,
) -> DataFrame:
    """The matches as a lazy DataFrame; mistakes in the queries are raised at once.

    A session in place of events stands for the table that FROM names.
    """
    parsed = queries_by_name(queries)
    check_options(parsed, options)
    single = isinstance(queries, str | Query)
    return _Call(options, flat, counters).frame(one_table(events, parsed), parsed, single)


def match_stream(events: DataFrame, queries: Queries, options: Options) -> tuple[DataFrame, Origin]:
    """The matches of a streaming DataFrame, as `match_dataframe` gives them, and what their state will be of."""
    parsed = queries_by_name(queries)
    check_options(parsed, options)
    stream = _Call(options, False, None).stream(events, parsed, isinstance(queries, str | Query))
    check_workers(events.sparkSession)
    return as_last_watermark(stream.frame()), stream.origin


def match_dataframes(
    events: DataFrame | SparkSession,
    queries: Mapping[str, Query],
    options: Options,
    *,
    flat: bool = False,
    counters: Counts | None = None,
) -> dict[str, DataFrame]:
    """For each query a lazy DataFrame of its own; see `match_dataframe`."""
    check_options(queries, options)
    call = _Call(options, flat, counters)
    tables = {name: one_table(events, {name: query}) for name, query in queries.items()}
    return {name: call.frame(tables[name], {name: query}, True) for name, query in queries.items()}


def count_dataframe(
    events: DataFrame | SparkSession,
    queries: Mapping[str, Query],
    limits: Mapping[str, int],
    options: Options,
    *,
    counters: Counts | None = None,
) -> DataFrame:
    """How many matches each query has, in as few passes over the events as there can be; the queries count."""
    check_options(queries, options)
    table = one_table(events, queries)
    batch = _Call(options, False, counters).batch(table, queries, single=False)
    counted = batch.counts(limits)
    check_workers(table.sparkSession)
    return counted


def levels_dataframe(
    events: DataFrame | SparkSession,
    queries: Mapping[str, Query],
    limits: Mapping[str, int],
    options: Options,
    *,
    counters: Counts | None = None,
) -> DataFrame:
    """The cells of the queries, in as few passes over the events as there can be."""
    check_options(queries, options)
    table = one_table(events, queries)
    cells = _Call(options, False, counters).batch(table, queries, single=False).levels(limits)
    check_workers(table.sparkSession)
    return cells


@dataclass(frozen=True, slots=True)
class _Call:
    """The options of one call, and the results of its queries."""

    options: Options
    flat: bool
    counters: Counts | None

    def batch(self, events: DataFrame, queries: Mapping[str, Query], single: bool) -> _Batch:
        """The queries, planned and checked."""
        if events.isStreaming:
            raise OptionError("the events are a stream", code="EC409", hint="read them as a batch: spark.read…")
        batch = _Batch(events, queries, single, self.options)
        _warn(batch)
        if self.counters is not None:
            batch.count(self.counters)
        return batch

    def stream(self, events: DataFrame, queries: Mapping[str, Query], single: bool) -> Stream:
        """The queries over a stream, planned and checked."""
        stream = Stream(events, queries, single, self.options)
        _warn(stream)
        if self.counters is not None:
            stream.count(self.counters)
        return stream

    def frame(self, events: DataFrame, queries: Mapping[str, Query], single: bool) -> DataFrame:
        asked = self.stream(events, queries, single) if events.isStreaming else self.batch(events, queries, single)
        matches = asked.frame()
        if self.flat:
            (logical,) = (plan.logical for plan in asked.plans.values())
            matches = flat_frame(matches, event_columns(logical.query))
        check_workers(events.sparkSession)
        return as_last_watermark(matches) if events.isStreaming else matches


def _warn(request: Request) -> None:
    """Warn of what is probably a slip in the queries."""
    for plan in request.plans.values():
        warn_of_conditions(plan.bound)
        warn_of_source(plan.logical.query, request.events)
        warn_of_types(plan.bound)


def planned_passes(events: DataFrame, queries: Mapping[str, Query], options: Options) -> list[WorkloadPlan]:
    """The plans of the queries that run together in the tasks of a pass, without those with LIMIT; reads no events."""
    return _Batch(events, queries, True, options).planned()


def shuffled_dataframe(
    events: DataFrame, query: str, *, empty: bool = False, **settings: Unpack[RowSettings]
) -> DataFrame:
    """The events as the tasks of `match` receive them for one query, without running the engine.

    For benchmarks, to measure Spark's part of the work. If `empty`, tasks read them all and return none.
    """
    batch = _Batch(events, queries_by_name(query), True, options(**settings))
    return batch.shuffled(passes(batch.plans)[0], empty=empty)


class _Batch(Request):
    """One call of `match` over a table: from queries to the DataFrame of their matches."""

    def __init__(self, events: DataFrame, queries: Mapping[str, Query], single: bool, options: Options) -> None:
        super().__init__(events, queries, single, options)
        self.add_counters: AddCounters | None = None

    def count(self, counters: Counts) -> None:
        """Count the work of the tasks and, if the caller wants it, the input rows."""
        self.add_counters = task_counters(self.events, counters)
        if counters.counts_rows:
            queries = [plan.logical for plan in self.plans.values()]
            self.events = observe_rows(self.events, counters, self.schema, queries)

    def frame(self) -> DataFrame:
        """The result of all queries."""
        limited = {n: p for n, p in self.plans.items() if self._is_limited(p)}
        frames = [self._matches(pass_) for pass_ in self._unlimited()]
        frames += [self._earliest(pass_) for pass_ in (passes(limited) if limited else [])]
        return reduce(DataFrame.union, frames)

    def counts(self, limits: Mapping[str, int]) -> DataFrame:
        """The number of matches of each query, in the order of the queries."""
        partial = reduce(DataFrame.union, [self._counted(pass_, COUNTED) for pass_ in passes(self.plans)])
        # A row for each task is little, and one for each query is all that is left.
        no_match = self.events.sparkSession.range(1).select(F.lit("").alias("query"), F.lit(0).cast("bigint"))
        return map_batches(partial.union(no_match).repartition(1), MergeCounts(tuple(self.plans), limits), COUNTED)

    def _counted(self, pass_: Pass, result: pa.Schema) -> DataFrame:
        return self._run_tasks(pass_, (PlanGroup(self._planned(pass_)),), result)

    def levels(self, limits: Mapping[str, int]) -> DataFrame:
        """The cells of each query: tasks return its groups at the finest types, which are merged and rolled up."""
        partial = reduce(DataFrame.union, [self._counted(pass_, GROUPS) for pass_ in passes(self.plans)])
        no_match = F.explode(F.array(*map(F.lit, self.plans))).alias("query"), F.lit(None).cast("binary")
        partial = partial.union(self.events.sparkSession.range(1).select(*no_match))
        results = {name: plan.logical.results for name, plan in self.plans.items()}
        queries = {name: plan.logical.query for name, plan in self.plans.items()}
        schema = levels_schema(queries, {name: group_schema(own) for name, own in results.items()})
        return map_batches(partial.repartition(len(results), "query"), MergeLevels(results, schema, limits), schema)

    def planned(self) -> list[WorkloadPlan]:
        """The plan of each pass; queries with LIMIT run by themselves."""
        return [self._planned(pass_) for pass_ in self._unlimited()]

    def _unlimited(self) -> list[Pass]:
        plans = {name: plan for name, plan in self.plans.items() if not self._is_limited(plan)}
        return passes(plans) if plans else []

    def _planned(self, pass_: Pass) -> WorkloadPlan:
        return plan_shared(self._task_plans(pass_), self.options.concepts, self.options.sharing)

    def _is_limited(self, plan: Planned) -> bool:
        return plan.physical.sink.limit is not None

    def _limit(self, plan: Planned) -> int:
        """The limit of a query that has one."""
        limit = plan.physical.sink.limit
        assert limit is not None
        return limit

    # The results of a pass.

    def _matches(self, pass_: Pass) -> DataFrame:
        logical = pass_.queries[0]
        if logical.results.agg and logical.results.per is None:
            return self._groups(pass_, logical)
        return self._run_tasks(pass_, (PlanGroup(self._planned(pass_)),), self.result_schema(logical))

    def _earliest(self, pass_: Pass) -> DataFrame:
        plan_groups = tuple(
            PlanGroup(plan_workload({n: with_order(p.physical)}, self.options.concepts), OrderKeys(p.physical))
            for n, p in self._task_plans(pass_).items()
        )
        limits = {n: self._limit(p) for n, p in pass_.plans.items()}
        result = self.result_schema(pass_.queries[0])
        matches = self._run_tasks(pass_, plan_groups, result.append(pa.field(ORDER, pa.binary(), nullable=False)))
        if self.single:
            return matches.orderBy(ORDER).limit(min(limits.values())).drop(ORDER)
        row_number = F.row_number().over(Window.partitionBy("query").orderBy(ORDER))
        limit = F.create_map(*[F.lit(value) for pair in limits.items() for value in pair])
        ranked = matches.withColumn(_ROW_NUMBER, row_number).where(F.col(_ROW_NUMBER) <= limit[F.col("query")])
        return ranked.drop(ORDER, _ROW_NUMBER)

    def _groups(self, pass_: Pass, logical: LogicalQuery) -> DataFrame:
        schema = partial_schema(logical.results)
        partial = self._run_tasks(pass_, (PlanGroup(self._planned(pass_)),), schema)
        result = result_schema(logical)
        keys = [n for n in schema.names if n.startswith("k")]
        if keys:
            partial = partial.repartition(partitions(self.events), *[normalized(n, schema) for n in keys])
        else:
            partial = partial.union(self._empty_group(schema)).repartition(1)
        return map_batches(partial, Merge(logical.results, result), result)

    def _empty_group(self, schema: pa.Schema) -> DataFrame:
        """A group of no matches, so that AGG without GROUPBY always gives a row."""
        types = from_arrow_schema(schema)
        empty = [
            F.lit(0 if self._is_count(f.name.removeprefix(ESTIMATE)) else None).cast(f.dataType).alias(f.name)
            for f in types
        ]
        return self.events.sparkSession.range(1).select(*empty)

    def _is_count(self, name: str) -> bool:
        results = next(iter(self.plans.values())).logical.results
        return name.startswith("n") or (name.startswith("a") and results.agg[int(name[1:])].function == "COUNT")

    # The events of a pass.

    def _task_plans(self, pass_: Pass) -> dict[str, Planned]:
        """The plans over the columns of the tasks: only those needed, and the slice as part of the key."""
        return {n: in_tasks(plan) for n, plan in self.plans_over(self._task_schema(pass_), pass_).items()}

    def _task_schema(self, pass_: Pass) -> EventSchema:
        fields = [self.columns.field(name) for name in self.needed_columns(list(pass_.plans.values()))]
        if coded_types(pass_.physical, self.events.schema):
            names = pa.dictionary(pa.int16(), pa.string())
            fields = [f.with_type(names) if f.name == self.options.type else f for f in fields]
        chosen = self.options
        if isinstance(pass_.distribution, Sliced):
            fields += [pa.field(SLICE, pa.int64()), pa.field(HALO, pa.int8())]
            chosen = replace(chosen, partition_by=(*chosen.partition_by, SLICE))
        return chosen.schema(pa.schema(fields), internal=True)

    def _run_tasks(self, pass_: Pass, plan_groups: tuple[PlanGroup, ...], result: pa.Schema) -> DataFrame:
        schema = self._task_schema(pass_)
        plans = [(q.plan, group.keys is not None) for group in plan_groups for q in group.plan.queries.values()]
        ties = {name for p, ranked in plans if ranked or p.scan.by_count for name in tie_breakers(p)}
        task = MatchTask(
            plan_groups,
            schema,
            self.single,
            result,
            tuple(n for n in schema.columns.names if n in ties),
            budget(self.events),
            coded_types(pass_.physical, self.events.schema),
            self.add_counters,
            None if self.options.until is None else microseconds_of(self.options.until, self.schema),
        )
        return self._map_events(pass_, task, result)

    def shuffled(self, pass_: Pass, *, empty: bool = False) -> DataFrame:
        """The events as the tasks of a pass receive them; if `empty`, they are dropped there."""
        fields = [pa.field(f.name, f.type) for f in arrow_schema(self._usable_events(pass_))]
        if isinstance(pass_.distribution, Sliced):
            fields += [pa.field(SLICE, pa.int64()), pa.field(HALO, pa.int8())]
        return self._map_events(pass_, _dropped if empty else iter, pa.schema(fields))

    def _map_events(self, pass_: Pass, function: Callable[[Batches], Batches], result: pa.Schema) -> DataFrame:
        """Shuffle the usable events as the pass needs them, and map each partition by the function."""
        events = self._usable_events(pass_)
        count = partitions(self.events)
        match pass_.distribution:
            case Keyed(key):
                return map_batches(
                    events.repartition(count, *[normalized(n, self.columns) for n in key]), function, result
                )
            case Sliced(window, behind, ahead):
                slices = Slices(self.schema, window, slice_width(window), behind, ahead)
                packed = map_batches(events, Pack(slices, count), PACKED)
                packed = packed.repartitionById(count, F.col(TASK))
                return map_batches(packed, lambda batches: function(unpacked(batches)), result)
            case _:
                return map_batches(events.repartition(1), function, result)

    def _usable_events(self, pass_: Pass) -> DataFrame:
        """The events that the queries can use, with the columns that they need."""
        rows = self.events.where(reduce(Column.__and__, usable(pass_.physical, self.events.schema)))
        rows = rows.select(*[column(n) for n in self.needed_columns(list(pass_.plans.values()))])
        return self._with_type_codes(rows, coded_types(pass_.physical, self.events.schema))

    def _with_type_codes(self, frame: DataFrame, types: tuple[str, ...]) -> DataFrame:
        """The frame with a number in place of each type name, which makes the shuffle smaller."""
        if not types or self.options.type is None:
            return frame
        code = F.array_position(F.array(*[F.lit(t) for t in types]), column(self.options.type)).cast("smallint")
        return frame.select(*[code.alias(n) if n == self.options.type else column(n) for n in frame.columns])


def _dropped(batches: Batches) -> Batches:
    """Read all of them, and return none."""
    for _ in batches:
        pass
    return iter(())
