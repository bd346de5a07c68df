"""Follow events with the same links as one: forward link aggregation, along the way that the search takes."""

from __future__ import annotations

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
    return _Aggregation(last=last).program(program)


def aggregate_in_kept(program: Program) -> Program:
    """The same in the parts of a program whose matches are kept."""
    aggregation = _Aggregation(last=True)
    return tuple(aggregation.inside(step) if isinstance(step, Nested) else step for step in program)


class _Aggregation:
    """Changes programs, each once: a program that is shared by several places stays shared."""

    def __init__(self, *, last: bool) -> None:
        self._last = last
        self._known: dict[int, Program] = {}

    def program(self, program: Program) -> Program:
        if id(program) not in self._known:
            self._known[id(program)] = self._changed(program)
        return self._known[id(program)]

    def _changed(self, program: Program) -> Program:
        links = _links(program)
        steps: list[Step] = []
        clustered: list[int] = []
        for i, step in enumerate(program):
            needed = [slot for slot in clustered if slot in _needed(step)] if isinstance(step, Bind) else clustered
            if needed:
                steps.append(ExpandClusters(tuple(needed)))
                clustered = [slot for slot in clustered if slot not in needed]
            if isinstance(step, Bind) and _is_clustered(step):
                onward = tuple(links[step.slot])
                if onward or ((clustered or self._last) and i == len(program) - 1):
                    steps.append(BindClusters(step, onward))
                    clustered.append(step.slot)
                    continue
            steps.append(self.inside(step))
        if clustered:
            steps.append(ExpandClusters(tuple(clustered)))
        return program if len(steps) == len(program) and all(map(is_, steps, program)) else tuple(steps)

    def inside(self, step: Step) -> Step:
        """A step with the programs in it changed likewise; of negated parts only the nearest result matters."""
        match step:
            case Union(programs):
                changed = tuple(map(self.program, programs))
                return step if all(map(is_, changed, programs)) else replace(step, programs=changed)
            case Nested(forms=forms):
                in_forms = tuple(map(self._form, forms))
                return step if all(map(is_, in_forms, forms)) else replace(step, forms=in_forms)
        return step

    def _form(self, form: Form) -> Form:
        match form:
            case Recompute(program) | StandalonePart(program=program):
                changed = self.program(program)
                return form if changed is program else replace(form, program=changed)
        return form


def _is_clustered(bind: Bind) -> bool:
    """Whether the candidates of a join are all events of a range that bound events limit."""
    return bind.is_range and bind.states is None and not bind.latest and not bind.is_anchor


def _links(program: Program) -> dict[int, list[Link]]:
    """For each slot the places that joins find by its event, up to the first step that needs the event itself."""
    links: dict[int, list[Link]] = {}
    closed: set[int] = set()
    for step in program:
        if not isinstance(step, Bind):
            closed.update(links)
            continue
        links[step.slot] = []
        closed |= _needed(step)
        ranges = [(step.slot, step.states, bound) for bound in (step.lower, step.upper)]
        ranges += [(fence.slot, None, fence.bound) for fence in step.fences]
        for other, states, bound in ranges:
            if bound is None:
                continue
            for slot in bound.slots:
                if slot in links and slot not in closed:
                    links[slot].append(Link(other, states, replace(bound, slots=(slot,), optional=False)))
    return links


def _needed(bind: Bind) -> frozenset[int]:
    """The slots of which a join needs more than the place of the event."""
    if bind.is_range:
        return frozenset()
    values = [c.bound for c in (*bind.compare, *([bind.key] if bind.key else []))]
    return frozenset().union(*(slots_in(v) for v in values), *(p.slots for p in bind.filters), bind.distinct)
