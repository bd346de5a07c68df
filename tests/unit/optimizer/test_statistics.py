from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from eventcube.optimizer.statistics import SAMPLE, Ints, Statistics, sample
from eventcube.plan.expressions import Expression
from eventcube.plan.steps import State


class Line:
    """Events one after the other: slot 0 takes all, slot 1 every third; windows of ten events; values by row."""

    def __init__(self, size: int, values: npt.NDArray[Any] | None = None) -> None:
        self.size = size
        self._values = np.arange(size) if values is None else values

    def rows(self, slot: int, states: frozenset[State] | None = None) -> Ints:
        return np.arange(0, self.size, 3 if slot else 1)

    def windows(self, rows: Ints, *, forward: bool) -> Ints:
        return np.minimum(rows + 10, self.size) if forward else np.maximum(rows - 9, 0)

    def values(self, expression: Expression, rows: Ints) -> npt.NDArray[Any]:
        return self._values[rows]


def test_a_sample_is_bounded_and_comes_from_everywhere() -> None:
    for size in (0, 1, 63, 64, 65, 127, 128, 10_000):
        rows = sample(np.arange(size))
        assert len(rows) < 2 * SAMPLE
        assert len(rows) >= min(size, SAMPLE)
    assert sample(np.arange(10_000))[-1] > 9_000


def test_events_inside_ranges() -> None:
    statistics = Statistics(Line(30))
    assert statistics.count(1) == 10
    lo, hi = np.array([0, 5]), np.array([30, 8])
    assert statistics.inside((0, 1), lo, hi).tolist() == [[30, 3], [10, 1]]


def test_windows_lie_before_a_row_or_after_it() -> None:
    statistics = Statistics(Line(30))
    rows = np.array([20])
    assert [w.tolist() for w in statistics.windows(rows, forward=False)] == [[11], [20]]
    assert [w.tolist() for w in statistics.windows(rows, forward=True)] == [[20], [30]]


@pytest.mark.parametrize("different", [1, 5, 40, 1_000, 100_000])
def test_distinct_values_are_off_by_no_more_than_the_square_root_of_the_sampling_ratio(different: int) -> None:
    size = 100_000
    values = np.random.default_rng(1).integers(0, different, size) if different < size else np.arange(size)
    found = Statistics(Line(size, values)).distinct(0, None)  # type: ignore[arg-type]
    factor = (size / SAMPLE) ** 0.5
    assert different / factor / 1.1 <= found <= different * factor * 1.1
    if different <= 5:
        assert found == different


def test_no_values_count_as_one() -> None:
    assert Statistics(Line(0)).distinct(0, None) == 1.0  # type: ignore[arg-type]
