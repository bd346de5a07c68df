"""A bucket of a stream: the events of some keys, the running engine over them, and its state as chunks.

Nothing here needs Spark, so it can be tested without it.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventcube.engine.saved import DamagedStateError, Saved
from eventcube.engine.state import NOTHING
from eventcube.errors import OptionError
from eventcube.plan.workload import WorkloadPlan
from eventcube.runtime.shared_result import long_form, long_schema
from eventcube.runtime.snapshot import damaged, read, short_identity, write
from eventcube.runtime.state_difference import other_columns, other_queries
from eventcube.runtime.workload import Workload
from eventcube.schema import LATE, MATCH_ID, REASON, EventSchema
from eventcube.spark.chunks import Chunk, place_of_next
from eventcube.spark.counters import AddCounters
from eventcube.spark.match_ids import take_ids
from eventcube.spark.settings import PARTITIONS

_FORMAT = 1
# The tables of a state with rows that chunks are measured by.
_ROWS = ("ingest/held", "events/rows", "/groups")
_HINT = "start it with a new checkpoint, or with the queries, settings and columns of the old one"


@dataclass(frozen=True, slots=True)
class BucketTask:
    """What runs in the buckets of a stream, as data. `schema` has the columns of the events; `single`: there is one
    query, and the result has its columns.

    `name` tells the live copies of one stream from those of others; `ties` are the columns that order events of equal
    rank, where their order matters; `buckets` is their number; `fingerprint` has the queries and settings. `late` is
    the field of the result with late rows, if they are kept, and `other` the column of the events that tells which of
    them another pass gets, too, and counts. `match_id`: the result has a column with what identifies a match.
    """

    name: str
    plan: WorkloadPlan
    schema: EventSchema
    single: bool
    result: pa.Schema
    ties: tuple[str, ...]
    buckets: int
    fingerprint: str
    add_counters: AddCounters | None = None
    late: pa.Field | None = None
    other: str | None = None
    match_id: bool = False

    @property
    def identity(self) -> str:
        """A hash of what must be the same to go on from a state."""
        return short_identity(self.fingerprint, self.schema.columns)

    def origin(self) -> bytes:
        """What a state is of, stored beside it."""
        columns = base64.b64encode(self.schema.columns.serialize().to_pybytes()).decode()
        stored = {"format": _FORMAT, "buckets": self.buckets, "fingerprint": self.fingerprint, "columns": columns}
        return json.dumps(stored).encode()

    def check_origin(self, data: bytes) -> None:
        """Refuse a state of another number of buckets, of other queries or of other columns."""
        origin: dict[str, Any] = json.loads(data)
        if origin["format"] != _FORMAT:
            raise OptionError(
                f"the checkpoint has format {origin['format']}, this eventcube reads format {_FORMAT}", code="EC411"
            )
        if origin["buckets"] != self.buckets:
            raise OptionError(
                f"the checkpoint has its state in {origin['buckets']} buckets, and now there are {self.buckets}",
                code="EC494",
                hint=f'spark.conf.set("{PARTITIONS}", "{origin["buckets"]}") before ec.match',
            )
        if origin["fingerprint"] != self.fingerprint:
            difference = other_queries(origin["fingerprint"], self.fingerprint)
            raise OptionError(f"the checkpoint is of other queries or settings{difference}", code="EC412", hint=_HINT)
        columns = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(origin["columns"])))
        if not columns.equals(self.schema.columns):
            difference = other_columns(columns, self.schema.columns)
            raise OptionError(f"the checkpoint is of events with other columns{difference}", code="EC412", hint=_HINT)


class Bucket:
    """The engine of a bucket, and the chunks that its state was saved in; it goes on from saved ones."""

    def __init__(
        self, task: BucketTask, number: int, chunks: tuple[Chunk, ...] = (), saved: Iterable[bytes] = ()
    ) -> None:
        self.task, self.number, self.chunks = task, number, chunks
        self.workload = Workload(task.plan, task.schema, ties=task.ties, by_content=task.match_id)
        for data in saved:
            self._apply(data)
        self._counted = self.workload.counters

    def _apply(self, data: bytes) -> None:
        _, header, tables = read(data)
        if header.get("of") != self.task.identity:
            raise damaged("one of its chunks is of another stream")
        try:
            saved = Saved(header["workload"], tables)
            self.workload.apply(saved)
            saved.check_all_taken()
        except DamagedStateError as error:
            raise damaged(str(error)) from None

    def run(self, packs: Iterable[bytes], watermark: int) -> Iterator[pa.RecordBatch]:
        """Advance the watermark (microseconds), and take events; gives the results that are final, and late rows.

        The watermark is first: that of the micro-batch says which of its events are late. What is not late is after
        it, so it waits for the next.
        """
        # Spark's watermark begins at 0, and is then no watermark yet: events before 1970 are not late.
        if watermark > 0:
            for name, batch in self.workload.advance(watermark):
                yield self._formatted(name, batch)
            for name, query in self.workload.engine.queries.items():
                if query.sink.is_open and (batch := query.sink.updates()).num_rows:
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
        """Whether the watermark alone can complete a match, or let an event go."""
        by_time = any(not query.plan.scan.by_count for query in self.workload.plan.queries.values())
        return self.workload.ingest.held > 0 or (by_time and self.retained > 0)

    def save(self) -> tuple[Chunk, bytes]:
        """What changed since the last chunks that stay, as a new chunk, which is put behind them."""
        before, now = self.chunks[-1].version if self.chunks else NOTHING, self.workload.version
        groups = [query.sink.rows for query in self.workload.engine.queries.values()]
        retained = self.retained + sum(rows for rows, _ in groups)
        fresh = now.arrived - before.arrived + now.sequence - before.sequence + sum(rows for _, rows in groups)
        stay, tier = place_of_next(self.chunks, min(fresh, retained), retained)
        saved = self.workload.changes(stay[-1].version if stay else NOTHING)
        data = write({"of": self.task.identity, "workload": saved.values}, saved.tables)
        rows = sum(table.num_rows for name, table in saved.tables.items() if name.endswith(_ROWS))
        chunk = Chunk(secrets.randbits(62), tier, rows, len(data), now)
        self.chunks = (*stay, chunk)
        return chunk, data
