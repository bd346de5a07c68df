"""Let a negated event narrow the range of the join before it."""

from __future__ import annotations

from dataclasses import replace

from eventcube.plan.steps import Bind, Bound, Fence, Filter, Program, Reject, Step, Term, recomputed


def fence_negated_events(program: Program) -> Program:
    """Bind only events with no negated event between them and the bound ones, instead of rejecting matches afterwards.

    >>> from eventcube.plan.rule_examples import show_steps
    >>> show_steps(fence_negated_events, "SEQ(A a, !B b, C c) WITHIN 5 s")
    bind c: C, each new event
    bind a: A, up to 5 seconds before c
    remove if there is (b) after a, before c
      bind b: B, there
    →
    bind c: C, each new event
    bind a: A, up to 5 seconds before c, no b after that and before c
    """
    steps: list[Step] = []
    for step in program:
        place = len(steps) - 1
        while place >= 0 and isinstance(steps[place], Reject | Filter):
            place -= 1
        bind = steps[place] if place >= 0 else None
        fence = _fence(bind, step) if isinstance(bind, Bind) and isinstance(step, Reject) else None
        if isinstance(bind, Bind) and fence is not None:
            steps[place] = replace(bind, fences=(*bind.fences, fence))
        else:
            steps.append(step)
    return program if len(steps) == len(program) else tuple(steps)


def _fence(bind: Bind, reject: Reject) -> Fence | None:
    """The negation as a fence, if any event between the new one and one bound before violates it."""
    if reject.guard or bind.latest:
        return None
    match recomputed(reject):
        case (Bind(key=None, compare=(), distinct=(), filters=(), fences=()) as inner,):
            lower, upper = reject.lower, reject.upper
            if lower == Bound(Term.AFTER_LAST, (bind.slot,)) and bind.slot not in upper.slots:
                return Fence(inner.slot, upper, new_is_earlier=True)
            if upper == Bound(Term.BEFORE_FIRST, (bind.slot,)) and bind.slot not in lower.slots:
                return Fence(inner.slot, lower, new_is_earlier=False)
    return None
