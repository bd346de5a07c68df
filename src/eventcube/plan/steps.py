"""The steps of a physical plan, over tables of partial matches, as plain data.

Every step works on half-open ranges of rows. Events are stored sorted by (key, order in time), so that "strictly
between p and q, inside the window" is a range, and a component's candidates are a range of its stack.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, TypeVar, cast

from eventcube.plan.expressions import Condition, Expression
from eventcube.plan.logical import NoFlatForm as NoFlatForm


class Term(Enum):
    """How one end of a range follows from the rows bound to some slots."""

    AFTER_LAST = "after the last of"
    AFTER_FIRST = "after the first of"
    WINDOW_START = "at most a window before"
    REGION_START = "from the start of the interval"
    BEFORE_FIRST = "before the first of"
    BEFORE_LAST = "before the last of"
    WINDOW_END = "at most a window after"
    REGION_END = "up to the end of the interval"
    ANCHOR = "from the anchor"
    AFTER_ANCHOR = "up to the anchor"

    # Members are compared by identity; the hash of an Enum is that of its name, which takes long.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a range of rows. `optional` says that some of the slots may not be taken."""

    term: Term
    slots: tuple[int, ...] = ()
    optional: bool = False


class State(Enum):
    """Where an event stands: its matches are already reported, are due now, or are not yet due."""

    DONE = 0
    DUE = 1
    FUTURE = 2

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Compare:
    """A predicate with the new event on one side only: `new op bound`; and its text for people."""

    new: Expression
    op: str
    bound: Expression
    text: str


@dataclass(frozen=True, slots=True)
class Residual:
    """A predicate that is tested on partial matches, with its text for people.

    It is not applied where one of the `optional` slots is not taken, nor where none of `guard` is.
    """

    condition: Condition
    slots: frozenset[int]
    optional: tuple[int, ...]
    guard: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Fence:
    """No event of `slot` may lie between the new event and `bound`: a negation that narrows the range of candidates."""

    slot: int
    bound: Bound
    new_is_earlier: bool


@dataclass(frozen=True, slots=True)
class Bind:
    """Extend every partial match by one event for `slot`: the join step.

    Candidates lie from `lower` to before `upper`; they are looked up by `key` if there is one, must meet `compare`,
    differ from the events of `distinct`, and then pass `filters`. No event lies between them and a fence. Where only
    the first event of the result matters, `latest` takes the latest candidate alone: none reaches less far back.
    """

    slot: int
    lower: Bound | None
    upper: Bound | None
    states: frozenset[State] | None = None
    key: Compare | None = None
    compare: tuple[Compare, ...] = ()
    distinct: tuple[int, ...] = ()
    filters: tuple[Residual, ...] = ()
    fences: tuple[Fence, ...] = ()
    latest: bool = False
    id: int = 0

    @property
    def is_anchor(self) -> bool:
        """Whether the event can only be the anchor."""
        return self.lower is not None and self.lower.term is Term.ANCHOR

    @property
    def is_free(self) -> bool:
        """Whether every event in the range qualifies."""
        return self.is_plain and not self.fences

    @property
    def is_plain(self) -> bool:
        """Whether nothing but a range and fences limits the candidates."""
        return not (self.key or self.compare or self.distinct or self.filters)

    @property
    def is_range(self) -> bool:
        """Whether the candidates are all events of a range that bound events and fences limit."""
        return self.lower is not None and self.upper is not None and self.is_plain


@dataclass(frozen=True, slots=True)
class Union:
    """Everything that any of the programs makes of the table."""

    programs: tuple[Program, ...]
    id: int = 0


@dataclass(frozen=True, slots=True)
class Absent:
    """Mark slots as not taken: another alternative was."""

    slots: tuple[int, ...]
    id: int = 0


@dataclass(frozen=True, slots=True)
class Filter:
    """Keep the partial matches for which the predicates hold."""

    predicates: tuple[Residual, ...]
    id: int = 0


@dataclass(frozen=True, slots=True)
class DistinctEvents:
    """Keep the partial matches in which the two slots of each pair hold different events."""

    pairs: tuple[tuple[int, int], ...]
    id: int = 0


@dataclass(frozen=True, slots=True)
class FilterByState:
    """Keep the partial matches whose first event (forward) or last event among the slots has one of the states."""

    slots: tuple[int, ...]
    forward: bool
    states: frozenset[State]
    id: int = 0


@dataclass(frozen=True, slots=True)
class WithinWindow:
    """Keep the partial matches whose events among the slots lie in one window."""

    slots: tuple[int, ...]
    id: int = 0


@dataclass(frozen=True, slots=True)
class Narrow:
    """Keep the partial matches whose event in `slot` is in the stack of that number; it was bound for another query."""

    slot: int
    stack: int
    id: int = 0


@dataclass(frozen=True, slots=True)
class InOrder:
    """Keep the partial matches in which the first slot of each pair holds an earlier event than the second."""

    pairs: tuple[tuple[int, int], ...]
    id: int = 0


@dataclass(frozen=True, slots=True)
class KeepLatest:
    """Keep the partial matches whose event for the join is the latest that it could be: one of each set of twins.

    Twins differ in nothing but that event.
    """

    bind: Bind
    id: int = 0


@dataclass(frozen=True, slots=True)
class CorrelationKey:
    """An equality between a nested part, at one of its slots, and the events around it: `inner = outer`.

    `end` is a value of a result's last event that equals `inner`; without it, results with the same last event can have
    different values.
    """

    slot: int
    inner: Expression
    outer: Expression
    end: Expression | None


