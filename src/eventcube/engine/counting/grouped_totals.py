"""Counts and sums of matches by groups of several of their events, as rows that groups can fold."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from eventcube.engine.aggregate import ESTIMATE, Groups, foldable
from eventcube.engine.counting.arguments import as_summable, sortable, value_at
from eventcube.engine.counting.combinations import Combinations, Grouping, grouping_of
from eventcube.engine.counting.counts import StageCounts, Weights
from eventcube.engine.counting.grouped import Added, GroupedCounts, Piece
from eventcube.engine.kernels import Array, Bools
from eventcube.engine.output import Output
from eventcube.plan.logical import Computed


class GroupedTotals:
    """What the aggregates of a query need, by combinations of groups and by groups of the events that end matches."""

    def __init__(self, groups: Groups, output: Output, counts: StageCounts, combinations: Combinations) -> None:
        self.groups, self.output, self.counting = groups, output, counts.counting
        combined = {name for grouping in combinations.groupings.values() for name in grouping.keys}
        keys = zip(groups.keys, groups.results.group_by, strict=True)
        values = {name: key.value for name, key in keys if name not in combined} | groups.distinct
        ends: dict[int, Grouping] = {}
        for slot in self.counting.stages.last_slots:
            rows = counts.stack(slot)
            arrays = {n: foldable(value_at(output, self.counting, v, slot, rows)) for n, v in values.items()}
            ends[slot] = grouping_of(arrays, len(rows))
        self._keys = {name: pa.chunked_array([end.keys[name] for end in ends.values()]) for name in values}
        self.grouped = GroupedCounts(counts, combinations, ends)
        self._arguments: dict[object, tuple[dict[int, slice], pa.Array, bool]] = {}

    def argument(self, argument: Computed, function: str) -> tuple[dict[int, slice], pa.Array, bool]:
        """The argument for all events of some slots: that which it is of, or those that end matches."""
        key = function, argument
        if key not in self._arguments:
            inner = self.counting.inside(argument.expression)
            slots = self.counting.stages.last_slots if inner is None else (inner,)
            rows = [self.grouped.counts.stack(slot) for slot in slots]
            ends = np.cumsum([0, *map(len, rows)])
            arrays = [
                as_summable(value_at(self.output, self.counting, argument, slot, own), function)
                for slot, own in zip(slots, rows, strict=True)
            ]
            places = {slot: slice(first, end) for slot, first, end in zip(slots, ends[:-1], ends[1:], strict=True)}
            self._arguments[key] = places, pa.concat_arrays(arrays), inner is None
        return self._arguments[key]

    def tables(self) -> Iterator[pa.Table]:
        """Rows of keys, counts and sums."""
        for piece in self.grouped.pieces():
            table = _Rows(self, piece).table()
            if table.num_rows:
                yield table


class _Rows:
    """The rows of some combinations."""

    def __init__(self, totals: GroupedTotals, piece: Piece) -> None:
        self.totals, self.piece = totals, piece
        self.output, self.counting, self.counts = totals.output, totals.counting, totals.grouped.counts
        self._counted = piece.count()
        # The groups of the events that end the matches of each row, and its combination.
        self._where = np.nonzero(self._counted.estimates > 0)
        self._added: dict[object, Added] = {}

    def table(self) -> pa.Table:
        """A row for each group that has matches."""
        ended, combined = map(pa.array, self._where)
        columns = {name: values.take(combined) for name, values in self.piece.combinations.keys.items()}
        columns |= {name: values.take(ended) for name, values in self.totals._keys.items()}
        for name, function, argument in self.totals.groups.parts:
            columns |= self._part(name, function, argument)
        return pa.table(columns)

    def _part(self, name: str, function: str, argument: Computed | None) -> dict[str, pa.Array]:
        if argument is None:
            return self._numbers(name, self._counted.counts, self._counted.estimates)
        difference = self.counting.difference(argument.expression)
        if difference is not None:
            return self._delay(name, function, difference)
        if function in ("MIN", "MAX"):
            return {name: self._least(argument, greatest=function == "MAX")}
        number, estimates = self._number_of(argument)
        if function == "COUNT":
            return self._numbers(name, number, estimates)
        found = self._sum(argument)
        missing = estimates == 0
        if name not in self.totals.groups.whole:
            return {name: self._array(found.values, missing)}
        return self._numbers(name, found.values, found.value_estimates, missing)

    def _delay(self, name: str, function: str, slots: tuple[int, int]) -> dict[str, pa.Array]:
        """A sum of how much later the event of one slot is than that of another, or the number of matches."""
        if function == "COUNT":
            return self._numbers(name, self._counted.counts, self._counted.estimates)
        store = self.output.store
        since = store.ts - store.ts.min(initial=store.ts[0])
        signed = {slot: sign * since[self.counts.stack(slot)] for slot, sign in zip(slots, (1, -1), strict=True)}
        most = min(float(since.max()), store.longest)
        if slots not in self._added:
            self._added[slots] = self.piece.weigh(Weights(signed, most=most))
        found = self._added[slots]
        return self._numbers(name, found.values, found.value_estimates)

    def _number_of(self, argument: Computed) -> tuple[Array, Array]:
        """How many matches have a value for the argument."""
        places, array, at_ends = self.totals.argument(argument, "COUNT")
        always_there = at_ends or not self.counting.optional & {*places}
        if not array.null_count and always_there:
            return self._counted.counts, self._counted.estimates
        found = self._weighed(("valid", argument), np.asarray(array.is_valid()).astype(np.int64), places, at_ends)
        return found.values, found.value_estimates

    def _sum(self, argument: Computed) -> Added:
        places, array, at_ends = self.totals.argument(argument, "SUM")
        return self._weighed(("sum", argument), np.asarray(array.fill_null(0)), places, at_ends)

    def _least(self, argument: Computed, *, greatest: bool) -> pa.Array:
        places, array, at_ends = self.totals.argument(argument, "MIN")
        numbers = sortable(array, greatest=greatest)
        found = self._weighed((greatest, argument), numbers.numbers, places, at_ends, least=True)
        return numbers.values(found.values[self._where])

    def _weighed(
        self, key: object, values: Array, places: dict[int, slice], at_ends: bool, *, least: bool = False
    ) -> Added:
        if key not in self._added:
            weights = Weights({slot: values[place] for slot, place in places.items()}, least)
            self._added[key] = self.piece.weigh(weights, at_ends=at_ends)
        return self._added[key]

    def _numbers(self, name: str, whole: Array, estimates: Array, missing: Bools | None = None) -> dict[str, pa.Array]:
        return {name: self._array(whole, missing), ESTIMATE + name: self._array(estimates, missing)}

    def _array(self, numbers: Array, missing: Bools | None = None) -> pa.Array:
        return pa.array(numbers[self._where], mask=None if missing is None else missing[self._where])
