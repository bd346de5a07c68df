"""Aggregates of the matches, one row for each group, mostly computed without making the matches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from eventcube.engine.counting.splits import splits_of
from eventcube.engine.output import Output
from eventcube.engine.sinks.counted import CountedSink
from eventcube.engine.sinks.groups import GroupSink
from eventcube.engine.sinks.sink import Due, Sink, register


@register("totals")
class TotalsSink(CountedSink, GroupSink):
    """Folds counts and sums of matches into groups, which are returned when the input has ended.

    Where there are too many groups for that, the matches are made.
    """

    def count(self, due: Due, output: Output) -> Iterator[pa.RecordBatch]:
        """Count the matches of due events, and add them to the groups."""
        splits = splits_of(self.counting, output)
        if splits is None:
            for table in due.matches(output.execution):
                due.counters.matches += len(table)
                self.add(table, output)
        for split in splits or ():
            with self.totals(due, output, self.groups, split) as totals:
                if self.only_counts:
                    self.groups.add_count(totals.matches)
                else:
                    for table in totals.tables():
                        self._note(self.groups.add_weighted(table))
        return iter(())

    def take(self, made: Sink, output: Output) -> Iterator[pa.RecordBatch]:
        """Add the groups of all matches."""
        assert isinstance(made, GroupSink)
        if self.only_counts:
            self.groups.add_count(made.groups.counted)
        for table in made.groups.partials:
            self._note(self.groups.add_partial(table))
        return iter(())
