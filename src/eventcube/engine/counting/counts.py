"""Counts matches by stages over one store, and what aggregates need of them, without making any.

What of the events does not depend on the aggregate is prepared once; every argument of an aggregate that is not of the
event which ends a match takes one more walk over them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from eventcube.engine.counting.layout import layout_of
from eventcube.engine.kernels import Array, Bools, Ints
from eventcube.engine.stage_kernels import COUNT, LEAST, SLIDES, SUM, Bytes, in_order
from eventcube.engine.store import Store
from eventcube.plan.counting import Counting
from eventcube.plan.steps import State

_DUE = frozenset({State.DUE})
# Sums and counts below are exact in 64 bits.
_WHOLE = float(2**63)
# The greatest numbers stand for no value, of which the least is asked.
NO_VALUE = {np.dtype(np.int64): np.int64(2**63 - 1), np.dtype(np.float64): np.float64(np.inf)}


@dataclass(frozen=True, slots=True)
class Weights:
    """The argument of an aggregate for each event of some slots: values of the rows of their stacks, 0 for null.

    `kind` is what becomes of them: SUM, or LEAST. Values of several slots add up in a match, to `most` at most.
    """

    kind: int
    values: Mapping[int, Array]
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

    `counts` are modulo 2**64, `estimates` floats; `values` and `value_estimates` likewise the sums, or the least
    values, of the argument. What was not asked for, or is not known, is None; of least values `estimates` only tells
    where there are matches.
    """

    rows: Ints
    slots: Ints
    steps: Ints
    counts: Ints | None
    estimates: Array
    values: Array | None = None
    value_estimates: Array | None = None

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

    def _turned(self, rows: Ints) -> Ints:
        """Rows as places in the direction of the walk, in which they ascend."""
        return self.store.size - 1 - rows[::-1] if self.counting.forward else rows

    @cached_property
    def _ranks(self) -> Ints:
        """The first row of equal rank for each row, in the direction of the walk; empty if no two are equal."""
        ties = self.store.ties
        if ties is None:
            return np.zeros(0, np.int64)
        return self.store.size - ties[1][::-1] if self.counting.forward else ties[0]

    @cached_property
    def _events(self) -> tuple[Ints, Bytes, Ints]:
        """The events in the order of the walk: their places, the numbers of their slots, and their ranks."""
        stacks = [self._turned(self.stack(slot)) for slot in self.layout.slots]
        starts = np.concatenate([[0], np.cumsum([len(stack) for stack in stacks])]).astype(np.int64)
        ranks = np.ascontiguousarray(self._ranks)
        places, codes = in_order(np.concatenate(stacks), starts, ranks, self.store.size)
        return places, codes, ranks[places] if len(ranks) else places

    @cached_property
    def rows(self) -> Ints:
        """The rows of the events in the order of the walk."""
        places, _, _ = self._events
        return self.store.size - 1 - places if self.counting.forward else places

    @cached_property
    def _bounds(self) -> Ints:
        """The first place in the window of each event, in the direction of the walk."""
        if self.counting.forward:
            return self.store.size - self.store.window_ends[self.rows]
        return self.store.window_starts[self.rows]

    @cached_property
    def _due(self) -> Bools:
        """Which events are due; empty if all are."""
        if self.store.all_have(_DUE):
            return np.zeros(0, np.bool_)
        return self.store.has_state(self.rows, _DUE)

    @cached_property
    def _most(self) -> float:
        """No more matches than this are there."""
        slots = dict.fromkeys(move.slot for move in self.counting.stages.moves)
        last = dict.fromkeys(self.counting.stages.last_slots)
        sizes = {slot: float(len(self.stack(slot))) for slot in slots}
        # Stages lead upwards, so no path is longer than they are many: of the largest slots, so many at most.
        longest = min(len(slots), self.counting.stages.final)
        bound = float(np.prod(sorted(1 + size for size in sizes.values())[-longest:]))
        if bound < _WHOLE:
            return bound
        in_window = [1 + self._most_in_window(slot) for slot in slots if not (len(last) == 1 and slot in last)]
        return min(bound, sum(sizes[slot] for slot in last) * float(np.prod(sorted(in_window)[-longest:])))

    def _most_in_window(self, slot: int) -> int:
        """How many events of a slot a window has at most."""
        rows = self.stack(slot)
        if not len(rows):
            return 0
        return int((np.arange(len(rows)) - np.searchsorted(rows, self.store.window_starts[rows])).max() + 1)

    @property
    def fits(self) -> bool:
        """Whether the number of matches fits 64 bits for sure."""
        return self._most < _WHOLE

    def bounds(self, greatest: float) -> bool:
        """Whether a sum over the matches fits 64 bits for sure, if none of them adds more."""
        return self.fits and self._most * max(greatest, 1.0) < _WHOLE

    def count(self) -> Found:
        """How many matches there are."""
        if self._counted is not None:
            return self._counted
        if self.fits:
            found, counts, _ = self._slide(COUNT, np.int64)
            return Found(*found, counts, counts.astype(np.float64))
        found, estimates, _ = self._slide(COUNT, np.float64)
        return Found(*found, self._slide(COUNT, np.int64)[1], estimates)

    def weigh(self, weights: Weights) -> Found:
        """How many matches there are, and the sums or least values of an argument."""
        if weights.kind == LEAST:
            found, some, values = self._slide(LEAST, np.int64, weights)
            return Found(*found, None, some.astype(np.float64), values)
        if weights.dtype == np.float64:
            found, counts, sums = self._slide(SUM, np.int64 if self.fits else np.float64, weights)
            return Found(*found, counts if self.fits else None, counts.astype(np.float64, copy=False), sums)
        if self.bounds(weights.greatest):
            found, counts, sums = self._slide(SUM, np.int64, weights)
            return Found(*found, counts, counts.astype(np.float64), sums, sums.astype(np.float64))
        floats = Weights(SUM, {slot: values.astype(np.float64) for slot, values in weights.values.items()})
        greatest = floats.greatest
        found, estimates, value_estimates = self._slide(SUM, np.float64, floats)
        # Where positive and negative numbers cancel, what is left of a float need not tell whether the sum fits.
        error = estimates * greatest * (len(self.rows) + 1.0) * len(self.layout.sources) * 2.0**-52
        unclear = (error >= _WHOLE / 4) & (np.abs(value_estimates) < 2 * _WHOLE)
        value_estimates = np.where(unclear, np.copysign(2 * _WHOLE, value_estimates), value_estimates)
        found, counts, sums = self._slide(SUM, np.int64, weights)
        return Found(*found, counts, estimates, sums, value_estimates)

    def _slide(
        self, kind: int, dtype: type, weights: Weights | None = None
    ) -> tuple[tuple[Ints, Ints, Ints], Array, Array]:
        """One walk: row, slot and step of each result, the numbers of matches, and the sums or least values."""
        layout, (places, codes, ranks) = self.layout, self._events
        value_type = np.dtype(dtype) if weights is None else weights.dtype
        identity = NO_VALUE[value_type] if kind == LEAST else value_type.type(0)
        weighted, of_events = np.zeros(len(layout.slots), np.bool_), np.zeros(0, value_type)
        if weights is not None:
            of_events = np.zeros(len(codes), value_type)
            for slot, of_slot in weights.values.items():
                number = layout.slots.index(slot)
                weighted[number] = True
                # Events of one stack are in order, also among others of equal rank.
                of_events[codes == number] = of_slot[::-1] if self.counting.forward else of_slot
        final = self.counting.stages.final
        room = sum(len(self.stack(slot)) * n for slot, n in self._ends.items())
        found, steps = np.empty(room, np.int64), np.empty(room, np.int64)
        counts: Array = np.empty(room, dtype)
        values = np.empty(0 if weights is None else room, value_type)
        written = SLIDES[kind](
            places, codes, ranks, self._bounds, self._cuts, self._due,
            layout.sources, layout.targets, layout.only_due, layout.steps_at, final,
            weighted, of_events, identity, found, steps, counts, values,
        )  # fmt: skip
        found = found[:written]
        slots = np.array(layout.slots, np.int64)[codes[found]]
        self.walked += len(codes)
        return (self.rows[found], slots, steps[:written]), counts[:written], values[:written]

    @cached_property
    def _ends(self) -> dict[int, int]:
        """In how many ways an event of a slot can end a match."""
        return Counter(move.slot for move in self.counting.stages.moves if move.end == self.counting.stages.final)

    @property
    def _cuts(self) -> bool:
        """Whether a window can begin between events of equal rank."""
        return self.store.counts_events and len(self._ranks) > 0
