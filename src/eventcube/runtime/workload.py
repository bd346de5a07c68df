"""Planned queries running over one stream of events, in this process or in a Spark task."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from eventcube.engine.counters import Counters
from eventcube.engine.engine import Engine
from eventcube.engine.kept_matches import Keep
from eventcube.engine.saved import (
    BOUND,
    Saved,
    check_fields,
    integer,
    listed,
    read_counters,
    unlisted,
)
from eventcube.engine.state import NOTHING, Version
from eventcube.engine.succession import is_past
from eventcube.errors import OptionError
from eventcube.plan.workload import WorkloadPlan
from eventcube.runtime.ingest import Ingest
from eventcube.runtime.read_columns import check_columns
from eventcube.schema import EventSchema

# A query's name, and a batch of its results.
Result = tuple[str, pa.RecordBatch]


class Workload:
    """Runs queries over events, and returns their results as they become final.

    Each iterator must be read to its end before the next call.
    """

    def __init__(
        self,
        plan: WorkloadPlan,
        schema: EventSchema,
        lateness: int = 0,
        counters: Counters | None = None,
        keep: Keep | None = None,
        ties: tuple[str, ...] = (),
        *,
        by_content: bool = False,
    ) -> None:
        self.plan = plan
        self.ingest = Ingest(
            schema,
            plan.types,
            lateness,
            counters or Counters(),
            needs_all=_needs_all(plan),
            ties=ties,
            by_content=by_content,
        )
        self.engine = Engine(plan, schema.columns, keep)
        # How often events were released: the number of the state's version; and what tells this run from others.
        self._batches, self._line = 0, secrets.randbits(48)
        # What told it from others while it had other queries.
        self._former_lines: set[int] = set()

    def turn_to(self, plan: WorkloadPlan) -> None:
        """Go on with other queries; those that stay keep what they have."""
        before, self.plan = self.engine, plan
        self.engine = Engine(plan, self.schema.columns, before.keep)
        self.engine.go_on(before)
        self.ingest.turn_to(plan.types, needs_all=_needs_all(plan))
        self._former_lines.add(self._line)
        self._line = secrets.randbits(48)

    @property
    def added(self) -> dict[str, int]:
        """The queries that do not see all events that are left, with the times since which they do."""
        state = self.engine.state
        since = {name: query.since for name, query in self.plan.queries.items()}
        return {name: time for name, time in since.items() if time is not None and not is_past(time, state)}

    @property
    def can_settle(self) -> bool:
        """Whether a query that was added can share the events with others, as none is left from before that."""
        times = [query.since for query in self.plan.queries.values() if query.since is not None]
        return any(is_past(time, self.engine.state) for time in times)

    @property
    def now(self) -> int:
        """A time (microseconds) after all events so far: a query that is added sees events from then on."""
        return max(self.ingest.latest + 1, self.ingest.watermark)

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
        events = self.engine.state.sequence, self.ingest.arrived, self.ingest.skipped_rows
        return Version(self._batches, *events, self._line)

    def had_other_queries(self, version: Version) -> bool:
        """Whether queries were added or removed since a version, so that changes cannot be told."""
        return version.line in self._former_lines

    def changes(self, since: Version = NOTHING) -> Saved:
        """What changed in the state since a version: all of it, by default."""
        if since != NOTHING and (since.line != self._line or since.number > self._batches):
            raise OptionError(
                "the version is not one that this runtime, or the state that it goes on from, has had",
                code="EC412",
                hint="give a version of the same runtime",
            )
        parts = {
            "ingest": self.ingest.changes(since),
            "events": self.engine.state.changes(since, self._batches, ranked=bool(self.schema.order_by)),
        }
        values: dict[str, Any] = {name: {n: v for n, v in part.values.items() if v} for name, part in parts.items()}
        if since != NOTHING:
            values["since"] = since.numbers
        values["line"] = self._line
        values["batches"] = self._batches
        added = {name: query.since for name, query in self.plan.queries.items() if query.since is not None}
        if added and since == NOTHING:
            values["added"] = added
        values["counters"] = self.ingest.counters.nonzero
        values["shared"] = self.engine.shared_counters.nonzero
        # Queries by their places: their names are known.
        queries = {}
        for place, query in enumerate(self.engine.queries.values()):
            changed = query.changes(since.number, self._batches)
            if changed is not None:
                queries[place], parts[f"{place}"] = changed.values, changed
        values["queries"] = listed(queries)
        return Saved(values, {f"{part}/{n}": t for part, own in parts.items() for n, t in own.tables.items()})

    def apply(self, saved: Saved) -> None:
        """Take on saved changes, which must follow this state; raises `DamagedStateError` if they cannot."""
        known = ("batches", "counters", "shared", "ingest", "events", "queries")
        check_fields(saved.values, known, {"since", "line", "added"})
        values = saved.values
        line = integer(values.get("line", 0), 0, BOUND, "line")
        if "since" in values and (line != self._line or values["since"] != self.version.numbers):
            raise OptionError(
                "some changes do not follow the state before them"
                + (": they are of another runtime" if line != self._line else ""),
                code="EC412",
                hint="restore(state, *changes): the changes in the order in which they were saved, each once",
            )
        self._line = line
        self._batches = integer(values["batches"], self._batches, BOUND, "batches")
        self.ingest.counters = read_counters(values["counters"])
        self.engine.take_counters(read_counters(values["shared"]))
        ingest, events = (saved.part(name, values[name]) for name in ("ingest", "events"))
        self.ingest.apply(ingest)
        queries = unlisted(values["queries"], len(self.plan.queries))
        for place, (name, query) in enumerate(self.engine.queries.items()):
            own = saved.part(f"{place}", queries[place]) if place in queries else None
            query.apply(own, self._batches, partial(self.engine.nothing, name))
        rank = self.ingest.rank if self.schema.order_by else None
        self.engine.note_full()
        self.engine.state.apply(events, self._batches, self.ingest.watermark, rank)
        self.engine.note_restored()
        for part in (saved, ingest, events):
            part.check_all_taken()

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
        return (
            (name, batch) for name, batch in self.engine.feed(released, new_watermark, self._batches) if batch.num_rows
        )


def _needs_all(plan: WorkloadPlan) -> bool:
    """Whether events of types that no query names are needed, too: a window counts them, or a component takes any."""
    return plan.takes_any or bool(plan.partitionings)
