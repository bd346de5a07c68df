"""Whether nested parts are looked up for outer matches, or bound one event after the other like everything else.

Where the events of a part are rare it is better to begin with them than with outer matches, most of which they rule
out. Which it is follows from how many events of each slot a window holds; `auto` asks for it from time to time.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from eventcube.engine.execute import Execution
from eventcube.engine.expressions import valid_mask
from eventcube.engine.kernels import Ints
from eventcube.engine.views.cost import ITERATIVE_CALL, KEEP, LOOK_UP, MATERIALIZE, VIEW_CALL
from eventcube.plan.physical import PhysicalQuery
from eventcube.plan.steps import Bind, Nested, Program, Reject, StandalonePart, State, Term, Union, form_of

_SAMPLE = 32
# For so many pairs of a due event and another a decision holds.
STAY = 1 << 22
# So much cheaper it must be to bind all events in order.
BETTER = 1.05
# What a join costs, however few partial matches there are, in events looked at.
_BIND = 3_000.0
_DUE = frozenset({State.DUE})
_ORDERED = (Term.BEFORE_FIRST, Term.BEFORE_LAST, Term.AFTER_LAST, Term.AFTER_FIRST)


class Flattening:
    """The choice between the two programs of a plan."""

    def __init__(self, plan: PhysicalQuery) -> None:
        self._plan = plan
        self._flat = False
        self._pairs = 0
        self.taken = {"nested": 0, "flat": 0}

    def program(self, execution: Execution, *, materialize: bool) -> Program:
        """The program to run; `materialize`: matches are made, not only counted."""
        plan = self._plan
        if plan.flat is None:
            return plan.program
        due = [execution.store.stack(s, _DUE).rows for s in (plan.first if plan.forward else plan.last)]
        self._pairs += sum(map(len, due)) * execution.store.size
        if self._pairs > STAY:
            self._pairs = 0
            rows = due[0] if len(due) == 1 else np.unique(np.concatenate(due))
            estimate = _Estimate(plan, rows, execution, materialize=materialize)
            self._flat = BETTER * estimate.cost(plan.flat) < estimate.cost(plan.program)
        self.taken["flat" if self._flat else "nested"] += 1
        return plan.flat if self._flat else plan.program

    def report(self) -> Iterator[str]:
        """How often each was taken, in words."""
        if self.taken["flat"]:
            flat, nested = self.taken["flat"], self.taken["nested"]
            yield f"parts bound like the rest {flat:,} times, by themselves {nested:,} times"


class _Estimate:
    """What programs cost over one store, in events looked at."""

    def __init__(self, plan: PhysicalQuery, due: Ints, execution: Execution, *, materialize: bool) -> None:
        self._execution, self._store, self._hand_on = execution, execution.store, materialize
        slots = plan.first if plan.forward else plan.last
        self._fresh = len(due) / max(1, sum(self._of(s) for s in slots))
        self._rows = due[:: max(1, len(due) // _SAMPLE)]
        ends = self._store.window_ends if plan.forward else self._store.window_starts
        self._ends = ends[self._rows]
        self._held: dict[int, float] = {}

    def cost(self, program: Program) -> float:
        """What the program costs."""
        return sum(cost for cost, _ in self._steps(program, 1.0, 0))

    def _steps(self, program: Program, partial: float, bound: int) -> Iterator[tuple[float, float]]:
        """The cost of each step, and how many partial matches there are after it; each has so many events before."""
        for i, step in enumerate(program):
            counted = i == len(program) - 1 and not self._hand_on
            match step:
                case Bind():
                    found = self._found(step, bound)
                    looked = 0.0 if counted and step.is_free else found
                    yield _BIND + partial * (1.0 + looked), partial * found
                    partial, bound = partial * found, bound + 1
                case Nested(slots=slots):
                    inner = form_of(step, StandalonePart)
                    held = [self._in_window(s) for s in slots]
                    some = np.cumprod([n / max(1, bound + k) for k, n in enumerate(reversed(held))])
                    anew = ITERATIVE_CALL + partial * float(some.sum() if not counted else some[:-1].sum() + 1.0)
                    one = prod(n / k for k, n in enumerate(held[:-1], 1))
                    last = self._fresh * max(self._of(s) for s in inner.last) if inner is not None else 0.0
                    view = VIEW_CALL + partial * LOOK_UP + last * (1.0 + (1.0 + KEEP) * one)
                    results = partial * float(some[-1])
                    yield min(anew, view) + (0.0 if counted else MATERIALIZE * results), results
                    partial, bound = results, bound + len(slots)
                case Union(programs):
                    branches = [list(self._steps(p, partial, bound)) for p in programs]
                    partial = sum(branch[-1][1] for branch in branches if branch)
                    yield sum(cost for branch in branches for cost, _ in branch), partial
                case Reject():
                    yield partial * LOOK_UP, partial
                case _:
                    yield partial, partial

    def _found(self, bind: Bind, bound: int) -> float:
        """How many events each partial match is extended by."""
        if bind.lower is None or bind.upper is None:
            return float(len(self._store.stack(bind.slot, bind.states).rows))
        found = self._in_window(bind.slot)
        if (bound > 1 and bind.lower.term in _ORDERED) or bind.upper.term in _ORDERED:
            found /= max(1, bound)
        return found * self._alike(bind)

    def _alike(self, bind: Bind) -> float:
        """The part of a slot's events that has the value that is looked up."""
        rows = self._store.stack(bind.slot).rows
        if bind.key is None or not len(rows):
            return 1.0
        column = self._execution.value_of(bind.key.new, rows[:: max(1, len(rows) // _SAMPLE)])
        values = column.values[valid_mask(column)]
        different = len(np.unique(values))
        # If most values of a sample differ, there are many more of them.
        return 1.0 / max(1, different if 2 * different < len(values) else len(rows))

    def _of(self, slot: int) -> int:
        return len(self._store.stack(slot).rows)

    def _in_window(self, slot: int) -> float:
        """How many events of a slot lie in a window, on average."""
        if slot not in self._held:
            rows = self._store.stack(slot).rows
            held = np.abs(np.searchsorted(rows, self._rows) - np.searchsorted(rows, self._ends))
            self._held[slot] = float(held.mean()) if len(held) else 0.0
        return self._held[slot]
