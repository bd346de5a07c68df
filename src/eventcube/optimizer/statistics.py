"""Statistics of the events at hand, all from one sampler.

Nothing is assumed about rates: whoever weighs alternatives counts a sample of the rows that they would be run for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from eventcube.plan.expressions import Condition, Expression
from eventcube.plan.steps import State

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Rows in a sample, at least; there are fewer than twice as many.
SAMPLE = 64


class Events(Protocol):
    """The events of one evaluation, as the sampler sees them: rows, sorted by key and time."""

    @property
    def size(self) -> int:
        """How many events there are."""

    def rows(self, slot: int, states: frozenset[State] | None = None) -> Ints:
        """The rows of the events that a slot takes, ascending, optionally only those of some states."""

    def windows(self, rows: Ints, *, forward: bool) -> Ints:
        """For each of the rows the first row of the window up to there; `forward`: the end of the one from there on."""

    def values(self, expression: Expression, rows: Ints) -> npt.NDArray[Any]:
        """The values of an expression for some rows, without nulls."""

    def holds(self, condition: Condition, rows: Mapping[int, Ints]) -> npt.NDArray[np.bool_]:
        """Where a condition holds for combinations of events, of each slot a row."""


def sample_step(size: int) -> int:
    """The distance between the rows of a sample, out of so many."""
    return max(1, size // SAMPLE)


def sample(rows: Ints) -> Ints:
    """A sample of the rows, from everywhere among them."""
    return rows[:: sample_step(len(rows))]


class Statistics:
    """Counts over the events of one evaluation."""

    def __init__(self, events: Events) -> None:
        self._events = events

    @property
    def size(self) -> int:
        """How many events there are."""
        return self._events.size

    def count(self, slot: int, states: frozenset[State] | None = None) -> int:
        """How many events a slot takes."""
        return len(self._events.rows(slot, states))

    def inside(self, slots: tuple[int, ...], lo: Ints, hi: Ints) -> Floats:
        """For each slot (first axis) how many of its events lie in each range of rows, from lo to before hi."""
        counts = np.empty((len(slots), len(lo)))
        bounds = np.concatenate((lo, hi))
        for i, slot in enumerate(slots):
            places = self._events.rows(slot).searchsorted(bounds)
            np.subtract(places[len(lo) :], places[: len(lo)], out=counts[i])
        return counts

    def window_starts(self, rows: Ints) -> Ints:
        """The first row of the window that ends at each row."""
        return self._events.windows(rows, forward=False)

    def windows(self, rows: Ints, *, forward: bool) -> tuple[Ints, Ints]:
        """For a sample of the rows the ranges that their windows are, before each or, if `forward`, after it."""
        sampled = sample(rows)
        ends = self._events.windows(sampled, forward=forward)
        return (sampled, ends) if forward else (ends, sampled)

    def distinct(self, slot: int, expression: Expression) -> float:
        """How many different values the events of a slot have, estimated from a sample.

        Values that occur once in the sample stand for others that it has not met (the GEE estimator of Charikar et
        al. 2000, which is off by at most the square root of the sampling ratio).
        """
        rows = self._events.rows(slot)
        values = self._events.values(expression, sample(rows))
        if not len(values):
            return 1.0
        counts = np.unique(values, return_counts=True)[1]
        once = int(np.count_nonzero(counts == 1))
        return float((len(rows) / len(values)) ** 0.5 * once + len(counts) - once)
