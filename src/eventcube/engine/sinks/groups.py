"""Aggregates of the matches, one row for each group."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from eventcube.engine.aggregate import Groups
from eventcube.engine.counters import Counters
from eventcube.engine.output import Output
from eventcube.engine.sinks.sink import DueEvents, register
from eventcube.plan.physical import PhysicalQuery


@register("groups")
class GroupSink:
    """Folds matches into groups, which are returned when the input has ended."""

    is_full = False

    def __init__(self, plan: PhysicalQuery) -> None:
        self.plan = plan
        self.groups = Groups(plan.sink.results)

    @property
    def only_counts(self) -> bool:
        """Whether the number of matches is all that is asked for."""
        return self.groups.only_count

    def take(self, due: DueEvents) -> Iterator[pa.RecordBatch]:
        """Fold the matches of due events into groups."""
        execution = due.execution()
        if self.only_counts:
            matches = due.count(execution)
            due.counters.matches += matches
            self.groups.add_count(matches)
            return iter(())
        output = Output(self.plan, execution)
        for table in due.matches(execution):
            due.counters.matches += len(table)
            self.groups.add(table, output)
        return iter(())

    def finish(self, counters: Counters) -> Iterator[pa.RecordBatch]:
        """All groups."""
        yield self.groups.result()
