"""The default: whichever strategy should cost least for the outer rows at hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from eventcube.engine.counters import Counters
from eventcube.engine.kernels import Bools
from eventcube.engine.table import Table
from eventcube.engine.views.balanced import Balanced
from eventcube.engine.views.cost import (
    ITERATIVE_CALL,
    STEP,
    VIEW_CALL,
    Costs,
    exists_costs,
    intervals,
    join_costs,
    sample,
)
from eventcube.engine.views.iterative import Iterative
from eventcube.engine.views.rewrite import Rewrite
from eventcube.engine.views.strategy import Executor, Part, Strategy, interval, register
from eventcube.engine.views.view import NEVER
from eventcube.plan.physical import Bind, Program, Reject, Union

# For so many calls a decision holds, if they are alike.
_STAY = 15


@dataclass(slots=True)
class Tally:
    """What was expected of each strategy so far, how often each was taken, and what came of it."""

    expected: dict[str, float] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    outer: int = 0

    def add(self, costs: Costs, chosen: str, outer: int) -> None:
        """Take note of one decision."""
        for name in ("iterative", "view", "rewrite"):
            cost = getattr(costs, name)
            if cost is not None:
                own = "balanced" if name == "view" else name
                self.expected[own] = self.expected.get(own, 0.0) + cost
        self.taken[chosen] = self.taken.get(chosen, 0) + 1
        self.outer += outer


@register("auto")
class Auto:
    """Decides by the cost model, anew every few calls or when there are more or fewer outer rows.

    What the view has then counts for it. All of it follows from counts, so that the same run always decides the same.
    """

    def __init__(self, part: Part) -> None:
        assert part.inner is not None
        self.part, self.inner = part, part.inner
        self.iterative, self.balanced = Iterative(part), Balanced(part)
        self.rewrite = Rewrite(part) if isinstance(part, Reject) and part.flat is not None else None
        self.tally = Tally()
        self._looked = _whole(self.inner.nearest)
        self._given = self._possible = 0.0
        self._last: Strategy | None = None
        self._outer = self._stays = 0
        last = part.program[-1]
        self._narrowed = _narrowed(part.program)
        self._tested = not isinstance(last, Bind) or bool(last.compare or last.filters or last.distinct)

    @property
    def bytes(self) -> int:
        """What is kept for later."""
        return self.balanced.bytes

    def join(self, table: Table, executor: Executor) -> Iterator[Table]:
        """The outer rows extended by the inner matches inside each one's interval."""
        for out in self._cheapest(table, executor, hand_on=True).join(table, executor):
            self._given += len(out)
            yield out

    def count(self, table: Table, executor: Executor) -> int:
        """How many rows `join` would give."""
        found = self._cheapest(table, executor, hand_on=False).count(table, executor)
        self._given += found
        return found

    def exists(self, table: Table, executor: Executor) -> Bools:
        """For each outer row whether there is an inner match inside its interval."""
        return self._cheapest(table, executor, hand_on=False).exists(table, executor)

    def close(self, counters: Counters) -> None:
        """Nothing more will be asked."""
        self.balanced.close(counters)

    def report(self) -> Iterator[str]:
        """What was expected of each strategy and what was done."""
        taken = ", ".join(f"{name} {times:,} times" for name, times in sorted(self.tally.taken.items()))
        yield f"asked for {self.tally.outer:,} outer rows; decided for {taken}"
        for name, cost in sorted(self.tally.expected.items(), key=lambda e: e[1]):
            yield f"expected of {name}: {cost:,.0f} events looked at"
        if isinstance(self.part, Reject) and self.part.flat is None:
            yield f"no flat form: {self.part.refusal}"
        if self._possible:
            yield f"selectivity: expected 1, found {self._given / self._possible:.3g}"

    def _cheapest(self, table: Table, executor: Executor, *, hand_on: bool) -> Strategy:
        """Decide, or stay with what was decided for about as many outer rows a few calls ago."""
        if self._last is None or not self._stays or not self._outer <= 2 * len(table) <= 4 * self._outer:
            self._last = self._decide(table, executor, hand_on=hand_on)
            self._outer, self._stays = len(table), _STAY
        else:
            self._stays -= 1
            self.tally.outer += len(table)
        return self._last

    def _decide(self, table: Table, executor: Executor, *, hand_on: bool) -> Strategy:
        if self._is_little(len(table), executor):
            self.tally.add(Costs(0.0, 0.0, None), "iterative", len(table))
            return self.iterative
        costs = self._costs(table, executor, hand_on=hand_on)
        offers: list[tuple[float, str, Strategy]] = [
            (costs.iterative, "iterative", self.iterative),
            (costs.view, "balanced", self.balanced),
        ]
        if costs.rewrite is not None and self.rewrite is not None:
            offers.append((costs.rewrite, "rewrite", self.rewrite))
        _, name, chosen = min(offers, key=lambda offer: offer[0])
        self.tally.add(costs, name, len(table))
        return chosen

    def _is_little(self, outer: int, executor: Executor) -> bool:
        """Whether, even if every event lay in every interval, computing anew cost less than asking a view."""
        work = possible = 1.0
        for j, slot in enumerate(reversed(self.inner.slots), 1):
            possible *= len(executor.store.stack(slot).rows) / (j if self.inner.ordered else 1)
            work += possible
        return ITERATIVE_CALL + outer * (STEP + work) < VIEW_CALL

    def _costs(self, table: Table, executor: Executor, *, hand_on: bool) -> Costs:
        lo, hi = interval(self.part, sample(table), executor)
        own = intervals(self.inner, len(table), lo, hi, executor)
        view = self.balanced.view
        places = view.attach(executor)
        anchors = view.anchors()
        asked = anchors[np.searchsorted(anchors, lo.min()) : np.searchsorted(anchors, hi.max())]
        fresh = int((view.since[asked] == NEVER).sum())
        if isinstance(self.part, Reject):
            cases = None if self.rewrite is None else len(self.inner.slots)
            return exists_costs(own, fresh, self._looked, cases, tested=self._tested, plain=places.plain)
        # As far as nothing is known, an equality leaves one of its values.
        selectivity = min(1.0, self._given / self._possible) if self._possible else 1.0 / places.groups
        self._possible += own.asked * float(own.partial()[-1])
        return join_costs(
            own,
            fresh,
            selectivity,
            narrowed=self._narrowed,
            hand_on=hand_on,
            tested=self._tested,
            tied=bool(self.inner.after),
            plain=places.plain,
        )


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
            case Bind(latest=False):
                found += 1
            case Union(programs):
                found += max(_whole(p) for p in programs)
    return found
