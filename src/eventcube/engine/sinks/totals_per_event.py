"""Aggregates of the matches that begin or end with one event, one row for each, mostly without making the matches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from eventcube.engine.output import Output
from eventcube.engine.sinks.counted import CountedSink
from eventcube.engine.sinks.per_event import EventRows
from eventcube.engine.sinks.sink import Due, Sink, register


@register("totals per event")
class TotalsPerEventSink(CountedSink):
    """Gives one row for each event that ends matches, or begins them, with their counts and sums; nothing is kept."""

    def count(self, due: Due, output: Output) -> Iterator[pa.RecordBatch]:
        """The rows of due events."""
        rows = EventRows(self.plan.sink.results)
        with self.totals(due, output, rows) as totals:
            for table in totals.tables():
                rows.add_weighted(table)
        if rows.partial is not None:
            yield from rows.batches(output, self.plan.sink.schema)

    def take(self, made: Sink, output: Output) -> Iterator[pa.RecordBatch]:
        """The rows of all matches."""
        return made.flush(output)
