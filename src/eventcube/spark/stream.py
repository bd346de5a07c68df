"""`match` over a streaming DataFrame: builds a streaming DataFrame of the matches.

Spark's watermark is taken from all rows of the source, before any is left out. Nothing of it is in the input of the
stateful operator, or Spark would drop rows at the watermark, and packs of late rows, which our code counts.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import count

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from eventcube.engine.counts import Counts
from eventcube.engine.reuse.derive import plan_shared
from eventcube.errors import OptionError
from eventcube.language.syntax import Query
from eventcube.options import Options
from eventcube.plan.expressions import ColumnRef
from eventcube.plan.logical import LogicalQuery
from eventcube.plan.planned import Planned
from eventcube.plan.suspicions import missing_window
from eventcube.runtime.read_columns import read_times
from eventcube.runtime.shared_result import check_shareable
from eventcube.schema import INTERNAL, LATE_ROWS, MATCH_ID, EventSchema
from eventcube.spark.bucket import BucketTask
from eventcube.spark.bucket_names import group_names
from eventcube.spark.columns import Batches, column, map_batches, microseconds
from eventcube.spark.counters import AddCounters, bucket_counters
from eventcube.spark.groups_stream import changes_rows, for_update_only
from eventcube.spark.limit import tie_breakers
from eventcube.spark.match_ids import check_has_ids, numbered
from eventcube.spark.origin import Origin, PassOrigin, delay_of, texts_of
from eventcube.spark.pack import EVENTS, PACKED, TASK, PackBuckets, Spread, unpacked
from eventcube.spark.passes import Keyed, Pass, Whole, passes
from eventcube.spark.processor import BUCKET, DID, HAS, OUTPUT, BucketProcessor
from eventcube.spark.pushdown import usable
from eventcube.spark.request import Request, normalized
from eventcube.spark.settings import partitions
from eventcube.spark.state_store import use_state_store
from eventcube.spark.task import OUTPUT_ROWS
from eventcube.spark.watermarks import refuse_watermarks

_TIME = INTERNAL + "time"
_BUCKET = INTERNAL + "bucket"
_TICK = INTERNAL + "tick"
_OTHER = INTERNAL + "other"
_numbers = count(1)
# Before all events: no time that can be used is so early.
_NEVER = -(2**62)


class Stream(Request):
    """One call of `match` over a stream: from queries to the streaming DataFrame of their matches."""

    def __init__(self, events: DataFrame, queries: Mapping[str, Query], single: bool, options: Options) -> None:
        for name, query in queries.items():
            _check_can_stream(query, options, "the query" if single else f"query {name}")
        refuse_watermarks(events)
        if not single:
            check_shareable(queries)
        if options.until is not None:
            raise OptionError(
                "the events are a stream, whose watermark Spark moves", code="EC604", hint="leave until out"
            )
        super().__init__(events, queries, single, options)
        for name, plan in self.plans.items():
            _check_having(plan, "the query" if single else f"query {name}")
        self.add_counters: AddCounters | None = None

    def count(self, counters: Counts) -> None:
        """Count the work of the buckets, and the rows that reach them."""
        self.add_counters = bucket_counters(self.events, counters)

    def frame(self) -> DataFrame:
        """The results of all queries, and late rows if they are kept."""
        use_state_store(self.events.sparkSession, partitions(self.events))
        asked = self._passes()
        results = self._with_late(self._with_ids(self.result_schema(asked[0].queries[0])))
        # One read and one operator for all passes: it sees every change of them, and Spark commits one state.
        packed = map_batches(self._events(asked), PackBuckets(self._spreads(asked), _OTHER), PACKED)
        operator = self.operator(self._tasks(asked, results))
        packed = packed.groupBy(TASK).transformWithStateInPandas(operator, OUTPUT, self._mode, "eventTime")
        observed = packed.observe(_next_name(), *_measures())
        found = map_batches(observed.select(EVENTS).where(F.col(EVENTS).isNotNull()), _unpacked, results)
        return for_update_only(found) if self._mode == "update" else found

    def _passes(self) -> list[Pass]:
        """The queries by the columns that spread their events over buckets, in the order of these."""
        by_key: dict[tuple[str, ...], dict[str, Planned]] = {}
        for pass_ in passes(self.plans):
            by_key.setdefault(self._key(pass_), {}).update(pass_.plans)
        return [Pass(plans, Keyed(key) if key else Whole()) for key, plans in sorted(by_key.items())]

    def _spreads(self, asked: Sequence[Pass]) -> tuple[Spread, ...]:
        """How the events of each pass are packed."""
        return tuple(
            Spread(_bucket(place), group_names(self._buckets(pass_), place), tuple(self._columns(pass_)))
            for place, pass_ in enumerate(asked)
        )

    def _buckets(self, pass_: Pass) -> int:
        return partitions(self.events) if _spread(pass_) else 1

    def operator(self, tasks: Sequence[BucketTask]) -> StatefulProcessor:
        """What runs in the state groups."""
        return BucketProcessor(tasks, grouped=self._mode == "update")

    @property
    def _mode(self) -> str:
        """Groups change with each match, unless they end; matches do not."""
        return "update" if any(map(changes_rows, self.plans.values())) else "append"

    def _key(self, pass_: Pass) -> tuple[str, ...]:
        """The columns by which events are spread over the buckets: those of the groups, if there are groups."""
        key = _spread(pass_)
        for logical in pass_.queries:
            if logical.results.agg and logical.results.per is None:
                key = tuple(name for name in key if name in _grouped_by(logical))
        return key

    def _tasks(self, asked: Sequence[Pass], results: pa.Schema) -> list[BucketTask]:
        """What runs in the buckets of each pass."""
        name, origin = secrets.token_hex(8), self._origin(asked)
        return [
            self._task(pass_, name, origin, place, self.options.schema(origin.passes[place].columns), results)
            for place, pass_ in enumerate(asked)
        ]

    @property
    def origin(self) -> Origin:
        """What the state of the stream is of."""
        return self._origin(self._passes())

    def _origin(self, asked: Sequence[Pass]) -> Origin:
        texts = texts_of({name: plan.logical.query for name, plan in self.plans.items()})
        passes = (
            PassOrigin(
                _spread(pass_),
                self._buckets(pass_),
                pa.schema([self.columns.field(name) for name in self._columns(pass_)]),
                {name: texts[name] for name in pass_.plans},
            )
            for pass_ in asked
        )
        return Origin.of(self.options, tuple(passes))

    def _task(
        self, pass_: Pass, name: str, origin: Origin, place: int, schema: EventSchema, results: pa.Schema
    ) -> BucketTask:
        plans = self.plans_over(schema, pass_)
        if self.options.match_id:
            plans = {name: numbered(plan) for name, plan in plans.items()}
        ties = {name for p in plans.values() if p.physical.scan.by_count for name in tie_breakers(p.physical)}
        return BucketTask(
            name,
            plan_shared(plans, self.options.concepts, self.options.sharing),
            schema,
            self.single,
            results,
            tuple(name for name in schema.columns.names if name in ties),
            origin,
            place,
            self.options,
            self.add_counters,
            results.field(LATE_ROWS) if self.options.keep_late else None,
            _OTHER if place else None,
            self.options.match_id,
        )

    def _columns(self, pass_: Pass) -> list[str]:
        """The columns of a pass: those of all queries if late rows are kept, which have the same in each."""
        return self.needed_columns(list((self.plans if self.options.keep_late else pass_.plans).values()))

    def _with_ids(self, results: pa.Schema) -> pa.Schema:
        """The columns of the results, with one for the ids of matches if they are asked for."""
        if not self.options.match_id:
            return results
        check_has_ids(self.plans, results)
        return results.append(pa.field(MATCH_ID, pa.string(), nullable=False))

    def _with_late(self, results: pa.Schema) -> pa.Schema:
        """The columns of the results, with one for late rows if they are kept."""
        if not self.options.keep_late:
            return results
        if LATE_ROWS in results.names:
            raise OptionError(
                f"the result has a column {LATE_ROWS!r} already, which keep_late needs for late rows",
                code="EC496",
                hint=f"rename it, as in RETURN a.{LATE_ROWS} AS is_late",
            )
        late = pa.struct([self.columns.field(name) for name in self.needed_columns(list(self.plans.values()))])
        return pa.schema([*(field.with_nullable(True) for field in results), pa.field(LATE_ROWS, late)])

    def _events(self, asked: Sequence[Pass]) -> DataFrame:
        """The events that the queries can use, and the rows that cannot be used, to be counted.

        For each pass they have a column with the number of their bucket, which is null if the pass does not take them.
        """
        needed = self.needed_columns(list(self.plans.values()))
        rows = self.events.select(*map(column, needed), self._time().alias(_TIME))
        is_event = F.lit(True)
        if self.options.idle_timeout is not None:
            rows = rows.unionByName(self._ticks(self.options.idle_timeout), allowMissingColumns=True)
            is_event = column(_TICK).isNull()
        rows = rows.withWatermark(_TIME, f"{delay_of(self.options.lateness)} milliseconds")
        taken = [self._taken(pass_) & is_event for pass_ in asked]
        # This uses the time, so Spark does not move the filter below the watermark, which all rows must reach.
        rows = rows.where(reduce(Column.__or__, taken) | (F.col(_TIME) < F.timestamp_micros(F.lit(_NEVER))))
        buckets = [self._bucket(pass_) for pass_ in asked]
        if len(asked) > 1:
            buckets = [F.when(own, bucket) for own, bucket in zip(taken, buckets, strict=True)]
        return rows.select(*map(column, needed), *(number.alias(_bucket(i)) for i, number in enumerate(buckets)))

    def _bucket(self, pass_: Pass) -> Column:
        """The number of the bucket of an event."""
        buckets = self._buckets(pass_)
        key = [normalized(name, self.columns) for name in _spread(pass_)]
        return F.pmod(F.hash(*key), F.lit(buckets)) if buckets > 1 else F.lit(0)

    def _taken(self, pass_: Pass) -> Column:
        """Which rows a pass takes: those that its queries can use, and those without a time or a type."""
        rows = reduce(Column.__and__, usable(pass_.physical, self.events.schema)[1:], F.lit(True))
        for name in (self.options.time, self.options.type):
            if name is not None:
                rows |= column(name).isNull()
        return rows

    def _ticks(self, idle: int) -> DataFrame:
        """Rows of a clock, one each second, whose time is so far behind; they only move the watermark."""
        clock = self.events.sparkSession.readStream.format("rate").option("rowsPerSecond", 1).load()
        late = F.timestamp_micros(F.unix_micros(F.col("timestamp")) - F.lit(idle))
        return clock.select(late.alias(_TIME), F.lit(True).alias(_TICK))

    def _time(self) -> Column:
        """The time as a timestamp, null where it cannot be read."""
        micros = microseconds(self.events, self.schema.time, self.schema.time_unit)
        if micros is not None:
            return F.timestamp_micros(micros)
        # Spark's types ask for the kind of function, which it warns of: the hints of the function say it.
        read: Column = arrow_udf(_timestamps(self.schema), "timestamp")(column(self.schema.time))  # type: ignore[call-overload]
        return read


def _check_can_stream(query: Query, options: Options, which: str) -> None:
    """Refuse a query that a stream cannot answer."""
    if any(missing_window(query)):
        raise OptionError(
            f"{which} has no WITHIN, so over a stream it would have to keep every event",
            code="EC490",
            hint="add a window, such as WITHIN 10 minutes",
        )
    if query.limit is not None or options.limit is not None:
        raise OptionError(
            f"{which} has a LIMIT, and which matches are the earliest is only known at the end, which a stream has not",
            code="EC491",
            hint="leave LIMIT out",
        )


def _check_having(plan: Planned, which: str) -> None:
    """Refuse HAVING where groups have no end."""
    if plan.logical.results.having and changes_rows(plan):
        raise OptionError(
            f"{which} has HAVING, but a stream gives a group again whenever it has changed, and could not take back "
            "one that HAVING no longer holds for",
            code="EC492",
            hint="leave HAVING out, and filter what was written last for each group; "
            "or have groups that end: GROUPBY b.ts EVERY 1 hour, with the time column of an event",
        )


def _bucket(place: int) -> str:
    """The column with the buckets of the pass at a place."""
    return f"{_BUCKET}{place}"


def _spread(pass_: Pass) -> tuple[str, ...]:
    """The columns by which the events of a pass are spread over buckets; none if they all are in one."""
    return pass_.distribution.key if isinstance(pass_.distribution, Keyed) else ()


def _grouped_by(logical: LogicalQuery) -> Iterator[str]:
    """The columns whose values are the same in all matches of a group."""
    for item in logical.results.group_by:
        value = item.value.expression
        if isinstance(value, ColumnRef) and not logical.slots[value.slot].alternatives:
            yield value.column


def _next_name() -> str:
    """A name for what is observed of a stream: one query can have several of them."""
    number = next(_numbers)
    return "eventcube" if number == 1 else f"eventcube-{number}"


def _measures() -> list[Column]:
    """What is observed: what all buckets did in a micro-batch, and what each of them has, and how long it matched."""
    has = F.struct(BUCKET, "match_us", *HAS)
    return [
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in DID),
        F.collect_list(F.when(F.col(BUCKET).isNotNull(), has)).alias("buckets"),
    ]


def _timestamps(schema: EventSchema) -> Callable[[pa.Array], pa.Array]:
    """A function that reads times as the engine does."""

    def timestamps(times: pa.Array) -> pa.Array:
        ts, valid = read_times(pa.chunked_array([times]), schema)
        return pa.array(ts, mask=None if valid is None else ~valid).cast(pa.timestamp("us", "UTC"))

    return timestamps


def _unpacked(batches: Batches) -> Batches:
    for batch in unpacked(batches):
        for at in range(0, batch.num_rows, OUTPUT_ROWS):
            yield batch.slice(at, OUTPUT_ROWS)
