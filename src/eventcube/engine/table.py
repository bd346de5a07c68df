"""Partial matches as columns: for each slot the row of its event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from eventcube.engine.kernels import Ints


class Table:
    """Partial matches. `rows[slot]` are rows of the store, -1 where the slot is not taken.

    `marks` are numbers that travel along: the interval of each negated part around, and where a row came from.
    """

    __slots__ = ("marks", "rows", "size")

    def __init__(self, size: int, rows: Mapping[int, Ints], marks: Mapping[str, Ints] | None = None) -> None:
        self.size = size
        self.rows = rows
        self.marks: Mapping[str, Ints] = marks or {}

    def __len__(self) -> int:
        return self.size

    def take(self, index: Ints) -> Table:
        """Some of the partial matches, in the order of the index."""
        return Table(
            len(index), {s: r[index] for s, r in self.rows.items()}, {m: v[index] for m, v in self.marks.items()}
        )

    def bind(self, slot: int, rows: Ints) -> Table:
        """The same partial matches with one more slot bound."""
        return Table(self.size, {**self.rows, slot: rows}, self.marks)

    def mark(self, **marks: Ints) -> Table:
        """The same partial matches with more marks."""
        return Table(self.size, self.rows, {**self.marks, **marks})

    def only(self, slots: Iterable[int]) -> Table:
        """The same partial matches with some of the slots."""
        return Table(self.size, {s: self.rows[s] for s in slots}, self.marks)

    def absent(self, slots: Iterable[int]) -> Table:
        """The same partial matches with some slots marked as not taken."""
        nothing = np.full(self.size, -1, np.int64)
        return Table(self.size, {**self.rows, **dict.fromkeys(slots, nothing)}, self.marks)

    def last(self, slots: Iterable[int]) -> Ints:
        """The latest row among the slots."""
        first, *rest = (self.rows[s] for s in slots)
        for more in rest:
            first = np.maximum(first, more)
        return first

    def first(self, slots: Iterable[int], *, optional: bool) -> Ints:
        """The earliest row among the slots that are taken."""
        arrays = [self.rows[s] for s in slots]
        if optional:
            arrays = [np.where(a < 0, np.iinfo(np.int64).max, a) for a in arrays]
        first, *rest = arrays
        for more in rest:
            first = np.minimum(first, more)
        return first
