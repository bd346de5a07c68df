"""Streams without Spark: micro-batches, watermarks, and a state store that forgets what was not committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from secrets import token_hex
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues

from eventcube.engine.reuse.derive import plan_shared
from eventcube.language.syntax import Query
from eventcube.options import Options
from eventcube.plan.planned import plan_queries
from eventcube.runtime.shared_result import long_schema
from eventcube.schema import MATCH_ID
from eventcube.spark.bucket import BucketTask
from eventcube.spark.limit import tie_breakers
from eventcube.spark.match_ids import numbered
from eventcube.spark.origin import Origin, PassOrigin, texts_of
from eventcube.spark.pack import EVENTS, PackBuckets, Spread, unpacked
from eventcube.spark.processor import LIVE, BucketProcessor

NUMBER = 0
_BUCKET = "bucket"


def bucket_task(
    queries: Mapping[str, Query],
    columns: pa.Schema,
    options: Options,
    buckets: int = 1,
    *,
    keep_late: bool = False,
    match_id: bool = False,
    single: bool | None = None,
) -> BucketTask:
    """The task of queries in one pass; a single one has a result with its columns, unless `single` says otherwise."""
    schema = options.schema(columns)
    plans = plan_queries(queries, schema, options)
    if match_id:
        plans = {name: numbered(plan) for name, plan in plans.items()}
    plan = plan_shared(plans, options.concepts, options.sharing)
    ties = {name for p in plans.values() if p.physical.scan.by_count for name in tie_breakers(p.physical)}
    single = len(queries) == 1 if single is None else single
    if single:
        (result,) = {q.plan.sink.schema for q in plan.queries.values()}
    else:
        result = long_schema(schema)
        result = result.append(pa.field(MATCH_ID, pa.string())) if match_id else result
    names = tuple(name for name in columns.names if name in ties)
    late = pa.field("late", pa.struct(columns)) if keep_late else None
    if late is not None:
        result = pa.schema([*(field.with_nullable(True) for field in result), late])
    origin = Origin.of(options, (PassOrigin((), buckets, columns, texts_of(queries)),))
    return BucketTask(
        token_hex(8), plan, schema, single, result, names, origin, 0, options, late=late, match_id=match_id
    )


def packs_of(events: pa.Table) -> list[bytes]:
    """Events as a bucket receives them."""
    buckets = pa.array([0] * events.num_rows, pa.int32())
    batches = events.append_column(_BUCKET, buckets).to_batches(max_chunksize=3)
    pack = PackBuckets((Spread(_BUCKET, (NUMBER,), tuple(events.column_names)),), "other")
    return [data.as_py() for packed in pack(iter(batches)) for data in packed.column(1)]


class FakeState:
    """A value, or a map, of the state store."""

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}

    def get(self) -> Any:
        return self.values.get(())

    def update(self, value: Any) -> None:
        self.values[()] = value

    def getValue(self, key: Any) -> Any:
        return self.values.get(key)

    def updateValue(self, key: Any, value: Any) -> None:
        self.values[key] = value

    def removeKey(self, key: Any) -> None:
        del self.values[key]


class FakeHandle:
    """The state store of a bucket, and its timers."""

    def __init__(self) -> None:
        self.states: dict[str, FakeState] = {}
        self.timers: set[int] = set()

    def getValueState(self, name: str, schema: str) -> FakeState:
        return self.states.setdefault(name, FakeState())

    def getMapState(self, name: str, key: str, value: str) -> FakeState:
        return self.getValueState(name, value)

    def registerTimer(self, time: int) -> None:
        self.timers.add(time)

    def deleteTimer(self, time: int) -> None:
        self.timers.remove(time)


class FakeStream:
    """Micro-batches of one bucket, one after the other, as Spark runs them."""

    def __init__(self, task: BucketTask) -> None:
        self.task, self.committed = task, FakeHandle()
        # What the bucket did in each run that was committed, and has then.
        self.did: list[dict[str, Any]] = []
        # What lives in each worker between micro-batches.
        self.workers: list[dict[Any, Any]] = [{}, {}]

    @property
    def stored(self) -> int:
        """The bytes of the chunks."""
        return sum(len(data) for (data,) in self.committed.states["chunks"].values.values())

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return len(self.committed.states["chunks"].values)

    def run(
        self, events: pa.Table | None, watermark: int, *, commit: bool = True, worker: int = 0
    ) -> list[pa.RecordBatch]:
        """A micro-batch with a watermark in milliseconds, in a worker; without `commit`, it fails at its end.

        Without events, there is no input for any bucket.
        """
        LIVE.clear()
        LIVE.update(self.workers[worker])
        handle, did = deepcopy(self.committed), len(self.did)
        processor = BucketProcessor([self.task])
        processor.init(handle)
        times = TimerValues(0, watermark)
        found: list[pa.RecordBatch] = []
        if events is not None:
            rows = pd.DataFrame({"_1": NUMBER, "_2": packs_of(events)})
            found += self._batches(processor.handleInputRows((NUMBER,), iter([rows]), times))
        for time in sorted(handle.timers):
            if time <= watermark:
                info = ExpiredTimerInfo(time)
                found += self._batches(processor.handleExpiredTimer((NUMBER,), times, info))
                handle.deleteTimer(time)
        processor.close()
        self.workers[worker] = dict(LIVE)
        if commit:
            self.committed = handle
        else:
            del self.did[did:]
        return found

    def _batches(self, frames: Iterable[pd.DataFrame]) -> Iterator[pa.RecordBatch]:
        for frame in frames:
            (row,) = frame.to_dict("records")
            if row[EVENTS] is None:
                self.did.append(row)
            else:
                packed = pa.RecordBatch.from_arrays([pa.array([row[EVENTS]], pa.binary())], [EVENTS])
                yield from unpacked(iter([packed]))
