"""The default: whichever strategy should cost least for the outer rows at hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from eventcube.engine.counters import Counters
from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.table import Table
from eventcube.engine.views.balanced import Balanced
from eventcube.engine.views.cost import (
    ITERATIVE_CALL,
    STEP,
    VIEW_CALL,
    Asked,
    Costs,
    exists_costs,
    intervals,
    join_costs,
    sample,
)
from eventcube.engine.views.iterative import Iterative
from eventcube.engine.views.rewrite import Rewrite
from eventcube.engine.views.strategy import Executor, Strategy, interval, register, standalone
from eventcube.engine.views.view import NEVER
from eventcube.plan.steps import Bind, FlatCases, NoFlatForm, Part, Program, Reject, Union, form_of, recomputed

# For so many calls a decision holds if they are alike and cost as much as the decision; for fewer if they cost more.
_STAY, _DECIDE = 15, 12_000.0


@dataclass(slots=True)
class Tally:
    """What was expected of each strategy so far, how often each was taken, and what came of it."""

    expected: dict[str, float] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    outer: int = 0
    looked: int = 0
    computed: int = 0

    @contextmanager
    def watch(self, counters: Counters) -> Iterator[None]:
        """Take note of the work that is done meanwhile."""
        looked, computed = counters.candidates, counters.inner_computed
        yield
        self.looked += counters.candidates - looked
        self.computed += counters.inner_computed - computed

    def add(self, costs: Costs, chosen: str, outer: int) -> None:
        """Take note of one call."""
        for name, cost in costs.items():
            self.expected[name] = self.expected.get(name, 0.0) + cost
        self.taken[chosen] = self.taken.get(chosen, 0) + 1
        self.outer += outer


@register("auto")
class Auto:
    """Decides by the cost model, anew every few calls or when there are more or fewer outer rows.

    What the view has then counts for it. All of it follows from counts, so that the same run always decides the same.
    """

    def __init__(self, part: Part) -> None:
        self.part, self.inner = part, standalone(part)
        self.balanced = Balanced(part)
        self._known: dict[str, Strategy] = {"iterative": Iterative(part), "balanced": self.balanced}
        self._no_flat_form = form_of(part, NoFlatForm)
        if form_of(part, FlatCases) is not None:
            self._known["rewrite"] = Rewrite(part)
        self.tally = Tally()
        self._looked = _whole(self.inner.nearest)
        # How many results there were, how many there could have been, and how many could be for one outer row.
        self._given = self._possible = self._each = 0.0
        self._expected: Costs | None = None
        self._outer = self._stays = 0
        program = recomputed(part)
        last = program[-1]
        self._narrowed = _narrowed(program)
        self._tested = not isinstance(last, Bind) or bool(last.compare or last.filters or last.distinct)

    @property
    def bytes(self) -> int:
        """What is kept for later."""
        return self.balanced.bytes

    def join(self, table: Table, executor: Executor) -> Iterator[Table]:
        """The outer rows extended by the inner matches inside each one's interval."""
        results = self._cheapest(table, executor, materialize=True).join(table, executor)
        while True:
            with self.tally.watch(executor.counters):
                out = next(results, None)
            if out is None:
                return
            self._found(len(out))
            yield out

    def count(self, table: Table, executor: Executor) -> int:
        """How many rows `join` would give."""
        chosen = self._cheapest(table, executor, materialize=False)
        with self.tally.watch(executor.counters):
            found = chosen.count(table, executor)
        self._found(found)
        return found

    def exists(self, table: Table, executor: Executor) -> Bools:
        """For each outer row whether there is an inner match inside its interval."""
        chosen = self._cheapest(table, executor, materialize=False)
        with self.tally.watch(executor.counters):
            return chosen.exists(table, executor)

    def _found(self, results: int) -> None:
        self._given += results if self._each else 0

    def close(self, counters: Counters) -> None:
        """Nothing more will be asked."""
        self.balanced.close(counters)

    def report(self) -> Iterator[str]:
        """What was expected of each strategy and what was done."""
        tally = self.tally
        taken = ", ".join(f"{name} ({times:,})" for name, times in sorted(tally.taken.items()))
        yield f"asked for {tally.outer:,} outer rows; decided for {taken}"
        for name, cost in sorted(tally.expected.items(), key=lambda e: e[1]):
            yield f"expected of {name}: {cost:,.0f}, in events looked at, calls and look-ups included"
        yield f"measured: {tally.looked:,} events looked at, {tally.computed:,} results computed"
        if self._no_flat_form is not None:
            yield f"no flat form: {self._no_flat_form.reason}"
        if self._possible:
            yield f"of the results its events could make, {self._given / self._possible:.3g} were results"

    def _cheapest(self, table: Table, executor: Executor, *, materialize: bool) -> Strategy:
        """Decide, or stay with what was decided for about as many outer rows a few calls ago."""
        if self._expected is None or not self._stays or not self._outer <= 2 * len(table) <= 4 * self._outer:
            self._each = 0.0
            self._expected = self._little(len(table), executor) or self._costs(table, executor, materialize=materialize)
            self._outer = len(table)
            self._stays = int(_STAY * min(1.0, _DECIDE / min(self._expected.values())))
        else:
            self._stays -= 1
        self._possible += len(table) * self._each
        name, _ = min(self._expected.items(), key=lambda cost: cost[1])
        self.tally.add(self._expected, name, len(table))
        return self._known[name]

    def _little(self, outer: int, executor: Executor) -> Costs | None:
        """What computing anew costs if every event lies in every interval, if that is less than to ask a view."""
        work = possible = 1.0
        for j, slot in enumerate(reversed(self.inner.slots), 1):
            possible *= len(executor.store.stack(slot).rows) / (j if self.inner.ordered else 1)
            work += possible
        cost = ITERATIVE_CALL + outer * (STEP + work)
        return {"iterative": cost} if cost < VIEW_CALL else None

    def _costs(self, table: Table, executor: Executor, *, materialize: bool) -> Costs:
        lo, hi = interval(self.part, sample(table), executor)
        own = intervals(self.inner, len(table), lo, hi, executor)
        negated = isinstance(self.part, Reject)
        self._each = 0.0 if negated else float(own.partial[-1])
        asked = Asked(
            own,
            0,
            self._selectivity(executor),
            self._narrowed,
            self._tested,
            tied=bool(self.inner.residual),
            plain=executor.store.order is None and self.inner.key is None,
        )
        if asked.recompute(materialize=materialize) > asked.looked_up():
            # Otherwise a view is behind whatever it has.
            asked = replace(asked, fresh=self._fresh(lo, hi, executor))
        if negated:
            return exists_costs(asked, self._looked, len(self.inner.slots) if "rewrite" in self._known else None)
        return join_costs(asked, materialize=materialize)

    def _selectivity(self, executor: Executor) -> float:
        """What part of the possible results there were; as far as nothing is known, an equality leaves one value."""
        if self._possible:
            return min(1.0, self._given / self._possible)
        return 1.0 if self.inner.key is None else 1.0 / self.balanced.view.attach(executor).groups

    def _fresh(self, lo: Ints, hi: Ints, executor: Executor) -> int:
        """How many of the last events in the intervals the view does not have yet."""
        view = self.balanced.view
        view.attach(executor)
        anchors = view.anchors()
        ends = anchors[np.searchsorted(anchors, lo.min()) : np.searchsorted(anchors, hi.max())]
        return int((view.since[ends] == NEVER).sum())


def _narrowed(program: Program) -> int:
    """From which component on only what meets the conditions is left, if the part is computed anew."""
    for i, step in enumerate(program):
        if isinstance(step, Bind) and (step.key is not None or step.compare or step.filters):
            return i if step.key is not None else i + 1
    return len(program)


def _whole(program: Program) -> int:
    """How many components of a part must be gone through to find the nearest result of one last event."""
    found = 0
    for step in program:
        match step:
            case Bind(latest=False) if not step.is_anchor:
                found += 1
            case Union(programs):
                found += max(_whole(p) for p in programs)
    return found
