"""Aggregates of the matches that begin or end with one event, one row for each such event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from eventcube.engine.aggregate import Groups, single_array
from eventcube.engine.output import Output
from eventcube.engine.sinks.matches import OUTPUT_ROWS
from eventcube.engine.sinks.sink import Sink, register
from eventcube.engine.table import Table
from eventcube.plan.dictionary import Dictionary
from eventcube.plan.expressions import ColumnRef, Encoding
from eventcube.plan.logical import Computed, Results, ValueColumn
from eventcube.plan.physical import PhysicalQuery
from eventcube.schema import Kind


@register("per event")
class PerEventSink(Sink):
    """Folds matches into one row for each event of a component.

    All matches of an event are due together, so its row is final once they were added, and nothing is kept.
    """

    def __init__(self, plan: PhysicalQuery) -> None:
        super().__init__(plan)
        self._rows: EventRows | None = None

    def add(self, table: Table, output: Output) -> Iterator[pa.RecordBatch]:
        """Fold matches into the rows of their events."""
        if len(table):
            self._rows = self._rows or EventRows(self.plan.sink.results)
            self._rows.add(table, output)
        return iter(())

    def flush(self, output: Output) -> Iterator[pa.RecordBatch]:
        """The rows of all events whose matches were added."""
        if self._rows is not None:
            rows, self._rows = self._rows, None
            yield from rows.batches(output, self.plan.sink.schema)


class EventRows(Groups):
    """Groups by the row of an event in the store."""

    def __init__(self, results: Results) -> None:
        assert results.per is not None
        row = ColumnRef(results.per.slot, "", Kind.INTEGER, Encoding.NUMBER)
        self._event = results.per
        super().__init__(replace(results, group_by=(ValueColumn("", Computed(row, pa.int64(), Dictionary())),)))

    def key_values(self, table: Table, output: Output) -> dict[str, pa.Array]:
        """The row of each match's event."""
        return {"k0": pa.array(table[self._event.slot], pa.int64())}

    def batches(self, output: Output, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """One row for each event that HAVING holds for."""
        groups = self.kept()
        for start in range(0, groups.num_rows, OUTPUT_ROWS):
            some = groups.slice(start, OUTPUT_ROWS)
            rows = np.asarray(some.column("k0"))
            event = output.event(Table((self._event.slot,), rows[np.newaxis, :]), self._event)
            aggregates = [single_array(some.column(f"a{i}")) for i in range(self.results.listed)]
            yield pa.RecordBatch.from_arrays([event, *aggregates], schema=schema)
