"""What becomes of matches: the interface that every sink fills, and where sinks are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import pyarrow as pa

from eventcube.engine.counters import Counters
from eventcube.engine.counting.counts import Found
from eventcube.engine.execute import Execution
from eventcube.engine.output import Output
from eventcube.engine.registry import import_all
from eventcube.engine.rows import Rows
from eventcube.engine.saved import Saved
from eventcube.engine.store import States
from eventcube.engine.table import Table
from eventcube.engine.views.strategy import Parts
from eventcube.plan.physical import PhysicalQuery


class Due(Protocol):
    """Events whose matches are due, for a sink that searches for matches itself."""

    @property
    def rows(self) -> Rows:
        """The events, with all that a match may still use."""

    @property
    def stacks(self) -> tuple[int, ...]:
        """The number of the stack of each slot."""

    @property
    def states(self) -> States:
        """Which events' matches are done, due or future."""

    @property
    def counters(self) -> Counters:
        """What is counted."""

    @property
    def parts(self) -> Parts:
        """The nested parts, with what is kept of them."""

    @property
    def counted(self) -> Found | None:
        """How many matches there are, for each event that ends some, if that was counted with other queries."""

    def made(self) -> Sink | None:
        """A sink that took all matches; None if they are to be counted, or there are more than expected."""

    @property
    def execution_of_all(self) -> Execution:
        """An execution over all events."""

    def execution(self, rows: Rows, stacks: tuple[int, ...], states: States) -> Execution:
        """An execution over a piece of the events."""

    def matches(self, execution: Execution) -> Iterator[Table]:
        """The matches, in chunks."""


class Sink:
    """Takes the matches of one query, and gives its result.

    Matches are added as they are found. A sink that `searches` is asked to find them itself, instead. One that is full
    needs no further match; one that `only_counts` is told numbers of matches, instead of matches.
    """

    searches: bool = False
    # Whether the rows that it gives are matches, to be counted.
    gives_matches: bool = False
    only_counts: bool = False
    # Whether the result is known at the end only, and `finish` tells what it would be now.
    is_open: bool = False
    # Whether rows of an open result are final once the watermark has passed them: `close` gives them then.
    closes: bool = False

    def __init__(self, plan: PhysicalQuery) -> None:
        self.plan = plan

    @property
    def is_full(self) -> bool:
        """Whether no further match can change the result."""
        return False

    def add(self, table: Table, output: Output) -> Iterator[pa.RecordBatch]:
        """Take a chunk of matches; gives rows of the result that are final now."""
        raise NotImplementedError

    def add_count(self, matches: int) -> None:
        """Take the number of some matches."""
        raise NotImplementedError

    def flush(self, output: Output) -> Iterator[pa.RecordBatch]:
        """The rows that are final once all due matches were added."""
        return iter(())

    def search(self, due: Due) -> Iterator[pa.RecordBatch]:
        """Find matches of due events; gives the rows of the result that are final now."""
        raise NotImplementedError

    def close(self, watermark: int) -> Iterator[pa.RecordBatch]:
        """The rows of an open result that are final at a watermark; they leave the sink."""
        return iter(())

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The rows that are left when the input has ended."""
        return iter(())

    def updates(self) -> pa.RecordBatch:
        """The rows of an open result that changed since the sink was saved or restored."""
        raise NotImplementedError

    @property
    def rows(self) -> tuple[int, int]:
        """How many rows it keeps between batches, and how many of them came since it was saved or restored."""
        return 0, 0

    def changes(self, *, added: bool) -> Saved:
        """What the sink keeps between batches; `added`: what changed since it was saved or restored is enough."""
        return Saved({}, {})

    def apply(self, saved: Saved, nothing: Nothing) -> None:
        """Take on saved changes; raises `DamagedStateError` if they cannot be those of this sink."""
        saved.check_fields(())


# Gives no match, and what would make a result of it.
Nothing = Callable[[], tuple[Table, Output]]
Make = Callable[[PhysicalQuery], Sink]
_registered: dict[str, Make] = {}


def register(name: str) -> Callable[[Make], Make]:
    """Make a sink known by its name; a file in this folder does so when it is imported."""

    def add(make: Make) -> Make:
        _registered[name] = make
        return make

    return add


def sinks() -> dict[str, Make]:
    """Every sink in this folder, by name."""
    import_all("eventcube.engine.sinks")
    return dict(_registered)


def make_sink(plan: PhysicalQuery) -> Sink:
    """The sink that a plan names."""
    return sinks()[plan.sink.name](plan)
