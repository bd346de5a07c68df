"""The matches themselves, one row each."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from eventcube.engine.counters import Counters
from eventcube.engine.output import Output
from eventcube.engine.sinks.sink import DueEvents, register
from eventcube.engine.table import Table, joined
from eventcube.plan.physical import PhysicalQuery

OUTPUT_ROWS = 1 << 13


@register("matches")
class MatchSink:
    """Returns every match as soon as it is final; nothing is kept."""

    is_full = only_counts = False

    def __init__(self, plan: PhysicalQuery) -> None:
        self.plan = plan

    def take(self, due: DueEvents) -> Iterator[pa.RecordBatch]:
        """The matches of due events."""
        execution = due.execution()
        output = Output(self.plan, execution)
        for table in coalesced(due.matches(execution)):
            due.counters.matches += len(table)
            yield output.batch(table)

    def finish(self, counters: Counters) -> Iterator[pa.RecordBatch]:
        """Nothing is left."""
        return iter(())


def coalesced(tables: Iterator[Table]) -> Iterator[Table]:
    """The same rows in tables that are not small, but for the last."""
    waiting: list[Table] = []
    for table in tables:
        waiting.append(table)
        if sum(map(len, waiting)) >= OUTPUT_ROWS:
            yield joined(waiting)
            waiting = []
    if waiting:
        yield joined(waiting)
