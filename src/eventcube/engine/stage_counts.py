"""Counts matches by stages over one store, and what aggregates need of them, without making any.

What of the events does not depend on the aggregate is prepared once; every argument of an aggregate that is not of the
event which ends a match takes one more walk over them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eventcube.engine.kernels import Array, Bools, Ints
from eventcube.engine.stage_kernels import (
    BIT,
    COUNT,
    FINAL,
    LEAST,
    NONE,
    SUM,
    WEIGHTED,
    Bytes,
    Words,
    mark_rows,
    slide,
)
from eventcube.engine.stage_layout import layout_of
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
    """The argument of an aggregate for each event of a slot: values of the rows of its stack, 0 where it is null.

    `kind` is what becomes of them: SUM, or LEAST.
    """

    kind: int
    slot: int
    values: Array


@dataclass(frozen=True, slots=True)
class Found:
    """For each event, or group of events, that ends matches: its row, its slot, and how many they are.

    `counts` are modulo 2**64, `estimates` floats; `values` and `value_estimates` likewise the sums, or the least values,
    of the argument. What was not asked for, or is not exact, is None.
    """

    rows: Ints
    slots: Ints
    counts: Ints
    estimates: Array
    values: Array | None = None
    value_estimates: Array | None = None

    def where(self, kept: Bools) -> Found:
        """Those in the mask."""
        columns = (self.values, self.value_estimates)
        return Found(
            self.rows[kept],
            self.slots[kept],
            self.counts[kept],
            self.estimates[kept],
            *(None if column is None else column[kept] for column in columns),
        )


class StageCounts:
    """Counts the matches of a query over a store; `only` has the rows of slots that are not those of their stacks."""

    def __init__(self, counting: Counting, store: Store, only: Mapping[int, Ints] | None = None) -> None:
        self.counting, self.store = counting, store
        self.layout = layout_of(counting.stages, due_first=not counting.due_last, due_last=counting.due_last)
        self._only = only or {}
        self.rows, self._codes, self._marks = self._marked()

    def stack(self, slot: int) -> Ints:
        """The rows of a slot's events."""
        return self._only.get(slot, self.store.stack(slot).rows)

    def _marked(self) -> tuple[Ints, Bytes, Words]:
        """The rows of all events in the order of the walk, and which stacks they are of."""
        size = self.store.size
        codes, marks = np.full(size, NONE, np.int8), np.zeros(0, np.uint64)
        shared = False
        for bit, slot in enumerate(self.layout.slots):
            shared |= mark_rows(codes, marks, self.stack(slot), bit)
        if shared:
            codes, marks = np.full(size, NONE, np.int8), np.zeros(size, np.uint64)
            for bit, slot in enumerate(self.layout.slots):
                mark_rows(codes, marks, self.stack(slot), bit)
        rows = np.flatnonzero(codes != NONE)
        if self.counting.forward:
            rows = rows[::-1]
        return rows, codes[rows], marks[rows] if shared else marks

    @cached_property
    def _ranks(self) -> Ints:
        """Equal numbers for events of equal rank."""
        ties = self.store.ties
        return np.ascontiguousarray(self.rows if ties is None else ties[0][self.rows])

    @cached_property
    def _walked(self) -> tuple[Ints, Ints]:
        """The rows, ascending in the direction of the walk, and the first row in the window of each."""
        if not self.counting.forward:
            return self.rows, self.store.window_starts[self.rows]
        size = self.store.size
        return size - 1 - self.rows, size - self.store.window_ends[self.rows]

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
        bound = float(np.prod([1 + size for size in sizes.values()]))
        if bound < _WHOLE:
            return bound
        ends = sum(sizes[slot] for slot in last)
        starts = self.store.window_starts
        for slot in slots:
            rows = self.stack(slot)
            if len(rows) and not (len(last) == 1 and slot in last):
                ends *= 1 + float((np.arange(len(rows)) - np.searchsorted(rows, starts[rows])).max() + 1)
        return min(bound, ends)

    @property
    def fits(self) -> bool:
        """Whether the number of matches fits 64 bits for sure."""
        return self._most < _WHOLE

    def count(self) -> Found:
        """How many matches there are."""
        if self.fits:
            found, counts, _ = self._slide(COUNT, np.int64)
            return Found(*found, counts, counts.astype(np.float64))
        found, estimates, _ = self._slide(COUNT, np.float64)
        if self.counting.split or self.counting.keys or estimates.sum() < 4 * _WHOLE:
            return Found(*found, self._slide(COUNT, np.int64)[1], estimates)
        return Found(*found, np.zeros(len(estimates), np.int64), estimates)

    def weigh(self, weights: Weights) -> Found:
        """How many matches there are, and the sums or least values of an argument; least values come without counts."""
        dtype = weights.values.dtype
        if weights.kind == LEAST:
            found, counts, values = self._slide(LEAST, np.int64, weights)
            return Found(*found, counts, counts.astype(np.float64), values)
        if dtype == np.float64:
            found, estimates, sums = self._slide(SUM, np.float64, weights)
            return Found(*found, np.zeros(len(sums), np.int64), estimates, sums)
        greatest = float(np.abs(weights.values.astype(np.float64)).max(initial=0.0))
        if max(self._most, 1.0) * max(greatest, 1.0) < _WHOLE:
            found, counts, sums = self._slide(SUM, np.int64, weights)
            return Found(*found, counts, counts.astype(np.float64), sums, sums.astype(np.float64))
        floats = Weights(SUM, weights.slot, weights.values.astype(np.float64))
        found, estimates, value_estimates = self._slide(SUM, np.float64, floats)
        # Where positive and negative numbers cancel, what is left of a float need not tell whether the sum fits.
        error = estimates * greatest * (len(self.rows) + 1.0) * len(self.layout.steps) * 2.0**-52
        value_estimates = np.where(error < _WHOLE / 4, value_estimates, np.inf)
        found, counts, sums = self._slide(SUM, np.int64, weights)
        return Found(*found, counts, estimates, sums, value_estimates)

    def _slide(
        self, kind: int, dtype: type, weights: Weights | None = None
    ) -> tuple[tuple[Ints, Ints], Array, Array]:
        """One walk: the row and the slot of each result, the numbers of matches, and the sums or least values."""
        layout, rows = self.layout, self.rows
        steps, weighted = layout.steps, -1
        value_type = np.dtype(dtype) if weights is None else weights.values.dtype
        values = np.zeros(0, value_type)
        identity = np.array([NO_VALUE[value_type] if kind == LEAST else 0], value_type)
        if weights is not None:
            weighted = layout.slots.index(weights.slot)
            steps = steps.copy()
            steps[steps[:, BIT] == weighted, WEIGHTED] = 1
            of_rows = np.zeros(self.store.size, value_type)
            of_rows[self.stack(weights.slot)] = weights.values
            values = of_rows[rows]
        whole = not self.counting.anchors
        ends = [len(self.stack(layout.slots[bit])) for bit in steps[steps[:, FINAL] == 1, BIT]]
        room = sum(ends)
        places, step_of = np.empty(room, np.int64), np.empty(room, np.int64)
        counts, sums = np.empty(room, dtype), np.empty(0 if weights is None else room, value_type)
        walked, bounds = self._walked
        written = slide(
            kind, walked, self._codes, self._marks, self._ranks, bounds, self._due,
            steps, layout.by_bit, layout.by_bit_at, layout.places, layout.ancestors, layout.offsets, layout.lengths,
            layout.reach, whole, weighted, values, identity, places, step_of, counts, sums,
        )  # fmt: skip
        slots = np.array([*layout.slots, -1])[np.append(steps[:, BIT], len(layout.slots))[step_of[:written]]]
        return (rows[places[:written]], slots), counts[:written], sums[:written]
