"""Turn a logical plan into a physical one: scan, program and sink."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

from eventcube.options import AUTO
from eventcube.plan.closing import closing_of
from eventcube.plan.dictionary import dictionary_of
from eventcube.plan.flat_alternatives import flat_alternatives
from eventcube.plan.logical import Leaf, LogicalQuery, Seq, positive_parts, regions
from eventcube.plan.order import Order
from eventcube.plan.per_event import is_per_first, looks_ahead
from eventcube.plan.physical import FLAT, NESTED, Alternative, PhysicalQuery
from eventcube.plan.program import ProgramBuilder
from eventcube.plan.progress import Due, Progress
from eventcube.plan.rules.bind_in_place import bind_all_in_place
from eventcube.plan.rules.merge_nested import merge_nested
from eventcube.plan.rules.rewrite import rewrite_steps
from eventcube.plan.scan import scan_of, sink_of
from eventcube.plan.steps import Program, State, Term, is_open, numbered

_Made = TypeVar("_Made")


def build(
    logical: LogicalQuery, limit: int | None = None, sink: str | None = None, flat: str = AUTO
) -> tuple[PhysicalQuery, tuple[str, ...]]:
    """The physical plan of a rewritten query, and the names of the rules that changed its steps.

    `limit` is one that is set beside that of the query; aggregates have none. `sink` names another sink than the one
    that the clauses of the query ask for. `flat` is the strategy for sequences.
    """
    outline = _once(_outline, logical, flat)
    scan = scan_of(logical)
    tested = (p.condition for region in regions(logical.region) for p in region.predicates if p.is_tested)
    plan = PhysicalQuery(
        logical.schema,
        scan,
        outline.alternatives,
        outline.unsuited,
        dictionary_of(tested),
        sink_of(logical, limit, sink, closing_of(logical, outline.forward, outline.last), forward=outline.forward),
        outline.forward,
        outline.looks_back,
        tuple(slot.index for slot in logical.positive),
        outline.first,
        outline.last,
        outline.optional,
    )
    return plan, outline.fired


class _Outline(NamedTuple):
    """What of a plan follows from the pattern and its conditions; `fired` are the rules that changed steps."""

    alternatives: tuple[Alternative, ...]
    unsuited: str | None
    fired: tuple[str, ...]
    forward: bool
    looks_back: bool
    first: tuple[int, ...]
    last: tuple[int, ...]
    optional: tuple[int, ...]


def _outline(logical: LogicalQuery, flat: str) -> _Outline:
    order = _order(logical)
    forward = _is_forward(logical, order)
    program, end = _program(logical, order)
    forms = {NESTED: logical}
    if is_open(program):
        forms[FLAT] = merge_nested(bind_all_in_place(logical))
    return _Outline(
        *flat_alternatives(
            forms, flat, lambda query: program if query is logical else program_of(query)[0], forward=forward
        ),
        forward,
        any(test.lower.term is Term.WINDOW_START for test in order.tests),
        order.earliest(order.all),
        order.latest(order.all),
        tuple(sorted(end.optional)),
    )


# What was made for queries that are no more than a SEQ of single events, and how many of these are kept.
_made: dict[tuple[object, ...], Any] = {}
_MOST_MADE = 256


def _once(make: Callable[..., _Made], logical: LogicalQuery, *more: str) -> _Made:
    """What is made of a query; it is the same for all SEQs of as many single events without conditions between them.

    But for those with PER, which are reported by the event that it names.
    """
    node = logical.region.node
    if not logical.region.is_plain:
        return make(logical, *more)
    per = logical.results.per
    key = make, node, None if per is None else per.slot, *more
    made = _made.get(key)
    if made is None:
        made = make(logical, *more)
        if len(_made) >= _MOST_MADE:
            _made.clear()
        _made[key] = made
    return cast("_Made", made)


def program_from_start(logical: LogicalQuery, first: int) -> Program | None:
    """A program that binds single events from the first on; None for a query that is no SEQ of them, or looks ahead.

    Its steps are numbered from `first` on.
    """
    node = logical.region.node
    if not isinstance(node, Seq) or not all(isinstance(part, Leaf) for part in positive_parts(node)):
        return None
    program = _once(_from_start, logical)
    return None if program is None else numbered(program, first)


def _from_start(logical: LogicalQuery) -> Program | None:
    order = _order(logical)
    if _is_forward(logical, order):
        return None
    (program,), _ = rewrite_steps((_program(logical, order, from_start=True)[0],))
    return program


def unrestricted_program(logical: LogicalQuery) -> Program:
    """A program that finds all matches, due or not, from the first components on; its steps are not numbered."""
    return _once(_unrestricted, logical)


def _unrestricted(logical: LogicalQuery) -> Program:
    program, _ = ProgramBuilder(logical, logical.region, _order(logical), from_start=True).program(None)
    (rewritten,), _ = rewrite_steps((program,))
    return rewritten


def program_of(logical: LogicalQuery) -> tuple[Program, Progress]:
    """The steps of a query, before the rules for steps."""
    return _program(logical, _order(logical))


def _program(logical: LogicalQuery, order: Order, *, from_start: bool = False) -> tuple[Program, Progress]:
    # Events are sorted by time, so the part that is due comes first and the rest is sought on one side of it.
    due = Due(_is_forward(logical, order), frozenset({State.DUE}))
    return ProgramBuilder(logical, logical.region, order, from_start=from_start).program(due)


def _order(logical: LogicalQuery) -> Order:
    return Order(logical.region, logical.slots, outermost=True)


def _is_forward(logical: LogicalQuery, order: Order) -> bool:
    """Whether a match is reported once its window has closed.

    A negation looks ahead to the window's end, or all matches of a first event are wanted together.
    """
    return looks_ahead(order) or is_per_first(logical, order)
