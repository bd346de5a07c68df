"""`match` over a streaming DataFrame: builds a streaming DataFrame of the matches.

Spark's watermark is taken from all rows of the source, before any is left out. Nothing of it is in the input of the
stateful operator, or Spark would drop rows at the watermark, and packs of late rows, which our code counts.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.functions import arrow_udf

from eventcube.engine.counts import Counts
from eventcube.engine.reuse.derive import plan_shared
from eventcube.errors import OptionError
from eventcube.language.syntax import Query
from eventcube.options import Options
from eventcube.plan.suspicions import missing_window
from eventcube.runtime.queries import fingerprint_of
from eventcube.runtime.read_columns import read_times
from eventcube.schema import INTERNAL, EventSchema
from eventcube.spark.bucket import BucketTask
from eventcube.spark.columns import Batches, column, map_batches, microseconds
from eventcube.spark.counters import AddCounters, bucket_counters
from eventcube.spark.limit import tie_breakers
from eventcube.spark.pack import PACKED, TASK, PackBuckets, unpacked
from eventcube.spark.passes import Keyed, Pass, passes
from eventcube.spark.processor import MATCHES, BucketProcessor
from eventcube.spark.pushdown import usable
from eventcube.spark.request import Request, normalized
from eventcube.spark.settings import partitions
from eventcube.spark.state_store import use_state_store
from eventcube.spark.task import OUTPUT_ROWS

_TIME = INTERNAL + "time"
_BUCKET = INTERNAL + "bucket"
# Before all events: no time that can be used is so early.
_NEVER = -(2**62)


class Stream(Request):
    """One call of `match` over a stream: from queries to the streaming DataFrame of their matches."""

    def __init__(self, events: DataFrame, queries: Mapping[str, Query], single: bool, options: Options) -> None:
        for name, query in queries.items():
            _check_can_stream(query, options, "the query" if single else f"query {name}")
        super().__init__(events, queries, single, options)
        self.add_counters: AddCounters | None = None

    def count(self, counters: Counts) -> None:
        """Count the work of the buckets, and the rows that reach them."""
        self.add_counters = bucket_counters(self.events, counters)

    def frame(self) -> DataFrame:
        """The matches of all queries."""
        use_state_store(self.events.sparkSession, partitions(self.events))
        return reduce(DataFrame.union, [self._matches(pass_) for pass_ in passes(self.plans)])

    def _matches(self, pass_: Pass) -> DataFrame:
        """The matches of a pass: its events, packed by bucket; the buckets; their matches, unpacked."""
        key = pass_.distribution.key if isinstance(pass_.distribution, Keyed) else ()
        buckets = partitions(self.events) if key else 1
        task = self._task(pass_, buckets)
        packed = map_batches(self._events(pass_, key, buckets), PackBuckets(_BUCKET, group_names(buckets)), PACKED)
        matches = packed.groupBy(TASK).transformWithStateInPandas(BucketProcessor(task), MATCHES, "append", "eventTime")
        return map_batches(matches, _unpacked, task.result)

    def _task(self, pass_: Pass, buckets: int) -> BucketTask:
        columns = self.needed_columns(list(pass_.plans.values()))
        schema = self.options.schema(pa.schema([self.columns.field(name) for name in columns]))
        plans = self.plans_over(schema, pass_)
        ties = {name for p in plans.values() if p.physical.scan.by_count for name in tie_breakers(p.physical)}
        queries = {name: plan.logical.query for name, plan in plans.items()}
        return BucketTask(
            secrets.token_hex(8),
            plan_shared(plans, self.options.concepts, self.options.sharing),
            schema,
            self.single,
            self.result_schema(pass_.queries[0]),
            tuple(name for name in columns if name in ties),
            buckets,
            # What the watermark is does not change what a state means.
            fingerprint_of(queries, replace(self.options, lateness=0)),
            self.add_counters,
        )

    def _events(self, pass_: Pass, key: tuple[str, ...], buckets: int) -> DataFrame:
        """The events that the queries can use, with their bucket, and the rows that cannot be used, to be counted."""
        rows = self.events.withColumn(_TIME, self._time()).withWatermark(_TIME, _delay(self.options.lateness))
        filters = reduce(Column.__and__, usable(pass_.physical, self.events.schema)[1:], F.lit(True))
        for name in (self.options.time, self.options.type):
            if name is not None:
                filters |= column(name).isNull()
        # This uses the time, so Spark does not move the filter below the watermark, which all rows must reach.
        filters |= F.col(_TIME) < F.timestamp_micros(F.lit(_NEVER))
        if buckets == 1:
            bucket = F.lit(0)
        else:
            bucket = F.pmod(F.hash(*[normalized(name, self.columns) for name in key]), F.lit(buckets))
        needed = self.needed_columns(list(pass_.plans.values()))
        return rows.where(filters).select(*map(column, needed), bucket.alias(_BUCKET))

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
    if query.agg:
        raise OptionError(
            f"{which} has AGG, which is not there for streams yet",
            code="EC492",
            hint="return the matches, and group them with Spark: matches.groupBy(…)",
        )


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


def group_names(buckets: int) -> tuple[int, ...]:
    """Names of buckets that Spark's hash spreads evenly over as many partitions."""
    names: dict[int, int] = {}
    number = 0
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
