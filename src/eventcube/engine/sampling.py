"""The events of an execution as the optimizer's sampler sees them."""

from __future__ import annotations

from collections.abc import Mapping

from eventcube.engine.expressions import holds, valid_mask
from eventcube.engine.kernels import Array, Bools, Ints
from eventcube.engine.views.strategy import Executor
from eventcube.plan.expressions import Condition, Expression
from eventcube.plan.steps import State


class StoredEvents:
    """Rows, windows and values of the store that an executor runs over."""

    def __init__(self, executor: Executor) -> None:
        self._executor, self._store = executor, executor.store

    @property
    def size(self) -> int:
        """How many events there are."""
        return self._store.size

    def rows(self, slot: int, states: frozenset[State] | None = None) -> Ints:
        """The rows of the events that a slot takes, ascending, optionally only those of some states."""
        return self._store.stack(slot, states).rows

    def windows(self, rows: Ints, *, forward: bool) -> Ints:
        """For each of the rows the first row of the window up to there; `forward`: the end of the one from there on."""
        return self._store.windows_at(rows, ends=forward)

    def values(self, expression: Expression, rows: Ints) -> Array:
        """The values of an expression for some rows, without nulls."""
        column = self._executor.value_of(expression, rows)
        return column.values[valid_mask(column)]

    def holds(self, condition: Condition, rows: Mapping[int, Ints]) -> Bools:
        """Where a condition holds for combinations of events, of each slot a row."""
        columns = self._store.columns
        size = len(next(iter(rows.values())))
        return holds(condition, size, lambda ref: columns[ref].take(rows[ref.slot]), columns)
