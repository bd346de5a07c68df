"""Groups that depend on events which do not end the matches: all combinations of them, counted in one walk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventcube.engine.aggregate import foldable
from eventcube.engine.kernels import Ints
from eventcube.engine.output import Output
from eventcube.engine.table import Table
from eventcube.plan.counting import Counting
from eventcube.plan.logical import Computed


@dataclass(frozen=True, slots=True)
class Grouping:
    """The groups of some events: the number of the group of each, and the keys of each group."""

    numbers: Ints
    size: int
    keys: Mapping[str, pa.Array]


def grouping_of(values: Mapping[str, pa.Array], rows: int) -> Grouping:
    """The groups of events by some values."""
    if not values:
        return Grouping(np.zeros(rows, np.int64), 1, {})
    keyed = pa.table({**values, "": pa.array(np.arange(rows))})
    grouped = keyed.group_by([*values], use_threads=False).aggregate([("", "list")])
    places = grouped.column("_list").combine_chunks()
    numbers = np.empty(rows, np.int64)
    numbers[np.asarray(places.flatten())] = np.asarray(places.value_parent_indices())
    return Grouping(numbers, grouped.num_rows, {name: grouped.column(name).combine_chunks() for name in values})


@dataclass(frozen=True)
class Combinations:
    """The combinations of the groups of some slots, a row of `digits` for each: the number of the group of each slot.

    A slot that a match need not take has one number more, for those that do not.
    """

    counting: Counting
    groupings: Mapping[int, Grouping]
    digits: Ints

    @cached_property
    def keys(self) -> dict[str, pa.Array]:
        """The keys of each combination."""
        keys: dict[str, pa.Array] = {}
        for place, grouping in enumerate(self.groupings.values()):
            digits = self.digits[:, place]
            absent = digits == grouping.size
            rows = pa.array(np.where(absent, 0, digits), mask=absent)
            keys |= {name: values.take(rows) for name, values in grouping.keys.items()}
        return keys

    def slice(self, first: int, size: int) -> Combinations:
        """Some of the combinations."""
        return Combinations(self.counting, self.groupings, self.digits[first : first + size])

    def members(self, slot: int) -> dict[int, Ints]:
        """The combinations that events of a slot take part in, by the group of the event, 0 if there are no groups."""
        fits = np.ones(len(self.digits), np.bool_)
        for place, (other, grouping) in enumerate(self.groupings.items()):
            if (other, slot) in self.counting.excluded:
                fits &= self.digits[:, place] == grouping.size
        own = self.digits[:, [*self.groupings].index(slot)] if slot in self.groupings else np.zeros(len(fits), np.int64)
        return {int(number): np.flatnonzero(fits & (own == number)) for number in np.unique(own[fits])}


def combinations_of(counting: Counting, output: Output, most: int) -> Combinations | None:
    """The combinations of groups of the slots by which matches are split; None if they might be more than so many."""
    groupings: dict[int, Grouping] = {}
    digits = np.zeros((1, 0), np.int64)
    for slot in counting.split:
        rows = output.store.stack(slot).rows
        groupings[slot] = grouping = grouping_of(_keys_of(counting, slot, rows, output), len(rows))
        numbers = np.arange(grouping.size + (slot in counting.optional))
        if len(digits) * len(numbers) > most:
            return None
        digits = np.column_stack([np.repeat(digits, len(numbers), axis=0), np.tile(numbers, len(digits))])
        for place, other in enumerate([*groupings][:-1]):
            if (other, slot) in counting.excluded:
                both = (digits[:, place] < groupings[other].size) & (digits[:, -1] < grouping.size)
                digits = digits[~both]
    return Combinations(counting, groupings, digits)


def _keys_of(counting: Counting, slot: int, rows: Ints, output: Output) -> dict[str, pa.Array]:
    """The keys that depend on a slot, for its events."""
    table = Table((slot,), rows[None, :])
    keys: dict[str, Computed] = {f"k{i}": key.value for i, key in enumerate(output.plan.sink.results.group_by)}
    return {
        name: foldable(output.value(table, counting.at(key, slot)))
        for name, key in keys.items()
        if counting.free(key.expression) == {slot}
    }
