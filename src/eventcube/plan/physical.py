"""The physical plan: steps over tables of partial matches, as plain data.

Every step works on half-open ranges of rows. Events are stored sorted by (key, order in time), so that "strictly
between p and q, inside the window" is a range, and a component's candidates are a range of its stack.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from eventcube.language.syntax import Value
from eventcube.options import Ways
from eventcube.plan.logical import LogicalQuery, Predicate


class Term(Enum):
    """What one end of a range is made from, given the rows bound to some slots."""

    AFTER_LAST = "after the last of"
    AFTER_FIRST = "after the first of"
    WINDOW_START = "from the window's start before"
    REGION_START = "from the start of the enclosing interval"
    BEFORE_FIRST = "before the first of"
    BEFORE_LAST = "before the last of"
    WINDOW_END = "up to the window's end after"
    REGION_END = "up to the end of the enclosing interval"
    ANCHOR = "from the anchor"
    AFTER_ANCHOR = "up to the anchor"


@dataclass(frozen=True, slots=True)
class Limit:
    """One end of a range of rows. `optional` says that some of the slots may not be taken."""

    term: Term
    slots: tuple[int, ...] = ()
    optional: bool = False


class State(Enum):
    """Where an event stands: its matches are already reported, are due now, or are not yet due."""

    DONE = 0
    DUE = 1
    FUTURE = 2


@dataclass(frozen=True, slots=True)
class Compare:
    """A predicate with the new event on one side only: `new op bound`."""

    new: Value
    op: str
    bound: Value


@dataclass(frozen=True, slots=True)
class Fence:
    """No event of `slot` may lie between the new event and `limit`: a negation that narrows the range of candidates."""

    slot: int
    limit: Limit
    new_is_earlier: bool


@dataclass(frozen=True, slots=True)
class Bind:
    """Extend every partial match by one event for `slot`: the join step.

    Candidates lie from `lower` to before `upper`; they are looked up by `key` if there is one, must meet `compare`,
    differ from the events of `distinct`, and then pass `filters`. No event lies between them and a fence. Where only
    the first event of the result matters, `latest` takes the latest candidate alone: none reaches less far back.
    """

    slot: int
    lower: Limit | None
    upper: Limit | None
    states: frozenset[State] | None = None
    key: Compare | None = None
    compare: tuple[Compare, ...] = ()
    distinct: tuple[int, ...] = ()
    filters: tuple[Predicate, ...] = ()
    fences: tuple[Fence, ...] = ()
    latest: bool = False

    @property
    def is_anchor(self) -> bool:
        """Whether the event can only be the anchor."""
        return self.lower is not None and self.lower.term is Term.ANCHOR

    @property
    def is_free(self) -> bool:
        """Whether nothing is asked of the event but where it lies."""
        return not (self.key or self.compare or self.distinct or self.filters or self.fences)


@dataclass(frozen=True, slots=True)
class Union:
    """Everything that any of the programs makes of the table."""

    programs: tuple[Program, ...]


@dataclass(frozen=True, slots=True)
class Absent:
    """Mark slots as not taken: another alternative was."""

    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """Keep the partial matches for which the predicates hold."""

    predicates: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Apart:
    """Keep the partial matches in which the two slots of each pair hold different events."""

    pairs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Stated:
    """Keep the partial matches whose first event (forward) or last event among the slots has one of the states."""

    slots: tuple[int, ...]
    forward: bool
    states: frozenset[State]


@dataclass(frozen=True, slots=True)
class Fits:
    """Keep the partial matches whose events among the slots lie in one window."""

    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """An equality between a nested part, at one of its slots, and what is around it: `inner = outer`.

    `end` is a value of a result's last event that is the same; without it, results with one last event can have
    several values.
    """

    slot: int
    inner: Value
    outer: Value
    end: Value | None


@dataclass(frozen=True, slots=True)
class Inner:
    """A nested part by itself, as views keep it.

    `program` finds the results whose last event is a given one, the anchor, and whose first is not before START;
    `nearest` finds only the one that begins last. `last` are the slots that can hold the anchor; `ordered` parts are a
    SEQ. What ties the part to the events around it is left out: an equality is the `link`, `after` is tested for each
    outer row.
    """

    slots: tuple[int, ...]
    last: tuple[int, ...]
    ordered: bool
    program: Program
    nearest: Program
    link: Link | None
    after: Program


@dataclass(frozen=True, slots=True)
class Nested:
    """Extend every partial match by the matches of a nested part between `lower` and `upper` (the Query-Interval).

    `way` names the strategy; `program` computes the part anew for each partial match, `inner` by itself.
    """

    name: str
    slots: tuple[int, ...]
    lower: Limit | None
    upper: Limit | None
    program: Program
    inner: Inner | None = None
    way: str = "iterative"


@dataclass(frozen=True, slots=True)
class Reject:
    """Remove the partial matches that have a match of a negated part between `lower` and `upper`.

    `outer` are the slots the negated part looks at; where none of `guard` is taken nothing is removed. `flat` keeps the
    partial matches that have none, by flat cases; if there are no such, `refusal` says why.
    """

    name: str
    region: int
    lower: Limit
    upper: Limit
    guard: tuple[int, ...]
    outer: tuple[int, ...]
    program: Program
    inner: Inner | None = None
    way: str = "iterative"
    flat: Program | None = None
    refusal: str = ""


Step = Bind | Union | Absent | Filter | Apart | Stated | Fits | Nested | Reject
Program = tuple[Step, ...]


def fence_of(bind: Bind, reject: Reject) -> Fence | None:
    """The negation as a fence, if it only asks for any event between the one just bound and what was bound before."""
    match reject.program:
        case (Bind(key=None, compare=(), distinct=(), filters=(), fences=()) as inner,) if not reject.guard:
            lower, upper = reject.lower, reject.upper
            if lower == Limit(Term.AFTER_LAST, (bind.slot,)) and bind.slot not in upper.slots:
                return Fence(inner.slot, upper, new_is_earlier=True)
            if upper == Limit(Term.BEFORE_FIRST, (bind.slot,)) and bind.slot not in lower.slots:
                return Fence(inner.slot, lower, new_is_earlier=False)
    return None


def is_open(program: Program) -> bool:
    """Whether the strategy of a positive part of the program is left to the cost model."""
    for step in program:
        match step:
            case Nested(way="auto"):
                return True
            case Union(programs) if any(map(is_open, programs)):
                return True
    return False


@dataclass(frozen=True, slots=True)
class PhysicalQuery:
    """A plan that can run. `forward` plans report a match once its window has closed, others at its last event.

    `flat` is another program for the same, with the positive parts that are left to the cost model bound like the rest.
    `looks_back` plans have a negation that reaches back to the window's start. `first` and `last` are the slots among
    which a match's first and last event are; those of `optional` may not be taken.
    """

    logical: LogicalQuery
    program: Program
    flat: Program | None
    forward: bool
    looks_back: bool
    first: tuple[int, ...]
    last: tuple[int, ...]
    optional: tuple[int, ...]
    ways: Ways
