"""Partial matches as columns: for each slot the row of its event."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from eventcube.engine.kernels import Bools, Ints

# Columns of partial matches beside their events.
START, END, ORIGIN, ANCHOR = -1, -2, -3, -4


def width_column(slot: int) -> int:
    """The column with the number of events of the clusters of a slot, of which the slot's column has the earliest."""
    return ANCHOR - 1 - slot


class Table:
    """Partial matches. `table[slot]` are rows of the store, -1 where the slot is not taken.

    All columns lie in one array, so that a join copies them at once. Inside a nested part there can also be the query
    interval (START, END), the outer row (ORIGIN), and the last event of the result (ANCHOR).
    """

    __slots__ = ("columns", "data", "found")

    def __init__(self, columns: tuple[int, ...], data: Ints, found: dict[object, Ints] | None = None) -> None:
        self.columns = columns
        self.data = data
        # What steps found for these partial matches, for other steps that need the same.
        self.found: dict[object, Ints] = {} if found is None else found

    @classmethod
    def single(cls) -> Table:
        """One partial match with nothing bound: where every program begins."""
        return cls((), np.empty((0, 1), np.int64))

    def __len__(self) -> int:
        return int(self.data.shape[1])

    def __getitem__(self, column: int) -> Ints:
        rows: Ints = self.data[self.columns.index(column)]
        return rows

    def take(self, index: Ints) -> Table:
        """The partial matches at the index, in its order."""
        return Table(self.columns, self.data.take(index, axis=1))

    def where(self, kept: Bools) -> Table:
        """The partial matches in the mask."""
        return self if np.count_nonzero(kept) == len(self) else self.take(np.flatnonzero(kept))

    def only(self, columns: Iterable[int]) -> Table:
        """The same partial matches with some of the columns."""
        selected = tuple(columns)
        return Table(selected, self.data[[self.columns.index(c) for c in selected]])

    def renamed(self, columns: tuple[int, ...]) -> Table:
        """The same partial matches with other names for their columns."""
        return Table(columns, self.data, self.found)

    def with_columns(self, columns: dict[int, Ints]) -> Table:
        """The same partial matches with more columns."""
        others = [i for i, c in enumerate(self.columns) if c not in columns]
        names = (*(self.columns[i] for i in others), *columns)
        return Table(names, np.vstack([self.data[others], *columns.values()]))

    def absent(self, slots: Iterable[int]) -> Table:
        """The same partial matches with some slots marked as not taken."""
        unbound = np.full(len(self), -1, np.int64)
        return self.with_columns(dict.fromkeys(slots, unbound))

    def last(self, slots: Iterable[int]) -> Ints:
        """The latest row among the slots."""
        first, *rest = [self[s] for s in slots]
        for more in rest:
            first = np.maximum(first, more)
        return first

    def first(self, slots: Iterable[int], *, optional: bool) -> Ints:
        """The earliest row among the slots that are taken."""
        arrays = [self[s] for s in slots]
        if optional:
            arrays = [np.where(a < 0, np.iinfo(np.int64).max, a) for a in arrays]
        first, *rest = arrays
        for more in rest:
            first = np.minimum(first, more)
        return first


def joined(tables: list[Table]) -> Table:
    """Partial matches of the same slots one after the other."""
    columns = tables[0].columns
    parts = [t.data if t.columns == columns else t.only(columns).data for t in tables]
    return Table(columns, parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1))
