"""Planned queries running over one stream of events, in this process or in a Spark task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from typing import Any

import pyarrow as pa

from eventcube.engine.counters import Counters
from eventcube.engine.engine import Engine
from eventcube.engine.saved import BOUND, DamagedStateError, Saved, check_fields, integer
from eventcube.engine.state import NOTHING, Version
from eventcube.plan.workload import WorkloadPlan
from eventcube.runtime.ingest import Ingest, check_columns
from eventcube.schema import EventSchema

# A query's name, and a batch of its results.
Result = tuple[str, pa.RecordBatch]


class Workload:
    """Runs queries over events, and returns their results as they become final.

    Each iterator must be read to its end before the next call.
    """

    def __init__(
        self, plan: WorkloadPlan, schema: EventSchema, lateness: int = 0, counters: Counters | None = None
    ) -> None:
        self.plan = plan
        needs_all = plan.takes_any or bool(plan.partitionings)
        self.ingest = Ingest(schema, plan.types, lateness, counters or Counters(), needs_all=needs_all)
        self.engine = Engine(plan, schema.columns)
        # How often events were released: the number of the state's version.
        self._batches = 0

    @property
    def schema(self) -> EventSchema:
        """The columns of the events."""
        return self.ingest.schema

    @property
    def schemas(self) -> dict[str, pa.Schema]:
        """The columns of each query's results."""
        return {name: query.plan.sink.schema for name, query in self.plan.queries.items()}

    @property
    def counters(self) -> dict[str, int]:
        """The counters of ingest and all queries, summed; see `Counters`."""
        total = self.engine.total_counters
        total.add(self.ingest.counters)
        return total.as_dict()

    @property
    def kept(self) -> dict[str, int]:
        """The number of events that each query retains for later matches."""
        return {name: self.engine.state.kept(name) for name in self.plan.queries}

    # The state.

    @property
    def version(self) -> Version:
        """The point that the state has reached."""
        return Version(self._batches, self.engine.state.sequence, self.ingest.arrived, self.ingest.skipped_rows)

    def changes(self, since: Version = NOTHING) -> Saved:
        """What changed in the state since a version: all of it, by default."""
        saved = {"ingest": self.ingest.changes(since)}
        ranked = bool(self.schema.order_by)
        saved["events"] = self.engine.state.changes(since, self._batches, ranked=ranked)
        queries: dict[str, Any] = {}
        for name, query in self.engine.queries.items():
            saved[f"query/{name}"] = query.sink.changes(since.number, self._batches)
            queries[name] = query.counters.as_dict()
        values = {
            "batches": self._batches,
            "since": since.number,
            "counters": self.ingest.counters.as_dict(),
            "shared": self.engine.shared_counters.as_dict(),
            "queries": queries,
            "parts": {part: own.values for part, own in saved.items()},
        }
        return Saved(values, {f"{part}/{n}": t for part, own in saved.items() for n, t in own.tables.items()})

    def apply(self, saved: Saved) -> None:
        """Take on saved changes, which must follow this state; raises `DamagedStateError` if they cannot."""
        saved.check_fields({"batches", "since", "counters", "shared", "queries", "parts"})
        if saved.integer("since", -1, BOUND) not in (-1, self._batches):
            raise DamagedStateError("changes are missing before these")
        self._batches = saved.integer("batches", self._batches, BOUND)
        self.ingest.counters = read_counters(saved.values["counters"])
        self.engine.take_counters(read_counters(saved.values["shared"]))
        check_fields(saved.values["queries"], self.plan.queries)
        names = ["ingest", "events", *(f"query/{name}" for name in self.plan.queries)]
        check_fields(saved.values["parts"], names)
        parts = {name: _part(saved, name) for name in names}
        if saved.tables:
            raise DamagedStateError(f"nothing has a table {min(saved.tables)!r}")
        self.ingest.apply(parts["ingest"])
        for name, query in self.engine.queries.items():
            query.counters = read_counters(saved.values["queries"][name])
            query.sink.apply(parts[f"query/{name}"], partial(self.engine.nothing, name))
        self.engine.note_full()
        rank = self.ingest.rank if self.schema.order_by else None
        self.engine.state.apply(parts["events"], self.ingest.watermark, rank)
        for name, part in parts.items():
            if part.tables:
                raise DamagedStateError(f"{name} cannot have a table {min(part.tables)!r}")

    # Running.

    def push(self, events: pa.Table) -> Iterator[Result]:
        """Process events; returns the results that are final now."""
        self.hold(events)
        return self.advance_to_latest()

    def advance_to_latest(self) -> Iterator[Result]:
        """Advance the watermark to the latest time so far less the lateness."""
        return self.advance(self.ingest.latest - self.ingest.lateness)

    def hold(self, events: pa.Table) -> None:
        """Take events that are not released before the watermark is advanced."""
        self.ingest.take(check_columns(events, self.schema.columns))

    def advance(self, watermark: int) -> Iterator[Result]:
        """Advance the watermark (microseconds); returns the results that are final now."""
        return self._run(watermark)

    def finish(self) -> Iterator[Result]:
        """End the input; returns all remaining results."""
        return self._run(None)

    def _run(self, watermark: int | None) -> Iterator[Result]:
        # Release events now, even if the results are never read.
        released = self.ingest.release(watermark)
        self._batches += 1
        new_watermark = None if watermark is None else self.ingest.watermark
        return ((name, batch) for name, batch in self.engine.feed(released, new_watermark) if batch.num_rows)


def _part(saved: Saved, name: str) -> Saved:
    """What one part of a workload saved."""
    prefix = f"{name}/"
    tables = {full.removeprefix(prefix): saved.tables.pop(full) for full in list(saved.tables) if _is_of(full, prefix)}
    return Saved(saved.values["parts"][name], tables)


def _is_of(table: str, prefix: str) -> bool:
    # The name of a query may hold a slash, that of a table does not.
    return table.startswith(prefix) and "/" not in table.removeprefix(prefix)


def read_counters(saved: Any) -> Counters:
    """Saved counters; those that a later release added are 0."""
    check_fields(saved, (), [f.name for f in fields(Counters)])
    return Counters(**{name: integer(value, 0, 2**63 - 1, name) for name, value in saved.items()})
