"""The matches themselves, one row each."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from eventcube.engine.output import Output
from eventcube.engine.sinks.sink import Sink, register
from eventcube.engine.table import Table, joined
from eventcube.plan.physical import PhysicalQuery

OUTPUT_ROWS = 1 << 13


@register("matches")
class MatchSink(Sink):
    """Returns every match as soon as it is final; nothing is kept."""

    def __init__(self, plan: PhysicalQuery) -> None:
        super().__init__(plan)
        self._waiting: list[Table] = []
        self._rows = 0

    def add(self, table: Table, output: Output) -> Iterator[pa.RecordBatch]:
        """The matches, once they are not few."""
        self._waiting.append(table)
        self._rows += len(table)
        return self.flush(output) if self._rows >= OUTPUT_ROWS else iter(())

    def flush(self, output: Output) -> Iterator[pa.RecordBatch]:
        """The matches that wait."""
        if self._waiting:
            table, self._waiting, self._rows = joined(self._waiting), [], 0
            yield output.batch(table)
