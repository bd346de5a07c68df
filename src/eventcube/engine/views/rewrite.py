"""Rewriting: a nested part by flat equivalents, without inner results and without anything kept."""

from __future__ import annotations

import numpy as np

from eventcube.engine.kernels import Bools
from eventcube.engine.table import ORIGIN, Table
from eventcube.engine.views.iterative import Iterative
from eventcube.engine.views.strategy import Executor, register
from eventcube.optimizer.cost import RECOMPUTE_CALL, STEP, Load
from eventcube.plan.steps import FlatCases, Part, form_of


@register("rewrite")
class Rewrite(Iterative):
    """A negated part is exclusive flat cases: an outer row is kept if one of them holds.

    Positive parts were flattened when the plan was made.
    """

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        cases = form_of(part, FlatCases)
        self.flat = None if cases is None else cases.program

    @classmethod
    def cost(cls, load: Load) -> float | None:
        """A call for each flat case, and for each outer row one step more in each case than in the one before."""
        cases = load.part.flat_cases
        return None if cases is None else RECOMPUTE_CALL * cases + load.outer_rows * STEP * cases * (cases + 1)

    def exists(self, table: Table, executor: Executor) -> Bools:
        """For each outer row whether there is an inner match inside its interval."""
        if self.flat is None:
            return super().exists(table, executor)
        matched = np.ones(len(table), np.bool_)
        for out in executor.run(self.flat, table.with_columns({ORIGIN: np.arange(len(table))})):
            matched[out[ORIGIN]] = False
        return matched
