"""Counts, sums and least values of matches for many combinations of groups, in one walk over the events for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from eventcube.engine.counting.combinations import Combinations, Grouping
from eventcube.engine.counting.counts import NO_VALUE, StageCounts, Weights
from eventcube.engine.group_kernels import COUNT, LEAST, SUM, WALKS, kept_rows
from eventcube.engine.kernels import Array, Bools, Ints
from eventcube.engine.order_kernels import Bytes

# Sums below are exact in 64 bits.
_WHOLE = 2.0**63
# So many numbers are held at a time, for the combinations that are counted together.
_ROOM = 1 << 23


@dataclass(frozen=True, slots=True)
class Added:
    """What the matches add up to: a row for each group of the events that end them, a column for each combination.

    `counts` are modulo 2**64, `estimates` floats, and so are the sums, or least values, and their estimates. Beside
    least values the counts only tell where there are matches.
    """

    counts: Array
    estimates: Array
    values: Array
    value_estimates: Array


class GroupedCounts:
    """Counts matches by combinations of groups, and by the groups of the events of each slot that `ends` them.

    `counts` counts the matches of all groups together. `walked` counts the events of all walks.
    """

    def __init__(self, counts: StageCounts, combinations: Combinations, ends: Mapping[int, Grouping]) -> None:
        self.counts, self.combinations, self.ends = counts, combinations, ends
        # The numbers of the groups of each slot follow those of the slot before.
        sizes = [grouping.size for grouping in ends.values()]
        self.homes = dict(zip(ends, [0, *accumulate(sizes)], strict=False))
        self.stages, layout = counts.counting.stages.final, counts.layout
        sources, targets, starts = layout.steps
        code_of = np.repeat(np.arange(len(layout.ends)), np.diff(starts))
        # Which codes of events have steps out of the first stage, and such as end matches.
        self._opening, self.ending = np.zeros(len(layout.ends), np.bool_), layout.ends > 0
        self._opening[code_of[(sources == 0) & (targets != self.stages)]] = True
        self.walked = 0

    @cached_property
    def matches(self) -> int:
        """How many matches there are in all groups, about that many if 64 bits cannot hold them."""
        return self.counts.count().matches

    @property
    def size(self) -> int:
        """How many numbers the events that end matches add up."""
        ending = np.count_nonzero(self.ending[self.counts.events.codes])
        return int(ending) * len(self.combinations.digits) * self.stages

    @cached_property
    def numbers(self) -> Ints:
        """The place of each event among those of its slot."""
        codes, numbers = self.counts.events.codes, np.empty(len(self.counts.events.codes), np.int64)
        for number, slot in enumerate(self.counts.layout.slots):
            places = np.arange(len(self.counts.stack(slot)))
            # Events of one stack are in order, also among others of equal rank.
            numbers[codes >> 1 == number] = places[::-1] if self.counts.counting.forward else places
        return numbers

    def pieces(self) -> Iterator[Piece]:
        """Some of the combinations at a time, for which there is room."""
        number = len(self.combinations.digits)
        homes = sum(grouping.size for grouping in self.ends.values())
        events = self.counts.events
        _, kept = self.kept_rows(events.codes, events.metric, events.segments)
        size = max(1, _ROOM // (2 * self.stages * (self.stages + kept) + homes))
        for first in range(0, number, size):
            yield Piece(self, self.combinations.slice(first, size))

    def kept_rows(self, codes: Bytes, metric: Ints, segments: Ints) -> tuple[Bools, int]:
        """From which events on walks keep the first row of a product, and how many at a time, at most."""
        return kept_rows(codes, metric, self.counts.store.width, segments, self._opening, self.ending)


class Piece:
    """Some of the combinations, with the events that take part in them."""

    def __init__(self, whole: GroupedCounts, combinations: Combinations) -> None:
        self.whole, self.combinations = whole, combinations
        events = whole.counts.events
        slots = events.codes >> 1
        members: list[Ints] = [np.zeros(0, np.int64)]
        sets, homes = np.full(len(slots), -1, np.int64), np.zeros(len(slots), np.int64)
        for number, slot in enumerate(whole.counts.layout.slots):
            here = np.flatnonzero(slots == number)
            grouping = combinations.groupings.get(slot)
            # One more than there are groups: the last one is that of matches without such an event.
            of_groups = np.full(1 if grouping is None else grouping.size + 1, -1, np.int64)
            for group, taken in combinations.members(slot).items():
                # The first set stands for all combinations.
                of_groups[group] = 0 if len(taken) == len(combinations.digits) else len(members)
                members += [taken] if of_groups[group] else []
            sets[here] = of_groups[0 if grouping is None else grouping.numbers[whole.numbers[here]]]
            if slot in whole.ends:
                homes[here] = whole.homes[slot] + whole.ends[slot].numbers[whole.numbers[here]]
        # Other events have nothing to do with these combinations.
        kept = np.flatnonzero(sets >= 0)
        self._kept, self._sets, self._homes = kept, sets[kept], homes[kept]
        self._codes, self._metric = events.codes[kept], events.metric[kept]
        self._segments = np.unique(np.searchsorted(kept, events.segments))
        self._keeps, _ = whole.kept_rows(self._codes, self._metric, self._segments)
        self._sets_at, self._members = np.cumsum([0, *map(len, members)], dtype=np.int64), np.concatenate(members)
        self._shape = sum(grouping.size for grouping in whole.ends.values()), len(combinations.digits)

    def count(self) -> Added:
        """How many matches there are."""
        if self.whole.matches < _WHOLE / 2:
            counts, _ = self._walk(COUNT, np.dtype(np.int64))
            return Added(counts, counts.astype(np.float64), counts[:, :0], counts[:, :0])
        estimates, _ = self._walk(COUNT, np.dtype(np.float64))
        counts, _ = self._walk(COUNT, np.dtype(np.int64))
        return Added(counts, estimates, counts[:, :0], counts[:, :0])

    def weigh(self, weights: Weights, *, at_ends: bool = False) -> Added:
        """How many matches there are, and the sums or least values of an argument.

        `at_ends`: it is of the events that end matches, and not of those of the same slots inside others.
        """
        kind = LEAST if weights.least else SUM
        counts, values = self._walk(kind, weights.dtype, weights.values, at_ends)
        if weights.least or weights.dtype == np.float64:
            return Added(counts, counts.astype(np.float64), values, values)
        greatest = weights.greatest
        if self.whole.matches * max(greatest, 1.0) < _WHOLE / 2:
            return Added(counts, counts.astype(np.float64), values, values.astype(np.float64))
        floats = {slot: of_slot.astype(np.float64) for slot, of_slot in weights.values.items()}
        estimates, sums = self._walk(kind, np.dtype(np.float64), floats, at_ends)
        return Added(counts, estimates, values, self.whole.counts.estimated(values, sums, estimates, greatest))

    def _walk(
        self, kind: int, dtype: np.dtype[Any], weights: Mapping[int, Array] | None = None, at_ends: bool = False
    ) -> tuple[Array, Array]:
        """One walk: numbers of matches, and sums or least values."""
        whole, slots = self.whole, self._codes >> 1
        identity = NO_VALUE[dtype] if kind == LEAST else dtype.type(0)
        of_events = np.full(0 if weights is None else len(slots), identity, dtype)
        for slot, values in () if weights is None else weights.items():
            here = np.flatnonzero(slots == whole.counts.layout.slots.index(slot))
            of_events[here] = values[whole.numbers[self._kept[here]]]
        counts = np.zeros(self._shape, dtype)
        values = np.full((self._shape[0], 0 if weights is None else self._shape[1]), identity, dtype)
        WALKS[kind](
            self._codes, self._sets, self._homes, self._metric, whole.counts.store.width, self._segments,
            whole.counts.layout.steps, whole.stages, whole.ending, self._keeps, self._sets_at, self._members,
            of_events, at_ends, identity, counts, values,
        )  # fmt: skip
        whole.walked += len(slots)
        return counts, values
