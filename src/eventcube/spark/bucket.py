"""A bucket of a stream: the events of some keys, the running engine over them, and its state as chunks.

Nothing here needs Spark, so it can be tested without it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventcube.engine.saved import DamagedStateError, Saved
from eventcube.engine.state import NOTHING
from eventcube.errors import OptionError
from eventcube.options import Options
from eventcube.plan.workload import WorkloadPlan
from eventcube.runtime.restore import added_in
from eventcube.runtime.shared_result import long_form, long_schema
from eventcube.runtime.snapshot import damaged, read, write
from eventcube.runtime.workload import Workload
from eventcube.schema import LATE, MATCH_ID, REASON, EventSchema
from eventcube.spark.chunks import Chunk, place_of_next
from eventcube.spark.counters import AddCounters
from eventcube.spark.match_ids import take_ids
from eventcube.spark.origin import Origin
from eventcube.spark.replan import plan_of

# The tables of a state with rows that chunks are measured by.
_ROWS = ("ingest/held", "events/rows", "/groups")


@dataclass(frozen=True, slots=True)
class BucketTask:
    """What runs in the buckets of a pass of a stream, as data. `schema` has the columns of the events; `single`: there
    is one query, and the result has its columns.

    `name` tells the live copies of one stream from those of others; `ties` are the columns that order events of equal
    rank, where their order matters; `origin` is what the states of the stream are of, and `place` that of the pass in
    it. `options` are those that the queries were planned with. `late` is the field of the result with late rows, if
    they are kept, and `other` the column of the events that tells which of them another pass gets, too, and counts.
    `match_id`: the result has a column with what identifies a match.
    """

    name: str
    plan: WorkloadPlan
    schema: EventSchema
    single: bool
    result: pa.Schema
    ties: tuple[str, ...]
    origin: Origin
    place: int
    options: Options
    add_counters: AddCounters | None = None
    late: pa.Field | None = None
    other: str | None = None
    match_id: bool = False

    @property
    def texts(self) -> Mapping[str, str]:
        """The texts of the queries."""
        return self.origin.passes[self.place].queries


class Bucket:
    """The engine of a bucket, and the chunks that its state was saved in; it goes on from saved ones.

    `before` is what these are of. If its queries are others, those that stay keep what they have; those that come see
    the events from `now` on, a time (microseconds).
    """

    def __init__(
        self,
        task: BucketTask,
        number: int,
        chunks: tuple[Chunk, ...] = (),
        saved: Iterable[bytes] = (),
        before: Origin | None = None,
        now: int = 0,
    ) -> None:
        self.task, self.number, self.chunks = task, number, chunks
        before = before or task.origin
        texts = before.passes[task.place].queries
        try:
            self.workload = self._restored(before, [read(data)[1:] for data in saved])
        except DamagedStateError as error:
            raise damaged(str(error)) from None
        if [*texts.items()] != [*task.texts.items()]:
            added = {name: time for name, time in self.workload.added.items() if name in task.texts}
            fresh = [name for name in task.texts if name not in texts]
            self.workload.turn_to(plan_of(task, task.texts, added | dict.fromkeys(fresh, now)))
        self._counted = self.workload.counters

    def _restored(self, before: Origin, states: list[tuple[dict[str, Any], dict[str, Any]]]) -> Workload:
        """The workload that saved it, at the point where it was saved."""
        task, identity = self.task, before.identity(self.task.place)
        texts = before.passes[task.place].queries
        added = added_in(states[0][0], texts) if states else {}
        plan = plan_of(task, texts, added)
        workload = Workload(plan, task.schema, ties=task.ties, by_content=task.match_id)
        for chunk, (header, tables) in zip(self.chunks, states, strict=True):
            if header.get("of") != identity:
                raise DamagedStateError("one of its chunks is of another stream")
            saved = Saved(header.get("workload", {}), tables)
            try:
                workload.apply(saved)
            except OptionError as error:
                raise DamagedStateError(error.message) from None
            saved.check_all_taken()
            if workload.version != chunk.version:
                raise DamagedStateError("one of its chunks is not the one that its list names")
        return workload

    def run(self, packs: Iterable[bytes], watermark: int) -> Iterator[pa.RecordBatch]:
        """Advance the watermark (microseconds), and take events; gives the results that are final, and late rows.

        The watermark is first: that of the micro-batch says which of its events are late. What is not late is after
        it, so it waits for the next.
        """
        if self.workload.can_settle:
            self.workload.turn_to(plan_of(self.task, self.task.texts, self.workload.added))
        # Spark's watermark begins at 0, and is then no watermark yet: events before 1970 are not late.
        if watermark > 0:
            for name, batch in self.workload.advance(watermark):
                yield self._formatted(name, batch)
            for name, query in self.workload.engine.queries.items():
                if query.sink.is_open and not query.sink.closes and (batch := query.sink.updates()).num_rows:
                    yield self._formatted(name, batch)
        events = [table for pack in packs if (table := pa.ipc.open_stream(pack).read_all()).num_rows]
        if events:
            yield from self._take(pa.concat_tables(events))

    def _take(self, events: pa.Table) -> Iterator[pa.RecordBatch]:
        """Hold events, except for late ones and unusable ones, which are counted; gives the late ones."""
        if self.task.other is None:
            self.workload.hold(events)
        else:
            elsewhere, events = events.column(self.task.other), events.drop_columns([self.task.other])
            counters = replace(self.workload.ingest.counters)
            self.workload.hold(events.filter(elsewhere))
            self.workload.ingest.drain()
            self.workload.ingest.counters = counters
            self.workload.hold(events.filter(pc.invert(elsewhere)))
        skipped = self.workload.ingest.drain()
        if self.task.late is not None:
            late = skipped.filter(pc.equal(skipped.column(REASON), LATE)).combine_chunks()
            for batch in late.select([field.name for field in self.task.late.type]).to_batches():
                yield self._late(batch, self.task.late)

    def _formatted(self, name: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of a query's result with the columns of the stream's result."""
        ids = None
        if self.task.match_id:
            batch, ids = take_ids(batch, name, self.number)
        rows = batch if self.task.single else long_form(name, batch, long_schema(self.task.schema))
        if ids is not None:
            rows = rows.append_column(MATCH_ID, ids)
        if self.task.late is not None:
            rows = rows.append_column(self.task.late, pa.nulls(rows.num_rows, self.task.late.type))
        return rows if rows.schema.equals(self.task.result) else rows.cast(self.task.result)

    def _late(self, rows: pa.RecordBatch, column: pa.Field) -> pa.RecordBatch:
        """Late rows, in a column of the stream's result."""
        nulls = [pa.nulls(rows.num_rows, field.type) for field in self.task.result][:-1]
        late = pa.StructArray.from_arrays(rows.columns, fields=list(column.type))
        return pa.RecordBatch.from_arrays([*nulls, late], schema=self.task.result)

    def take_counters(self) -> dict[str, int]:
        """What was counted since the last call; the size of views is that of now."""
        counted, self._counted = {**self._counted, "view_bytes": 0}, self.workload.counters
        return {name: n - counted[name] for name, n in self._counted.items()}

    @property
    def retained(self) -> int:
        """How many events wait for the watermark, or can be in a match to come."""
        return self.workload.ingest.held + self.workload.engine.state.size

    @property
    def sizes(self) -> dict[str, int]:
        """The rows that wait for the watermark, the rows that matches to come can use, and the bytes of both."""
        return {
            "held": self.workload.ingest.held,
            "retained": self.workload.engine.state.size,
            "view_bytes": self.workload.counters["view_bytes"],
            "state_bytes": sum(chunk.size for chunk in self.chunks),
        }

    @property
    def awaits_watermark(self) -> bool:
        """Whether the watermark alone can complete a match, let an event go, or make a group final."""
        by_time = any(not query.plan.scan.by_count for query in self.workload.plan.queries.values())
        sinks = [query.sink for query in self.workload.engine.queries.values()]
        waits = any(sink.closes and sink.rows[0] for sink in sinks)
        return self.workload.ingest.held > 0 or (by_time and self.retained > 0) or waits

    def save(self) -> tuple[Chunk, bytes]:
        """What changed since the last chunks that stay, as a new chunk, which is put behind them."""
        before, now = self.chunks[-1].version if self.chunks else NOTHING, self.workload.version
        groups = [query.sink.rows for query in self.workload.engine.queries.values()]
        retained = self.retained + sum(rows for rows, _ in groups)
        fresh = now.arrived - before.arrived + now.sequence - before.sequence + sum(rows for _, rows in groups)
        stay, tier = place_of_next(self.chunks, min(fresh, retained), retained)
        if self.workload.had_other_queries(before):
            stay, tier = (), 0
        saved = self.workload.changes(stay[-1].version if stay else NOTHING)
        identity = self.task.origin.identity(self.task.place)
        data = write({"of": identity, "workload": saved.values}, saved.tables)
        rows = sum(table.num_rows for name, table in saved.tables.items() if name.endswith(_ROWS))
        chunk = Chunk(secrets.randbits(62), tier, rows, len(data), now)
        self.chunks = (*stay, chunk)
        return chunk, data
