"""Sinks that count matches by stages themselves, or have them made where that costs less: what they have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from eventcube.engine.aggregate import Groups
from eventcube.engine.counting.counts import StageCounts
from eventcube.engine.counting.splits import Split
from eventcube.engine.counting.totals import Totals
from eventcube.engine.output import Output
from eventcube.engine.sinks.sink import Due, Sink
from eventcube.plan.counting import Counting
from eventcube.plan.physical import PhysicalQuery


class CountedSink(Sink):
    """Computes aggregates of due events from their counts, or from a sink that takes all matches."""

    searches = True

    def __init__(self, plan: PhysicalQuery) -> None:
        super().__init__(plan)
        assert isinstance(plan.sink.counting, Counting)
        self.counting = plan.sink.counting

    def search(self, due: Due) -> Iterator[pa.RecordBatch]:
        """Find the aggregates of due events; gives the rows of the result that are final now."""
        output = Output(self.plan, due.execution_of_all)
        made = due.made()
        return self.count(due, output) if made is None else self.take(made, output)

    def count(self, due: Due, output: Output) -> Iterator[pa.RecordBatch]:
        """Compute them from counts."""
        raise NotImplementedError

    def take(self, made: Sink, output: Output) -> Iterator[pa.RecordBatch]:
        """Take what all matches came to in another sink."""
        raise NotImplementedError

    @contextmanager
    def totals(self, due: Due, output: Output, groups: Groups, split: Split | None = None) -> Iterator[Totals]:
        """What groups need of the matches, or of a part of them; the work is counted."""
        keys, rows = ({}, {}) if split is None else (split.keys, split.rows)
        counts = StageCounts(self.counting, output.store, rows, None if rows else due.counted)
        totals = Totals(groups, counts, output, keys)
        yield totals
        due.counters.add_matches(totals.matches)
        due.counters.events_counted += counts.walked
