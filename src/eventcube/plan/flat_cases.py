"""The flat form of a negated part as steps: one branch for each of its exclusive cases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from eventcube.options import ITERATIVE
from eventcube.plan.logical import FlatForm, LogicalQuery, Predicate
from eventcube.plan.steps import Absent, Bind, Bound, Program, Recompute, Reject, Step, Term, Union

# Adds predicates on its event to a join step.
Join = Callable[[Bind, Sequence[Predicate]], Bind]

_START, _END = Bound(Term.REGION_START), Bound(Term.REGION_END)


def flat_cases(form: FlatForm, query: LogicalQuery, join: Join) -> Program:
    """Steps that keep the partial matches without a match of the negated part between START and END."""
    slots = form.slots
    tested = [[p for p in predicates if p.is_tested] for predicates in form.predicates]

    def before_next(place: int) -> Bound:
        """The upper bound of a slot: in a SEQ, the latest event of the next slot."""
        return Bound(Term.BEFORE_FIRST, (slots[place + 1],)) if form.ordered and place + 1 < len(slots) else _END

    def latest(place: int) -> Bind:
        bind = join(Bind(slots[place], _START, before_next(place)), tested[place])
        assert not bind.filters, "only a comparison can be tested on the latest event alone"
        return replace(bind, latest=True)

    def missing(place: int) -> Reject:
        slot = query.slots[slots[place]]
        outer = tuple(sorted({s for p in tested[place] for s in p.slots} - {slot.index}))
        bind = join(Bind(slot.index, _START, _END), tested[place])
        forms = (Recompute((bind,)),)
        return Reject(slot.name, slot.region, _START, before_next(place), (), outer, ITERATIVE, forms)

    branches: list[Program] = []
    for absent, present in form.cases():
        # A SEQ is searched backwards from its last event.
        binds: list[Step] = [latest(place) for place in (reversed(present) if form.ordered else present)]
        branches.append((*binds, missing(absent), Absent(slots)))
    return (Union(tuple(branches)),)
