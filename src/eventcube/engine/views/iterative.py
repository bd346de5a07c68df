"""Each outer row computes its inner matches anew: nothing is kept."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eventcube.engine.counters import Counters
from eventcube.engine.kernels import Bools
from eventcube.engine.table import Table
from eventcube.engine.views.strategy import Executor, register
from eventcube.plan.steps import Bind, Part, recomputed


@register("iterative")
class Iterative:
    """Runs the inner program for all outer rows of a chunk together, without remembering any result."""

    bytes = 0

    def __init__(self, part: Part) -> None:
        self.program = recomputed(part)
        # A negated event is no nested part.
        self._nested = len(self.program) > 1 or not isinstance(self.program[0], Bind)

    def join(self, table: Table, executor: Executor) -> Iterator[Table]:
        """The outer rows extended by the inner matches inside each one's interval."""
        for out in executor.run(self.program, table):
            executor.counters.inner_computed += len(out)
            yield out

    def count(self, table: Table, executor: Executor) -> int:
        """How many rows `join` would give."""
        found = executor.count(self.program, table)
        executor.counters.inner_computed += found
        return found

    def exists(self, table: Table, executor: Executor) -> Bools:
        """For each outer row whether there is an inner match inside its interval."""
        found = executor.any(self.program, table)
        if self._nested:
            executor.counters.inner_computed += int(np.count_nonzero(found))
        return found

    def close(self, counters: Counters) -> None:
        """Nothing is kept."""
