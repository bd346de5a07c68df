"""What becomes of matches: the interface that every sink fills, and where sinks are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import pyarrow as pa

from eventcube.engine.counters import Counters
from eventcube.engine.execute import Execution
from eventcube.engine.kernels import Ints
from eventcube.engine.registry import import_all
from eventcube.engine.rows import Rows
from eventcube.engine.table import Table
from eventcube.engine.views.strategy import Parts
from eventcube.plan.physical import PhysicalQuery


class DueEvents(Protocol):
    """Events whose matches are due, and how a sink gets at those matches."""

    @property
    def rows(self) -> Rows:
        """The events, with all that a match may still use."""

    @property
    def state(self) -> Ints | None:
        """For each event whether its matches are done, due or future; None means all due."""

    @property
    def counters(self) -> Counters:
        """What is counted."""

    @property
    def parts(self) -> Parts:
        """The nested parts, with what is kept of them."""

    def execution(self, rows: Rows | None = None, state: Ints | None = None) -> Execution:
        """An execution over these events, or over a piece of them."""

    def matches(self, execution: Execution) -> Iterator[Table]:
        """The matches, in chunks."""

    def count(self, execution: Execution) -> int:
        """How many matches there are."""


class Sink(Protocol):
    """Takes the matches of one query, and gives its result."""

    @property
    def is_full(self) -> bool:
        """Whether no further match can change the result."""

    @property
    def only_counts(self) -> bool:
        """Whether matches are counted rather than made."""

    def take(self, due: DueEvents) -> Iterator[pa.RecordBatch]:
        """Take the matches of due events; gives the rows of the result that are final now."""

    def finish(self, counters: Counters) -> Iterator[pa.RecordBatch]:
        """The rows that are left when the input has ended."""


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
