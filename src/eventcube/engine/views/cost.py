"""What a nested part would cost by each strategy, from how many events its intervals hold (Ray et al. 2013, eq. 1-6).

The unit is one event looked at in a join. |S| of a component is the number of its events in an interval, taken from a
sample of the intervals that are asked for; the chance that events are in the right order is 1/k! for k of them in a
SEQ; the selectivity of predicates is what earlier calls have shown. Overlap is what the view has already.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eventcube.engine.kernels import Ints, seek
from eventcube.engine.table import Table
from eventcube.engine.views.strategy import Executor
from eventcube.plan.steps import StandalonePart

Floats = npt.NDArray[np.float64]

_SAMPLE = 64
# What a call and a look-up, a result that is kept, one that is handed on, one that is tested after that, and a step
# for one outer row come to, in events looked at. Where events have to be sorted by value, a view costs more.
ITERATIVE_CALL, VIEW_CALL, SORTED_CALL = 6_000.0, 10_000.0, 40_000.0
LOOK_UP, SORTED_LOOK_UP, KEEP, MATERIALIZE, TEST, STEP = 4.0, 10.0, 5.0, 2.0, 6.0, 3.0


@dataclass(frozen=True, slots=True)
class Intervals:
    """Intervals of outer rows, as many as are asked for, and what the last 1, 2, … components have in them.

    `partial` are the partial results of an interval, if predicates let all through; `wide` those of one last event in a
    wide interval, as those are that decide how far back it goes.
    """

    asked: int
    partial: Floats
    wide: Floats


def sample(table: Table) -> Table:
    """Some of the outer rows, from everywhere among them."""
    return Table(table.columns, table.data[:, :: max(1, len(table) // _SAMPLE)].copy())


def intervals(inner: StandalonePart, asked: int, lo: Ints, hi: Ints, executor: Executor) -> Intervals:
    """What a sample of the intervals that are asked for holds."""
    hi = np.maximum(lo, hi)
    stacks = [executor.store.stack(slot).rows for slot in reversed(inner.slots)]
    held = np.array([seek(rows, hi) - seek(rows, lo) for rows in stacks], np.float64)
    wide = np.sort(held[1:], axis=1)[:, len(lo) * 9 // 10]
    orders = np.cumprod(np.arange(1.0, len(stacks) + 1)) if inner.ordered else np.ones(len(stacks))
    partial = np.cumprod(held, axis=0).mean(axis=1) / orders
    return Intervals(asked, partial, np.cumprod(wide) / orders[: len(wide)])


# Estimates, in events looked at, by strategy.
Costs = dict[str, float]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a part, of which `fresh` last events are not in the view yet.

    Computed anew, from the component `narrowed` on only what meets the conditions is left; `tested`: the last event to
    be bound has to meet some, so that even to count all have to be looked at. `tied`: a view can ask for the conditions
    with outer events only after the look-up. `plain`: neither a key nor an equality tells the view's addresses apart.
    """

    own: Intervals
    fresh: int
    selectivity: float
    narrowed: int
    tested: bool
    tied: bool
    plain: bool

    def recompute(self, *, materialize: bool) -> float:
        """Computing the part for each outer row."""
        partial = self.own.partial
        left = np.where(np.arange(len(partial)) >= self.narrowed, partial * self.selectivity, partial)
        work = left if materialize or self.tested else left[:-1]
        return ITERATIVE_CALL + self.own.asked * (STEP + float(work.sum()))

    def looked_up(self) -> float:
        """Calling a view and looking into it."""
        call, each = (VIEW_CALL, LOOK_UP) if self.plain else (SORTED_CALL, SORTED_LOOK_UP)
        # What is tested after the look-up is all handed on.
        return call + self.own.asked * (each + (TEST * float(self.own.partial[-1]) if self.tied else 0.0))

    def kept(self) -> float:
        """Computing and keeping the results of last events that a view does not have yet."""
        one = self.own.wide
        return self.fresh * (1.0 + float(one.sum()) + KEEP * self.selectivity * float(one[-1] if len(one) else 1.0))


def join_costs(asked: Asked, *, materialize: bool) -> Costs:
    """A positive part; `materialize`: results are made, not only counted."""
    results = asked.own.asked * float(asked.own.partial[-1]) * asked.selectivity if materialize else 0.0
    view = asked.looked_up() + asked.kept() + (0.0 if asked.tied else MATERIALIZE * results)
    return {"iterative": asked.recompute(materialize=materialize) + results, "balanced": view}


def exists_costs(asked: Asked, looked: int, cases: int | None) -> Costs:
    """A negated part. Of one last event a view looks at `looked` components whole, and at the latest of others."""
    one = asked.own.wide
    fresh = asked.kept() if asked.tied else asked.fresh * (1.0 + (float(one[:looked].sum()) if looked else 0.0))
    costs = {"iterative": asked.recompute(materialize=False), "balanced": asked.looked_up() + fresh}
    if cases is not None:
        costs["rewrite"] = ITERATIVE_CALL * cases + asked.own.asked * STEP * cases * (cases + 1)
    return costs
