"""Aggregates of the matches, one row for each group."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from eventcube.engine.aggregate import Groups
from eventcube.engine.output import Output
from eventcube.engine.saved import Saved
from eventcube.engine.sinks.sink import Nothing, Sink, register
from eventcube.engine.table import Table
from eventcube.plan.physical import PhysicalQuery


@register("groups")
class GroupSink(Sink):
    """Folds matches into groups, which are returned when the input has ended."""

    def __init__(self, plan: PhysicalQuery) -> None:
        super().__init__(plan)
        self.groups = Groups(plan.sink.results)
        self.only_counts = plan.sink.results.only_counts

    def add(self, table: Table, output: Output) -> Iterator[pa.RecordBatch]:
        """Fold matches into groups."""
        self.groups.add(table, output)
        return iter(())

    def add_count(self, matches: int) -> None:
        """Count matches."""
        self.groups.add_count(matches)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """All groups."""
        yield self.groups.result()

    def changes(self, since: int, version: int) -> Saved:
        """Groups, or what was added to them."""
        table, whole = self.groups.changed(since, version)
        return Saved({"whole": whole}, {} if table is None else {"groups": table})

    def apply(self, saved: Saved, nothing: Nothing) -> None:
        """Take on saved groups, or add to those that there are."""
        saved.check_fields({"whole"})
        whole = saved.boolean("whole")
        table = saved.tables.get("groups")
        if table is not None:
            expected = Groups(self.plan.sink.results)
            expected.add(*nothing())
            assert expected.partial is not None
            self.groups.restore(saved.take("groups", expected.partial.schema), whole=whole)
        elif whole:
            self.groups = Groups(self.plan.sink.results)
