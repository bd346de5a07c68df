"""The events that a join may take for each partial match: ranges of a stack, an index of values, and tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eventcube.engine.columns import Column
from eventcube.engine.expressions import place_among
from eventcube.engine.kernels import Array, Ints, Tests


@dataclass(frozen=True, slots=True)
class Candidates:
    """For each partial match a range of a stack, and the tests of its events."""

    lo: Ints
    hi: Ints
    stack: Ints
    tests: Tests

    @property
    def is_free(self) -> bool:
        """Whether all of them qualify."""
        return not self.tests[2].size and not self.tests[5].size


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
