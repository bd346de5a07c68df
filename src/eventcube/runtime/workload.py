"""Planned queries running over one stream of events, in this process or in a Spark task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from eventcube.engine.counters import Counters
from eventcube.engine.engine import Engine
from eventcube.plan.physical import PhysicalQuery
from eventcube.runtime.ingest import Ingest, check_columns
from eventcube.schema import EventSchema

# A query's name, and a batch of its results.
Result = tuple[str, pa.RecordBatch]


class Workload:
    """Runs queries over events, and returns their results as they become final.

    Each iterator must be read to its end before the next call.
    """

    def __init__(
        self,
        plans: Mapping[str, PhysicalQuery],
        schema: EventSchema,
        lateness: int = 0,
        counters: Counters | None = None,
    ) -> None:
        types = {t for plan in plans.values() for component in plan.scan.components for t in component.types or ()}
        self.ingest = Ingest(schema, types, lateness, counters or Counters())
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
        """The counters of ingest and all queries, summed; see `Counters`."""
        total = Counters()
        total.add(self.ingest.counters)
        for engine in self.engines.values():
            total.add(engine.counters)
        return total.as_dict()

    @property
    def kept(self) -> dict[str, int]:
        """The number of events that each query retains for later matches."""
        return {name: engine.kept for name, engine in self.engines.items()}

    def push(self, events: pa.Table) -> Iterator[Result]:
        """Process events; returns the results that are final now."""
        self.ingest.take(check_columns(events, self.schema.columns))
        return self.advance(self.ingest.latest - self.ingest.lateness)

    def advance(self, watermark: int) -> Iterator[Result]:
        """Advance the watermark (microseconds); returns the results that are final now."""
        return self._run(watermark)

    def finish(self) -> Iterator[Result]:
        """End the input; returns all remaining results."""
        return self._run(None)

    def _run(self, watermark: int | None) -> Iterator[Result]:
        # Release events now, even if the results are never read.
        released = self.ingest.release(watermark)
        new_watermark = None if watermark is None else self.ingest.watermark
        return (
            (name, batch)
            for name, engine in self.engines.items()
            for batch in engine.feed(released, new_watermark)
            if batch.num_rows
        )
