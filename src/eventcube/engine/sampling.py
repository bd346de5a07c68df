"""The events of an execution as the optimizer's sampler sees them."""

from __future__ import annotations

from eventcube.engine.expressions import valid_mask
from eventcube.engine.kernels import Array, Ints
from eventcube.engine.views.strategy import Executor
from eventcube.plan.expressions import Expression
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

    def windows(self, *, forward: bool) -> Ints:
        """For each row the first row of the window that ends there; `forward`: the end of the one that begins there."""
        return self._store.window_ends if forward else self._store.window_starts

    def values(self, expression: Expression, rows: Ints) -> Array:
        """The values of an expression for some rows, without nulls."""
        column = self._executor.value_of(expression, rows)
        return column.values[valid_mask(column)]
