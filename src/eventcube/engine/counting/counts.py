"""Counts matches by stages over one store, and what aggregates need of them, without making any.

What of the events does not depend on the aggregate is prepared once; every argument of an aggregate that is not of the
event which ends a match takes one more walk over them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from eventcube.engine.counting.events import OrderedEvents, ordered_events
from eventcube.engine.counting.layout import layout_of
from eventcube.engine.kernels import Array, Ints
from eventcube.engine.stage_kernels import COUNT, FLOAT, LEAST, SLIDES, WHOLE
from eventcube.engine.store import Store
from eventcube.plan.counting import Counting

# Sums and counts below are exact in 64 bits.
_BOUND = float(2**63)
# The greatest numbers stand for no value, of which the least is asked.
NO_VALUE = {np.dtype(np.int64): np.int64(2**63 - 1), np.dtype(np.float64): np.float64(np.inf)}


@dataclass(frozen=True, slots=True)
class Weights:
    """The argument of an aggregate for each event of some slots: values of the rows of their stacks, 0 for null.

    `least`: the least one in a match is asked for, else their sum. Values of several slots add up to `most` at most.
    """

    values: Mapping[int, Array]
    least: bool = False
    most: float | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values, one for all slots."""
        return next(iter(self.values.values())).dtype

    @property
    def greatest(self) -> float:
        """What the values of a match add up to at most, whatever its sign."""
        if self.most is not None:
            return self.most
        return sum(float(np.abs(v.astype(np.float64)).max(initial=0.0)) for v in self.values.values())


@dataclass(frozen=True, slots=True)
class Found:
    """For each event that ends matches: its row, its slot, the step that it takes, and how many they are.

    Only events with matches are there. `counts` are modulo 2**64, `estimates` floats; `values` and `value_estimates`
    likewise the sums, or the least values, of the argument. What was not asked for, or is not known, is None; beside
    least values `estimates` are all 1.
    """

    rows: Ints
    slots: Ints
    steps: Ints
    counts: Ints | None
    estimates: Array
    values: Array | None = None
    value_estimates: Array | None = None

    @property
    def matches(self) -> int:
        """How many matches there are in all, about that many if 64 bits cannot hold them."""
        estimate = float(self.estimates.sum())
        # As near the bound of 64 bits as floats cannot tell, the number modulo 2**64 is still the number.
        if self.counts is not None and estimate < 1.5 * 2.0**63:
            return int(self.counts.sum()) % 2**64
        return int(min(estimate, 1e308))

    def of_step(self, step: int, slot: int) -> Found:
        """Those that take a step, which is that of a slot."""
        kept = self.steps == step
        counts = None if self.counts is None else self.counts[kept]
        rows = self.rows[kept]
        return Found(rows, np.full(len(rows), slot), self.steps[kept], counts, self.estimates[kept])


class StageCounts:
    """Counts the matches of a query over a store; `only` has the rows of slots that are not those of their stacks.

    `counted` is how many there are, if that is known; `walked` counts the events of all walks.
    """

    def __init__(
        self, counting: Counting, store: Store, only: Mapping[int, Ints] | None = None, counted: Found | None = None
    ) -> None:
        self.counting, self.store, self._counted = counting, store, counted
        self.walked = 0
        self.layout = layout_of(counting.stages, due_first=not counting.due_last, due_last=counting.due_last)
        self._only = only or {}

    def stack(self, slot: int) -> Ints:
        """The rows of a slot's events."""
        return self._only.get(slot, self.store.stack(slot).rows)

    @cached_property
    def events(self) -> OrderedEvents:
        """The events in the order of the walk."""
        stacks = [self.stack(slot) for slot in self.layout.slots]
        return ordered_events(self.store, stacks, forward=self.counting.forward)

    def count(self) -> Found:
        """How many matches there are."""
        return self._slide(COUNT) if self._counted is None else self._counted

    def weigh(self, weights: Weights) -> Found:
        """How many matches there are, and the sums or least values of an argument."""
        if weights.least or weights.dtype == np.float64:
            return self._slide(LEAST if weights.least else FLOAT, weights)
        found = self._slide(WHOLE, weights)
        assert found.values is not None
        assert found.value_estimates is not None
        sums = self.estimated(found.values, found.value_estimates, found.estimates, weights.greatest)
        return replace(found, value_estimates=sums)

    def estimated(self, whole: Ints, estimates: Array, matches: Array, greatest: float) -> Array:
        """What sums over so many matches are about, to tell if they fit 64 bits; none adds more than the greatest."""
        most = matches * greatest
        # Where positive and negative numbers cancel, what is left of a float need not tell whether the sum fits.
        error = most * (len(self.events.codes) + 1.0) * len(self.layout.numbers) * 2.0**-52
        unclear = (error >= _BOUND / 4) & (np.abs(estimates) < 2 * _BOUND)
        estimates = np.where(unclear, np.copysign(2 * _BOUND, estimates), estimates)
        return np.where(most < _BOUND / 2, whole.astype(np.float64), estimates)

    def _slide(self, kind: int, weights: Weights | None = None) -> Found:
        """One walk over the events."""
        layout, events = self.layout, self.events
        value_type = np.dtype(np.int64) if weights is None else weights.dtype
        identity = NO_VALUE[value_type] if kind == LEAST else value_type.type(0)
        of_events = np.full(0 if weights is None else len(events.codes), identity)
        for slot, of_slot in () if weights is None else weights.values.items():
            # Events of one stack are in order, also among others of equal rank.
            of_events[events.codes >> 1 == layout.slots.index(slot)] = (
                of_slot[::-1] if self.counting.forward else of_slot
            )
        room = int(layout.ends @ np.bincount(events.codes, minlength=len(layout.ends)))
        places, steps = np.empty(room, np.int64), np.empty(room, np.int64)
        numbers, estimates = np.empty(room, np.int64), np.empty(room)
        values, value_estimates = np.empty(room * (kind != COUNT), value_type), np.empty(room * (kind == WHOLE))
        written = SLIDES[kind](
            events.codes, events.by_row, events.ranks, events.metric, self.store.width, events.segments,
            layout.steps, self.counting.stages.final, of_events, identity,
            places, steps, (numbers, estimates, values, value_estimates),
        )  # fmt: skip
        self.walked += len(events.codes)
        places = places[:written]
        return Found(
            events.rows[places],
            np.array(layout.slots, np.int64)[events.codes[places] >> 1],
            layout.numbers[steps[:written]],
            None if kind == LEAST else numbers[:written],
            estimates[:written],
            None if kind == COUNT else values[:written],
            value_estimates[:written] if kind == WHOLE else None,
        )