@dataclass(frozen=True, slots=True)
class Recompute:
    """Run `program` for each outer row: the part is computed again each time."""

    program: Program


@dataclass(frozen=True, slots=True)
class StandalonePart:
    """A nested part without its correlation to outer events, so that views can store its results.

    `program` finds the results whose last event is a given one, the anchor, and whose first is not before START;
    `nearest` finds only the one that begins last. `last` are the slots that can hold the anchor; `ordered` parts are a
    SEQ. One equality with outer events is the `key`; the other tests against them are in `residual`, which is run for
    each pair of an outer row and a result.
    """

    slots: tuple[int, ...]
    last: tuple[int, ...]
    ordered: bool
    program: Program
    nearest: Program
    key: CorrelationKey | None
    residual: Program


@dataclass(frozen=True, slots=True)
class FlatCases:
    """Exclusive flat cases of a negated part: `program` keeps the outer rows without a match of the part."""

    program: Program


# The forms of a nested part, of which a strategy uses one or several.
Form = Recompute | StandalonePart | FlatCases | NoFlatForm
_Form = TypeVar("_Form", bound=Form)
_Programs = TypeVar("_Programs")


@dataclass(frozen=True, slots=True)
class Nested:
    """Extend every partial match by the matches of a nested part between `lower` and `upper` (the Query-Interval).

    `forms` are what the strategy can use; the first is always Recompute.
    """

    name: str
    slots: tuple[int, ...]
    lower: Bound | None
    upper: Bound | None
    strategy: str
    forms: tuple[Form, ...]
    id: int = 0


@dataclass(frozen=True, slots=True)
class Reject:
    """Remove the partial matches that have a match of a negated part between `lower` and `upper`.

    `outer` are the outer slots that the part refers to; where none of `guard` is taken nothing is removed. `forms` are
    as for a nested part.
    """

    name: str
    region: int
    lower: Bound
    upper: Bound
    guard: tuple[int, ...]
    outer: tuple[int, ...]
    strategy: str
    forms: tuple[Form, ...]
    id: int = 0


Part = Nested | Reject


def form_of(part: Part, kind: type[_Form]) -> _Form | None:
    """The part's form of that kind, if it has one."""
    return next((form for form in part.forms if isinstance(form, kind)), None)


def only_emptiness(part: Part) -> bool:
    """Whether results of a part are not needed, but only if there is one: last events tell which intervals have it."""
    form = form_of(part, StandalonePart)
    assert form is not None
    return not (isinstance(part, Nested) or form.residual or (form.key is not None and form.key.end is None))


def recomputed(part: Part) -> Program:
    """The program that computes a part for each outer row."""
    form = form_of(part, Recompute)
    assert form is not None
    return form.program


Test = Filter | DistinctEvents | FilterByState | WithinWindow | InOrder | Narrow | KeepLatest
Step = Bind | Union | Absent | Test | Nested | Reject
Program = tuple[Step, ...]


def rebuilt(programs: _Programs, change: Callable[[Any], Any]) -> _Programs:
    """The programs with `change` applied to every step, form and tuple of them, inner ones first.

    A node that is shared by several places is changed once and stays shared.
    """
    known: dict[int, Any] = {}

    def rebuild(node: Any) -> Any:
        names = _held(type(node))
        if names is None:
            return node
        if id(node) not in known:
            if isinstance(node, tuple):
                inner = tuple(map(rebuild, node))
                same = all(map(operator.is_, inner, node))
                known[id(node)] = change(node if same else inner)
            else:
                changed = {name: new for name in names if (new := rebuild(value := getattr(node, name))) is not value}
                known[id(node)] = change(replace(node, **changed) if changed else node)
        return known[id(node)]

    return cast("_Programs", rebuild(programs))


# The fields of steps and forms that hold steps.
_HOLDS_STEPS = ("programs", "program", "nearest", "residual", "forms", "bind")


_names: dict[type, tuple[str, ...] | None] = {}


def _held(kind: type) -> tuple[str, ...] | None:
    """The fields that hold steps, of a class of steps, forms or tuples; None for other classes."""
    if kind not in _names:
        is_tuple, holds = issubclass(kind, tuple), issubclass(kind, tuple | Step | Form)
        _names[kind] = (
            tuple(f.name for f in (() if is_tuple else fields(kind)) if f.name in _HOLDS_STEPS) if holds else None
        )
    return _names[kind]


def numbered(programs: _Programs, first: int = 1) -> _Programs:
    """The programs with a number for each step; a step that is shared by several places has one.

    Steps of one query have different numbers, by which what strategies keep for parts is found.
    """
    count = itertools.count(first)
    return rebuilt(programs, lambda node: replace(node, id=next(count)) if isinstance(node, Step) else node)


def highest_number(programs: tuple[Program, ...]) -> int:
    """The highest number of a step in the programs, at any depth."""
    numbers = [0]

    def note(node: Any) -> Any:
        numbers.append(node.id if isinstance(node, Step) else 0)
        return node

    rebuilt(programs, note)
    return max(numbers)


def is_open(program: Program) -> bool:
    """Whether the strategy of a positive part of the program is left to the cost model."""
    for step in program:
        match step:
            case Nested(strategy="auto"):
                return True
            case Union(programs) if any(map(is_open, programs)):
                return True
    return False
