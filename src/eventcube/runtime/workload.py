"""Planned queries at work over one stream of events, wherever that runs: in this process, or in a task of Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from eventcube.engine.counters import Counters
from eventcube.engine.engine import Engine
from eventcube.plan.physical import PhysicalQuery
from eventcube.runtime.ingest import Ingest, check_columns
from eventcube.schema import EventSchema

# A query's name, and some of its results.
Result = tuple[str, pa.RecordBatch]


class Workload:
    """Takes events in and gives the results of each query as they become final.

    The iterators have to be read to their end before the next call.
    """

    def __init__(
        self,
        plans: Mapping[str, PhysicalQuery],
        schema: EventSchema,
        lateness: int = 0,
        counters: Counters | None = None,
    ) -> None:
        self.own_counters = counters or Counters()
        types = {t for plan in plans.values() for component in plan.scan.components for t in component.types or ()}
        self.ingest = Ingest(schema, types, lateness, self.own_counters)
        self.engines = {name: Engine(plan) for name, plan in plans.items()}

    @property
    def schema(self) -> EventSchema:
        """The columns of the events."""
        return self.ingest.schema

    @property
    def schemas(self) -> dict[str, pa.Schema]:
        """The columns of each query's results."""
        return {name: engine.plan.sink.schema for name, engine in self.engines.items()}

    @property
    def counters(self) -> dict[str, int]:
        """What has been done so far, counted; see `Counters`."""
        total = Counters()
        total.add(self.own_counters)
        for engine in self.engines.values():
            total.add(engine.counters)
        return total.as_dict()

    @property
    def kept(self) -> dict[str, int]:
        """How many events each query keeps for matches to come."""
        return {name: engine.kept for name, engine in self.engines.items()}

    def push(self, events: pa.Table) -> Iterator[Result]:
        """Take events in; gives the results that are final now."""
        self.ingest.take(check_columns(events, self.schema.columns))
        return self.advance(self.ingest.latest - self.ingest.lateness)

    def advance(self, watermark: int) -> Iterator[Result]:
        """Say that every event before the watermark, in microseconds, has come; gives the results final by then."""
        return self._run(watermark)

    def finish(self) -> Iterator[Result]:
        """Say that no more events will come; gives all results that are left."""
        return self._run(None)

    def _run(self, watermark: int | None) -> Iterator[Result]:
        # Events are released at once, whether or not the results are read.
        released = self.ingest.release(watermark)
        known = None if watermark is None else self.ingest.watermark
        return (
            (name, batch)
            for name, engine in self.engines.items()
            for batch in engine.feed(released, known)
            if batch.num_rows
        )
