"""The earliest matches: LIMIT."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from eventcube.engine.counters import Counters
from eventcube.engine.limit import Earliest, Pieces
from eventcube.engine.output import Output
from eventcube.engine.sinks.sink import DueEvents, register
from eventcube.plan.physical import PhysicalQuery


@register("earliest")
class EarliestSink:
    """Returns the first matches, and stops looking once nothing still to come can be earlier."""

    only_counts = False

    def __init__(self, plan: PhysicalQuery) -> None:
        assert plan.sink.limit is not None
        self.plan = plan
        self.earliest = Earliest(plan.sink.limit, plan)

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached."""
        return not self.earliest.left

    def take(self, due: DueEvents) -> Iterator[pa.RecordBatch]:
        """The first matches: due events are taken in pieces, in order of time, until nothing left can be earlier."""
        return _counted(self._take(due), due.counters)

    def _take(self, due: DueEvents) -> Iterator[pa.RecordBatch]:
        earliest = self.earliest
        pieces = Pieces(earliest, due.rows, due.state)
        for piece in pieces:
            if self.plan.forward:
                # Which events a nested part can bind depends on how far a piece reaches.
                due.parts.forget_positive()
            execution = due.execution(piece.rows, piece.state)
            output = Output(self.plan, execution)
            for table in due.matches(execution):
                piece.found += len(table)
                if piece.crowded:
                    break
                earliest.add(table, execution.store, output)
            else:
                yield from earliest.settle(output, piece)
        if self.plan.forward:
            due.parts.forget_positive()
            yield from earliest.final(pieces.following)

    def finish(self, counters: Counters) -> Iterator[pa.RecordBatch]:
        """The matches that were held until the end."""
        return _counted(self.earliest.rest(), counters)


def _counted(batches: Iterator[pa.RecordBatch], counters: Counters) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        counters.matches += batch.num_rows
        yield batch
