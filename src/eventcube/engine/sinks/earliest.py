"""The earliest matches: LIMIT."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from eventcube.engine.limit import Earliest, Pieces
from eventcube.engine.output import Output
from eventcube.engine.saved import DamagedStateError, Saved, numbers
from eventcube.engine.sinks.sink import Due, Nothing, Sink, register
from eventcube.plan.physical import PhysicalQuery


@register("earliest")
class EarliestSink(Sink):
    """Returns the first matches, and stops looking once nothing still to come can be earlier."""

    searches = gives_matches = True

    def __init__(self, plan: PhysicalQuery) -> None:
        assert plan.sink.limit is not None
        super().__init__(plan)
        self.earliest = Earliest(plan.sink.limit, plan)

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached."""
        return not self.earliest.left

    def search(self, due: Due) -> Iterator[pa.RecordBatch]:
        """The first matches: due events are taken in pieces, in order of time, until nothing left can be earlier."""
        earliest = self.earliest
        pieces = Pieces(earliest, due.rows, due.stacks, due.states)
        for piece in pieces:
            if self.plan.forward:
                # Which events a nested part can bind depends on how far a piece reaches.
                due.parts.forget_positive()
            execution = due.execution(piece.rows, piece.stacks, piece.states)
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

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The matches that were held until the end."""
        return self.earliest.rest()

    def changes(self, *, added: bool) -> Saved:
        """How many matches are left to find, and matches that are held: at most as many."""
        earliest = self.earliest
        new = earliest.unsaved if added and earliest.left else None
        earliest.unsaved = [] if self.plan.forward else None
        held = new if new is not None else [] if earliest.held is None else [earliest.held]
        tables = {}
        if held:
            keys = [np.concatenate(columns) for columns in zip(*(keys for _, keys in held), strict=True)]
            tables["limit"] = pa.concat_tables([matches for matches, _ in held])
            tables["limit_keys"] = pa.table({f"key{i}": pa.array(column) for i, column in enumerate(keys)})
        return Saved({"left": earliest.left, "added": int(new is not None)}, tables)

    def apply(self, saved: Saved, nothing: Nothing) -> None:
        """Take on saved matches, which must be no more than are left, or add to those that there are."""
        saved.check_fields({"left", "added"})
        earliest = self.earliest
        earliest.left = saved.integer("left", 0, earliest.left)
        if not saved.integer("added", 0, 1):
            earliest.held = None
        if self.plan.forward and saved.tables:
            none, output = nothing()
            names = [f"key{i}" for i in range(len(earliest.sort_keys(none, output.store, output)))]
            matches = saved.take("limit", output.batch(none).schema)
            keys = saved.take("limit_keys", pa.schema([pa.field(name, pa.int64()) for name in names]))
            if matches.num_rows != keys.num_rows or matches.num_rows > earliest.left:
                raise DamagedStateError("more matches are held than are left, or some without their order")
            earliest.hold(matches, list(numbers(keys, names).values()))
        earliest.unsaved = [] if self.plan.forward else None
