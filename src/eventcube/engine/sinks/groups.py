"""Aggregates of the matches, one row for each group."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from eventcube.engine.aggregate import Groups
from eventcube.engine.closing import ClosingGroups
from eventcube.engine.levels import group_rows
from eventcube.engine.output import Output
from eventcube.engine.saved import Saved
from eventcube.engine.sinks.sink import Nothing, Sink, register
from eventcube.engine.table import Table
from eventcube.plan.physical import PhysicalQuery

# Matches that are counted without being made can be more than 64 bits hold, as floats can.
_MOST_MATCHES = 2**1024


@register("groups")
class GroupSink(Sink):
    """Folds matches into groups, which are returned when the input has ended, or before if they are by time."""

    is_open = True

    def __init__(self, plan: PhysicalQuery) -> None:
        super().__init__(plan)
        self.groups = Groups(plan.sink.results)
        self.only_counts = plan.sink.results.only_counts
        self.closes = bool(plan.sink.closing)
        self._closing = ClosingGroups(self.groups, plan.sink.closing)

    def add(self, table: Table, output: Output) -> Iterator[pa.RecordBatch]:
        """Fold matches into groups."""
        self._note(self.groups.add(table, output))
        return iter(())

    def _note(self, summary: pa.Table) -> None:
        """Take note of groups that were added."""
        if self.closes:
            self._closing.note(summary)

    def add_count(self, matches: int) -> None:
        """Count matches."""
        self.groups.add_count(matches)

    def close(self, watermark: int) -> Iterator[pa.RecordBatch]:
        """The groups by buckets of time that no match to come can fall into."""
        closed = self._closing.take(watermark) if self.closes else None
        if closed is not None:
            yield group_rows(closed)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """All groups that are left."""
        yield group_rows(self.groups)

    def updates(self) -> pa.RecordBatch:
        """The groups that changed since they were saved or restored."""
        return self.groups.updates()

    @property
    def rows(self) -> tuple[int, int]:
        """How many rows the groups have, and how many of them were added since they were saved or restored."""
        return self.groups.rows

    def changes(self, *, added: bool) -> Saved:
        """The number of matches, groups, or what was added to them."""
        if self.only_counts:
            self.groups.note_saved()
            return Saved({"count": self.groups.counted}, {})
        table, is_addition = self.groups.changed(added=added)
        return Saved({"added": int(is_addition)}, {} if table is None else {"groups": table})

    def apply(self, saved: Saved, nothing: Nothing) -> None:
        """Take on saved groups, or add to those that there are."""
        saved.check_fields({"count"} if self.only_counts else {"added"})
        if self.only_counts:
            self.groups.counted = saved.integer("count", 0, _MOST_MATCHES)
            self.groups.note_saved()
            return
        table: pa.Table | None = None
        if "groups" in saved.tables:
            expected = Groups(self.plan.sink.results)
            expected.add(*nothing())
            assert expected.partial is not None
            columns = expected.partial.schema
            former = expected.former(columns)
            table = saved.take("groups", former if saved.has("groups", former) else columns)
        self.groups.restore(table, added=bool(saved.integer("added", 0, 1)))
        self._closing.note_restored()
