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
        """The bound of an event that is sought before the last of the next one."""
        return Bound(Term.BEFORE_FIRST, (slots[place + 1],)) if form.ordered and place + 1 < len(slots) else _END

    def latest(place: int) -> Bind:
        found = join(Bind(slots[place], _START, before_next(place)), tested[place])
        assert not found.filters, "only a comparison can be asked of the latest event alone"
        return replace(found, latest=True)

    def missing(place: int) -> Reject:
        slot = query.slots[slots[place]]
        outer = tuple(sorted({s for p in tested[place] for s in p.slots} - {slot.index}))
        found = join(Bind(slot.index, _START, _END), tested[place])
        forms = (Recompute((found,)),)
        return Reject(slot.name, slot.region, _START, before_next(place), (), outer, ITERATIVE, forms)

    branches: list[Program] = []
    for gone, there in form.cases():
        # A SEQ is followed back from its last event.
        present: list[Step] = [latest(place) for place in (reversed(there) if form.ordered else there)]
        branches.append((*present, missing(gone), Absent(slots)))
    return (Union(tuple(branches)),)
