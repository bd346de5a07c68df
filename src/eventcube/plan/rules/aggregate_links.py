"""Follow events with the same links as one: forward link aggregation, along the way that the search takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from operator import is_

from eventcube.plan.expressions import slots_in
from eventcube.plan.steps import (
    Bind,
    BindClusters,
    ExpandClusters,
    Form,
    Link,
    Nested,
    Program,
    Recompute,
    StandalonePart,
    Step,
    Union,
)


def aggregate_links(program: Program, *, last: bool = False) -> Program:
    """Bind clusters of events where nothing but the place of an event matters to the joins that follow.

    A cluster is expanded before a step that needs its events, or at the end. With `last`, the events of the last join
    are clusters even if no others are. After Nishimura and Kawashima 2014, whose search begins with the first event, so
    that links lead forward; here it begins with the event that makes a match due, mostly the last, and links lead back.

    >>> from eventcube.plan.rule_examples import show_steps
    >>> show_steps(aggregate_links, "SEQ(A a, B b, C c) WITHIN 5 s")
    bind c: C, each new event
    bind b: B, up to 5 seconds before c
    bind a: A, up to 5 seconds before c, before b
    →
    bind c: C, each new event
    bind clusters of b: B, up to 5 seconds before c
    bind clusters of a: A, up to 5 seconds before c, before b
    expand the clusters of b, a
    """
    steps: list[Step] = []
    clustered: list[int] = []
    for i, step in enumerate(program):
        needed = tuple(slot for slot in clustered if _needs(step, slot))
        if needed:
            steps.append(ExpandClusters(needed))
            clustered = [slot for slot in clustered if slot not in needed]
        if isinstance(step, Bind) and _is_clustered(step):
            links = tuple(_links(step.slot, program[i + 1 :]))
            if links or ((clustered or last) and i == len(program) - 1):
                steps.append(BindClusters(step, links))
                clustered.append(step.slot)
                continue
        steps.append(_inside(step, last=last))
    if clustered:
        steps.append(ExpandClusters(tuple(clustered)))
    return program if len(steps) == len(program) and all(map(is_, steps, program)) else tuple(steps)


def aggregate_in_kept(program: Program) -> Program:
    """The same in the parts of a program whose matches are kept."""
    return tuple(_inside(step, last=True) if isinstance(step, Nested) else step for step in program)


def _inside(step: Step, *, last: bool) -> Step:
    """A step with the programs in it changed likewise; of negated parts only the nearest result matters."""
    match step:
        case Union(programs):
            changed = tuple(aggregate_links(program, last=last) for program in programs)
            return step if all(map(is_, changed, programs)) else replace(step, programs=changed)
        case Nested(forms=forms):
            in_forms = tuple(_in_form(form, last=last) for form in forms)
            return step if all(map(is_, in_forms, forms)) else replace(step, forms=in_forms)
    return step


def _in_form(form: Form, *, last: bool) -> Form:
    match form:
        case Recompute(program) | StandalonePart(program=program):
            changed = aggregate_links(program, last=last)
            return form if changed is program else replace(form, program=changed)
    return form


def _is_clustered(bind: Bind) -> bool:
    """Whether the candidates of a join are all events of a range that bound events limit."""
    return bind.is_range and bind.states is None and not bind.latest and not bind.is_anchor


def _links(slot: int, rest: Program) -> Iterator[Link]:
    """The places that the joins up to the first step that needs the event itself find by it."""
    for step in rest:
        if not isinstance(step, Bind) or _needs(step, slot):
            return
        ranges = [(step.slot, step.states, bound) for bound in (step.lower, step.upper)]
        ranges += [(fence.slot, None, fence.bound) for fence in step.fences]
        for other, states, bound in ranges:
            if bound is not None and slot in bound.slots:
                yield Link(other, states, replace(bound, slots=(slot,), optional=False))


def _needs(step: Step, slot: int) -> bool:
    """Whether a step depends on more than the place of a slot's event."""
    if not isinstance(step, Bind):
        return True
    values = [c.bound for c in (*step.compare, *([step.key] if step.key else []))]
    used = frozenset().union(*(slots_in(v) for v in values), *(p.slots for p in step.filters), step.distinct)
    return slot in used
