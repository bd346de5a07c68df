"""Recomputes the inner matches for each outer row: nothing is kept."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eventcube.engine.kernels import Bools
from eventcube.engine.table import Table
from eventcube.engine.views.strategy import Executor, Strategy, register
from eventcube.optimizer.cost import Load
from eventcube.plan.steps import Bind, Part, recomputed


@register("iterative")
class Iterative(Strategy):
    """Runs the inner program for all outer rows of a chunk together, without remembering any result."""

    keeps_results = False

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.program = recomputed(part)
        # A negated event is no nested part.
        self._nested = len(self.program) > 1 or not isinstance(self.program[0], Bind)

    @classmethod
    def cost(cls, load: Load) -> float | None:
        """Recomputing the part for each outer row, which gives its results as it goes (CSV eq. 2)."""
        return load.recompute_cost() + (load.results if load.materialize else 0.0)

    def join(self, table: Table, executor: Executor) -> Iterator[Table]:
        """The outer rows extended by the inner matches inside each one's interval."""
        for out in executor.run(self.program, table):
            executor.counters.inner_computed += len(out)
            yield out

    def count(self, table: Table, executor: Executor) -> int:
        """How many rows `join` would give."""
        matches = executor.count(self.program, table)
        executor.counters.inner_computed += matches
        return matches

    def exists(self, table: Table, executor: Executor) -> Bools:
        """For each outer row whether there is an inner match inside its interval."""
        matched = executor.any(self.program, table)
        if self._nested:
            executor.counters.inner_computed += int(np.count_nonzero(matched))
        return matched
