"""Aggregates of the matches that begin or end with one event, one row for each, without making the matches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from eventcube.engine.counting.counts import StageCounts
from eventcube.engine.counting.totals import Totals
from eventcube.engine.output import Output
from eventcube.engine.sinks.per_event import EventRows
from eventcube.engine.sinks.sink import Due, Sink, register
from eventcube.plan.counting import Counting


@register("totals per event")
class TotalsPerEventSink(Sink):
    """Gives one row for each event that ends matches, or begins them, with their counts and sums; nothing is kept."""

    searches = True

    def search(self, due: Due) -> Iterator[pa.RecordBatch]:
        """The rows of due events."""
        counting = self.plan.sink.counting
        assert isinstance(counting, Counting)
        execution = due.execution_of_all
        output = Output(self.plan, execution)
        rows = EventRows(self.plan.sink.results)
        counts = StageCounts(counting, execution.store, None, due.counted)
        totals = Totals(rows, counts, output, {})
        for table in totals.tables():
            rows.add_weighted(table)
        due.counters.add_matches(totals.matches)
        due.counters.events_counted += counts.walked
        if rows.partial is not None:
            yield from rows.batches(output, self.plan.sink.schema)
