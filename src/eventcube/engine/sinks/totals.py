"""Aggregates of the matches, one row for each group, mostly computed without making the matches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from eventcube.engine.counting.combinations import combinations_of
from eventcube.engine.counting.counts import StageCounts
from eventcube.engine.counting.grouped_totals import GroupedTotals
from eventcube.engine.counting.splits import splits_of
from eventcube.engine.output import Output
from eventcube.engine.sinks.counted import CountedSink
from eventcube.engine.sinks.groups import GroupSink
from eventcube.engine.sinks.sink import Due, Sink, register

# What it costs to make a match, in numbers that are added up for combinations of groups; so few of these that it does
# not matter; and the most combinations.
NUMBERS_PER_MATCH, FEW_NUMBERS, MOST_COMBINATIONS = 64, 1 << 26, 1 << 20


@register("totals")
class TotalsSink(CountedSink, GroupSink):
    """Folds counts and sums of matches into groups, which are returned when the input has ended.

    Where there are too many groups for that, the matches are made.
    """

    def count(self, due: Due, output: Output) -> Iterator[pa.RecordBatch]:
        """Count the matches of due events, and add them to the groups."""
        together = self.counting.split and not output.store.cuts
        counted = self._together(due, output) if together else self._one_by_one(due, output)
        for table in () if counted else due.matches(output.execution):
            due.counters.matches += len(table)
            self.add(table, output)
        return iter(())

    def _together(self, due: Due, output: Output) -> bool:
        """Count the combinations of all groups in one walk, unless they are far more than the matches."""
        combinations = combinations_of(self.counting, output, MOST_COMBINATIONS)
        if combinations is None:
            return False
        totals = GroupedTotals(self.groups, output, StageCounts(self.counting, output.store), combinations)
        grouped = totals.grouped
        if grouped.size > max(FEW_NUMBERS, NUMBERS_PER_MATCH * grouped.matches):
            return False
        due.counters.add_matches(grouped.matches)
        for table in totals.tables():
            self._note(self.groups.add_weighted(table))
        due.counters.events_counted += grouped.counts.walked + grouped.walked
        return True

    def _one_by_one(self, due: Due, output: Output) -> bool:
        """Count the matches, one combination of groups after the other, unless these are too many."""
        splits = splits_of(self.counting, output)
        for split in splits or ():
            with self.totals(due, output, self.groups, split) as totals:
                if self.only_counts:
                    self.groups.add_count(totals.matches)
                else:
                    for table in totals.tables():
                        self._note(self.groups.add_weighted(table))
        return splits is not None

    def take(self, made: Sink, output: Output) -> Iterator[pa.RecordBatch]:
        """Add the groups of all matches."""
        assert isinstance(made, GroupSink)
        if self.only_counts:
            self.groups.add_count(made.groups.counted)
        for table in made.groups.partials:
            self._note(self.groups.add_partial(table))
        return iter(())
