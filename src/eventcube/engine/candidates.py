"""The events that a join may take for each partial match: ranges of a stack, an index of values, and tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from eventcube.engine.columns import Column
from eventcube.engine.expressions import place_among
from eventcube.engine.kernels import Array, Bools, Ints, Tests, count, exists, expand, latest


@dataclass(frozen=True, slots=True)
class Candidates:
    """For each partial match a range of a stack, and the tests of its events.

    What is asked of them comes with how many events were looked at.
    """

    lo: Ints
    hi: Ints
    stack: Ints
    tests: Tests

    @property
    def is_free(self) -> bool:
        """Whether all of them qualify."""
        return not self.tests[2].size and not self.tests[5].size

    @property
    def size(self) -> int:
        """How many there are of all partial matches."""
        return int((self.hi - self.lo).sum())

    def sampled(self, step: int) -> Candidates:
        """Those of one in so many partial matches."""
        ints, ints_bound, int_ops, floats, floats_bound, float_ops = self.tests
        ints_bound, floats_bound = ints_bound[:, ::step].copy(), floats_bound[:, ::step].copy()
        tests = ints, ints_bound, int_ops, floats, floats_bound, float_ops
        return Candidates(self.lo[::step].copy(), self.hi[::step].copy(), self.stack, tests)

    def expand(self, table: Ints, scratch: Ints) -> Iterator[tuple[Ints, int]]:
        """The table's rows extended by each event that qualifies, in chunks."""
        row, offset = 0, 0
        while row < len(self.lo):
            data, row, offset, looked_at = expand(self.lo, self.hi, self.stack, table, self.tests, row, offset, scratch)
            yield data, looked_at

    def count(self) -> tuple[int, int]:
        """How many qualify in all."""
        size = self.size
        return size if self.is_free else count(self.lo, self.hi, self.tests), size

    def exist(self) -> tuple[Bools, int]:
        """For each partial match whether one qualifies."""
        return (self.hi > self.lo, len(self.lo)) if self.is_free else exists(self.lo, self.hi, self.tests)

    def latest(self) -> tuple[Ints, int]:
        """For each partial match the row of the last that qualifies, -1 for none."""
        if self.is_free:
            position, looked_at = np.where(self.hi > self.lo, self.hi - 1, -1), len(self.lo)
        else:
            position, looked_at = latest(self.lo, self.hi, self.tests)
        exists = position >= 0
        rows = np.full(len(position), -1)
        rows[exists] = self.stack[position[exists]]
        return rows, looked_at


@dataclass(frozen=True, slots=True)
class Index:
    """A stack's rows sorted by (value, row): `rows[starts[g]:starts[g + 1]]` have `values[g]`.

    `group_of_row` is the group of every row of the store, so that a probe is one look into an array.
    """

    rows: Ints
    starts: Ints
    values: Array
    group_of_row: Ints | None

    def find(self, column: Column) -> Ints:
        """The group of each value, -1 for a value that no event has."""
        return place_among(self.values, column)


def stacked(tests: list[tuple[Array, Array, int]], dtype: type) -> tuple[Array, Array, Ints]:
    """Tests as one array of new values, one of bound values, and the operators."""
    if not tests:
        return np.zeros((0, 0), dtype), np.zeros((0, 0), dtype), np.zeros(0, np.int64)
    new, bound, ops = zip(*tests, strict=True)
    return _rows_of(new, dtype), _rows_of(bound, dtype), np.array(ops, np.int64)


def _rows_of(arrays: Sequence[Array], dtype: type) -> Array:
    """Arrays as the rows of one; a single array is not copied, unless it is read-only, which loops are not made for."""
    if len(arrays) == 1:
        return np.require(arrays[0], dtype, ["C", "W"]).reshape(1, -1)
    return np.stack([array.astype(dtype, copy=False) for array in arrays])


NO_TESTS: Tests = (*stacked([], np.int64), *stacked([], np.float64))
