"""`match` over a streaming DataFrame: builds a streaming DataFrame of the matches.

Spark's watermark is taken from all rows of the source, before any is left out. Nothing of it is in the input of the
stateful operator, or Spark would drop rows at the watermark, and packs of late rows, which our code counts.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
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
from eventcube.plan.suspicions import missing_window
from eventcube.runtime.queries import fingerprint_of
from eventcube.runtime.read_columns import read_times
from eventcube.runtime.shared_result import check_shareable
from eventcube.schema import INTERNAL, LATE_ROWS, MATCH_ID, EventSchema
from eventcube.spark.bucket import BucketTask
from eventcube.spark.columns import Batches, column, map_batches, microseconds
from eventcube.spark.counters import AddCounters, bucket_counters
from eventcube.spark.groups_stream import for_update_only
from eventcube.spark.limit import tie_breakers
from eventcube.spark.match_ids import check_has_ids, numbered
from eventcube.spark.pack import EVENTS, PACKED, TASK, PackBuckets, unpacked
from eventcube.spark.passes import Keyed, Pass, passes
from eventcube.spark.processor import BUCKET, DID, HAS, OUTPUT, BucketProcessor
from eventcube.spark.pushdown import usable
from eventcube.spark.request import Request, normalized
from eventcube.spark.settings import partitions
from eventcube.spark.state_store import use_state_store
from eventcube.spark.task import OUTPUT_ROWS

_TIME = INTERNAL + "time"
_BUCKET = INTERNAL + "bucket"
_TICK = INTERNAL + "tick"
_OTHER = INTERNAL + "other"
_numbers = count(1)
# The names of the buckets of a pass are this far from those of the one before.
_PASS = 1_000_000
# Before all events: no time that can be used is so early.
_NEVER = -(2**62)


class Stream(Request):
    """One call of `match` over a stream: from queries to the streaming DataFrame of their matches."""

    def __init__(self, events: DataFrame, queries: Mapping[str, Query], single: bool, options: Options) -> None:
        for name, query in queries.items():
            _check_can_stream(query, options, "the query" if single else f"query {name}")
        if not single:
            check_shareable(queries)
        if options.until is not None:
            raise OptionError(
                "the events are a stream, whose watermark Spark moves", code="EC604", hint="leave until out"
            )
        super().__init__(events, queries, single, options)
        self.add_counters: AddCounters | None = None

    def count(self, counters: Counts) -> None:
        """Count the work of the buckets, and the rows that reach them."""
        self.add_counters = bucket_counters(self.events, counters)

    def frame(self) -> DataFrame:
        """The results of all queries, and late rows if they are kept."""
        use_state_store(self.events.sparkSession, partitions(self.events))
        asked = passes(self.plans)
        results = self._with_late(self._with_ids(self.result_schema(asked[0].queries[0])))
        packed = reduce(DataFrame.union, [self._run(pass_, asked[:i], results) for i, pass_ in enumerate(asked)])
        observed = packed.observe(_next_name(), *_measures())
        found = map_batches(observed.select(EVENTS).where(F.col(EVENTS).isNotNull()), _unpacked, results)
        return for_update_only(found) if self._mode == "update" else found

    def _run(self, pass_: Pass, earlier: Sequence[Pass], results: pa.Schema) -> DataFrame:
        """The packed results of a pass: its events, packed by bucket, and then the buckets."""
        key = self._key(pass_)
        buckets = partitions(self.events) if key else 1
        task = self._task(pass_, buckets, results, _OTHER if earlier else None)
        events = self._events(pass_, key, buckets, earlier)
        names = group_names(buckets, len(earlier) * _PASS)
        packed = map_batches(events, PackBuckets(_BUCKET, names), PACKED)
        operator = self.operator(task)
        return packed.groupBy(TASK).transformWithStateInPandas(operator, OUTPUT, self._mode, "eventTime")

    def operator(self, task: BucketTask) -> StatefulProcessor:
        """What runs in the state groups."""
        return BucketProcessor(task)

    @property
    def _mode(self) -> str:
        """Groups change with each match; matches do not."""
        return "update" if any(plan.logical.query.agg for plan in self.plans.values()) else "append"

    def _key(self, pass_: Pass) -> tuple[str, ...]:
        """The columns by which events are spread over the buckets: those of the groups, if there are groups."""
        key = pass_.distribution.key if isinstance(pass_.distribution, Keyed) else ()
        for logical in pass_.queries:
            if logical.query.agg:
                key = tuple(name for name in key if name in _grouped_by(logical))
        return key

    def _task(self, pass_: Pass, buckets: int, results: pa.Schema, other: str | None) -> BucketTask:
        columns = self._columns(pass_)
        schema = self.options.schema(pa.schema([self.columns.field(name) for name in columns]))
        plans = self.plans_over(schema, pass_)
        if self.options.match_id:
            plans = {name: numbered(plan) for name, plan in plans.items()}
        ties = {name for p in plans.values() if p.physical.scan.by_count for name in tie_breakers(p.physical)}
        queries = {name: plan.logical.query for name, plan in self.plans.items()}
        return BucketTask(
            secrets.token_hex(8),
            plan_shared(plans, self.options.concepts, self.options.sharing),
            schema,
            self.single,
            results,
            tuple(name for name in columns if name in ties),
            buckets,
            # What the watermark is does not change what a state means.
            fingerprint_of(queries, replace(self.options, lateness=0)),
            self.add_counters,
            results.field(LATE_ROWS) if self.options.keep_late else None,
            other,
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

    def _events(self, pass_: Pass, key: tuple[str, ...], buckets: int, earlier: Sequence[Pass]) -> DataFrame:
        """The events that the queries can use, with their bucket, and the rows that cannot be used, to be counted.

        With `earlier` passes a column tells which events those get, too.
        """
        rows = self.events.withColumn(_TIME, self._time())
        is_event = F.lit(True)
        if self.options.idle_timeout is not None:
            needed = self.needed_columns(list(self.plans.values()))
            rows = rows.select(*map(column, needed), _TIME)
            rows = rows.unionByName(self._ticks(self.options.idle_timeout), allowMissingColumns=True)
            is_event = column(_TICK).isNull()
        rows = rows.withWatermark(_TIME, _delay(self.options.lateness))
        # This uses the time, so Spark does not move the filter below the watermark, which all rows must reach.
        taken = self._taken(pass_) & is_event | (F.col(_TIME) < F.timestamp_micros(F.lit(_NEVER)))
        if buckets == 1:
            bucket = F.lit(0)
        else:
            bucket = F.pmod(F.hash(*[normalized(name, self.columns) for name in key]), F.lit(buckets))
        chosen = [*map(column, self._columns(pass_)), bucket.alias(_BUCKET)]
        if earlier:
            by_others = reduce(Column.__or__, map(self._taken, earlier))
            chosen.append(F.coalesce(by_others, F.lit(False)).alias(_OTHER))
        return rows.where(taken).select(*chosen)

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
    if query.having:
        raise OptionError(
            f"{which} has HAVING, but a stream gives a group again whenever it has changed, and could not take back "
            "one that HAVING no longer holds for",
            code="EC492",
            hint="leave HAVING out, and filter what was written last for each group",
        )


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


def _delay(lateness: int) -> str:
    """The lateness as Spark takes it, in milliseconds, rounded up."""
    return f"{-(-lateness // 1000)} milliseconds"


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


def group_names(buckets: int, number: int = 0) -> tuple[int, ...]:
    """Names of buckets, from a number on, that Spark's hash spreads evenly over as many partitions."""
    names: dict[int, int] = {}
    while len(names) < buckets:
        names.setdefault(spark_hash(number) % buckets, number)
        number += 1
    return tuple(names[partition] for partition in range(buckets))


def spark_hash(number: int) -> int:
    """Spark's hash of an integer of 32 bits (Murmur3, seed 42)."""
    mask = 0xFFFFFFFF
    mixed = number * 0xCC9E2D51 & mask
    mixed = (mixed << 15 | mixed >> 17) & mask
    state = 42 ^ (mixed * 0x1B873593 & mask)
    state = (state << 13 | state >> 19) & mask
    state = (state * 5 + 0xE6546B64 & mask) ^ 4
    state = (state ^ state >> 16) * 0x85EBCA6B & mask
    state = (state ^ state >> 13) * 0xC2B2AE35 & mask
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state
