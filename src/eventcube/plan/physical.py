"""The physical plan of a query: what to scan, the steps to run, and what to do with the matches.

It is plain data: it can be pickled, and printed. Whoever runs it derives nothing again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from eventcube.options import SASE
from eventcube.plan.closing import ClosingKey
from eventcube.plan.counting import Counting, NoCounting
from eventcube.plan.dictionary import Dictionary
from eventcube.plan.expressions import Condition
from eventcube.plan.logical import Results
from eventcube.plan.steps import Program
from eventcube.schema import EventSchema


@dataclass(frozen=True, slots=True)
class ComponentScan:
    """The events that one slot takes: of which types (None: any), and what conditions they meet by themselves.

    `keyed`: an event whose key is null equals no other, and is of no use.
    """

    types: frozenset[str] | None
    conditions: tuple[Condition, ...]
    keyed: bool


@dataclass(frozen=True, slots=True)
class Scan:
    """What of the events a query reads.

    `dictionary` is that of the components' conditions. `partition_by` splits the stream, `key` has the columns that
    must be equal in all events of a match; events are sorted by `sort_key`. `width` is that of the window, in
    microseconds or, if `by_count`, in events; None for no window.
    """

    columns: tuple[str, ...]
    components: tuple[ComponentScan, ...]
    dictionary: Dictionary
    partition_by: tuple[str, ...]
    key: tuple[str, ...]
    sort_key: tuple[str, ...]
    width: int | None
    by_count: bool

    @property
    def types(self) -> frozenset[str] | None:
        """The types of events that some slot takes; None for any."""
        types = [component.types for component in self.components]
        return None if None in types else frozenset().union(*(own for own in types if own is not None))


# The sinks that queries ask for: all matches, the earliest of them, aggregates of them by group or by event;
MATCHES, EARLIEST, GROUPS, PER_EVENT = "matches", "earliest", "groups", "per event"
# and these without making the matches.
TOTALS, TOTALS_PER_EVENT = "totals", "totals per event"
MADE = {TOTALS: GROUPS, TOTALS_PER_EVENT: PER_EVENT}


@dataclass(frozen=True, slots=True)
class SinkPlan:
    """What becomes of the matches: the name of the sink that takes them, and what it makes of them.

    `schema` has the columns of the result; `limit` is the number of matches that are wanted, None for all. `numbered`:
    the last column has the numbers of each match's events, as text. `closing` are the keys by which groups are final
    before the input ends. `counting` says how aggregates are computed without making matches, or why they are not.
    """

    name: str
    results: Results
    schema: pa.Schema
    limit: int | None = None
    numbered: bool = False
    closing: tuple[ClosingKey, ...] = ()
    counting: Counting | NoCounting | None = None


@dataclass(frozen=True, slots=True)
class Alternative:
    """A program, by name, of which there may be several that find the same matches.

    `flat` is the flat strategy that it is for.
    """

    name: str
    program: Program
    flat: str = SASE


# Nested parts answered by their strategies; the positive ones that are left to the optimizer bound like the rest.
NESTED, FLAT = "nested", "flat"


@dataclass(frozen=True, slots=True)
class PhysicalQuery:
    """A plan that can run. `forward` plans report a match once its window has closed, others at its last event.

    The optimizer chooses between the `alternatives` while the query runs, and begins with the first. `unsuited` is why
    it has none of the flat strategy that was asked for. `dictionary` is that of the programs' conditions. `looks_back`
    plans have a negation that reaches back to the window's start. `positive` are the slots that a match binds; `first`
    and `last` those among which its first and last event are; those of `optional` may not be taken.
    """

    schema: EventSchema
    scan: Scan
    alternatives: tuple[Alternative, ...]
    unsuited: str | None
    dictionary: Dictionary
    sink: SinkPlan
    forward: bool
    looks_back: bool
    positive: tuple[int, ...]
    first: tuple[int, ...]
    last: tuple[int, ...]
    optional: tuple[int, ...]

    @property
    def program(self) -> Program:
        """The first of the alternatives."""
        return self.alternatives[0].program

    @property
    def enumerating(self) -> PhysicalQuery:
        """The same plan, whose aggregates are computed from its matches."""
        made = MADE.get(self.sink.name)
        return self if made is None else replace(self, sink=replace(self.sink, name=made))
