"""Follow only the latest candidate where only the result that begins last matters."""

from __future__ import annotations

from dataclasses import replace

from eventcube.plan.expressions import slots_in
from eventcube.plan.steps import Bind, Bound, Program, Step, Term, Union


def take_latest(program: Program) -> Program:
    """Of all results with one last event, find one whose first event is the latest: enough to know whether one exists.

    >>> from eventcube.plan.rule_examples import show_steps
    >>> show_steps(take_latest, "SEQ(A a, B b, C c) WITHIN 5 s")
    bind c: C, each new event
    bind b: B, up to 5 seconds before c
    bind a: A, up to 5 seconds before c, before b
    →
    bind c: C, each new event
    take the last B b, up to 5 seconds before c
    take the last A a, up to 5 seconds before c, before b
    """
    steps: list[Step] = []
    for i, step in enumerate(program):
        rest = program[i + 1 :]
        match step:
            case Union(programs) if not rest:
                steps.append(Union(tuple(take_latest(p) for p in programs)))
            case Bind(filters=()) if all(_is_only_upper_bound(later, step.slot) for later in rest):
                steps.append(replace(step, latest=True))
            case _:
                steps.append(step)
    return tuple(steps)


def _is_only_upper_bound(step: Step, slot: int) -> bool:
    """Whether a later step uses the slot's event only as an upper bound, so that a later event is at least as good."""
    if not isinstance(step, Bind) or slot in step.distinct or any(_uses(f.bound, slot) for f in step.fences):
        return False
    if _uses(step.lower, slot) or (_uses(step.upper, slot) and not _is_before(step.upper)):
        return False
    values = [c.bound for c in (*step.compare, *([step.key] if step.key else []))]
    used_slots = frozenset().union(*(slots_in(v) for v in values), *(p.slots for p in step.filters))
    return slot not in used_slots


def _uses(bound: Bound | None, slot: int) -> bool:
    return bound is not None and slot in bound.slots


def _is_before(bound: Bound | None) -> bool:
    return bound is not None and bound.term is Term.BEFORE_FIRST
