"""Counts and sums of matches, for each event that ends some, as rows that groups can fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventcube.engine.aggregate import ESTIMATE, Groups, foldable
from eventcube.engine.counting.arguments import as_summable, sortable, value_at
from eventcube.engine.counting.counts import Found, StageCounts, Weights
from eventcube.engine.kernels import Array, Bools, Ints
from eventcube.engine.output import Output
from eventcube.engine.table import Table
from eventcube.plan.counting import Counting
from eventcube.plan.logical import Computed


class Totals:
    """What all aggregates of a query need, from one preparation of the events; `fixed` has keys that are the same for
    all of these matches.
    """

    def __init__(self, groups: Groups, counts: StageCounts, output: Output, fixed: Mapping[str, pa.Scalar]) -> None:
        self.groups, self.counts, self.output, self._fixed = groups, counts, output, fixed
        self._known: dict[object, Any] = {}

    @property
    def counting(self) -> Counting:
        """The plan that is followed."""
        return self.counts.counting

    @property
    def matches(self) -> int:
        """How many matches there are, about that many if 64 bits cannot hold them."""
        return self._base.matches

    def tables(self) -> Iterator[pa.Table]:
        """For each slot whose events end matches: a row for each of these events with its keys, counts and sums."""
        base = self._base
        for slot in self.counting.stages.last_slots:
            here = np.flatnonzero((base.slots == slot) & (base.estimates > 0))
            if len(here):
                yield self._table(slot, here)

    def _table(self, slot: int, here: Ints) -> pa.Table:
        table = Table((slot,), self._base.rows[here][None, :])
        per_event = self.groups.results.per is not None
        columns = self.groups.key_values(table, self.output) if per_event else {}
        for name, key in () if per_event else zip(self.groups.keys, self.groups.results.group_by, strict=True):
            if name in self._fixed:
                columns[name] = pa.repeat(self._fixed[name], len(here))
            else:
                columns[name] = foldable(self._at(key.value, slot, table))
        for name, counted in self.groups.distinct.items():
            columns[name] = foldable(self._at(counted, slot, table))
        for name, function, argument in self.groups.parts:
            columns |= self._part(name, function, argument, slot, here, table)
        return pa.table(columns)

    def _at(self, value: Computed, slot: int, table: Table) -> pa.Array:
        return value_at(self.output, self.counting, value, slot, table[slot])

    # The columns of an aggregate.

    def _part(
        self, name: str, function: str, argument: Computed | None, slot: int, here: Ints, table: Table
    ) -> dict[str, pa.Array]:
        if argument is None:
            return self._numbers(name, *self._counted_at(here))
        difference = self.counting.difference(argument.expression)
        if difference is not None:
            return self._delay(name, function, difference, slot, here)
        inner = self.counting.inside(argument.expression)
        if inner is None:
            return self._own(name, function, argument, here, table)
        # The argument can be of the event that ends the match, of one before it, or here of one, there of the other.
        own = self._own(name, function, argument, here, table) if inner == slot else None
        if function in ("MIN", "MAX"):
            least = self._least(argument, inner, function == "MAX", here)
            if own is not None:
                least = _better(least, own[name], pc.greater if function == "MAX" else pc.less)
            return {name: least}
        before = self._sums(name, function, argument, inner, here)
        return before if own is None else {column: _added(before[column], own[column]) for column in before}

    def _delay(self, name: str, function: str, slots: tuple[int, int], slot: int, here: Ints) -> dict[str, pa.Array]:
        """A sum of how much later the event of one slot is than that of another, or the number of matches."""
        counts, estimates = self._counted_at(here)
        if function == "COUNT":
            return self._numbers(name, counts, estimates)
        store = self.output.store
        since = store.ts - store.ts.min(initial=store.ts[0])
        signs = dict(zip(slots, (1, -1), strict=True))
        most = min(float(since.max()), store.longest)
        inner = {s: sign * since[self.counts.stack(s)] for s, sign in signs.items() if s in self.counting.inner}
        whole, floats = np.zeros(len(here), np.int64), np.zeros(len(here))
        if inner:
            found = self._walk((slots, "delay"), Weights(inner, most=most))
            assert found.values is not None
            assert found.value_estimates is not None
            whole, floats = found.values[here], found.value_estimates[here]
        if slot in signs:
            own = signs[slot] * since[self._base.rows[here]]
            whole, floats = whole + own * counts, floats + own * estimates
        return self._numbers(name, whole, self.counts.estimated(whole, floats, estimates, most))

    def _sums(self, name: str, function: str, argument: Computed, slot: int, here: Ints) -> dict[str, pa.Array]:
        """A count, or a sum, of an argument of events that do not end the matches."""
        number, estimates = self._number_of(argument, slot, here)
        if function == "COUNT":
            return self._numbers(name, number, estimates)
        found = self._weighed(argument, slot)
        assert found.values is not None
        if name not in self.groups.whole:
            return {name: pa.array(found.values[here], mask=estimates == 0)}
        assert found.value_estimates is not None
        return self._numbers(name, found.values[here], found.value_estimates[here], estimates == 0)

    def _numbers(self, name: str, whole: Ints, estimates: Array, mask: Bools | None = None) -> dict[str, pa.Array]:
        return {name: pa.array(whole, mask=mask), ESTIMATE + name: pa.array(estimates, mask=mask)}

    def _own(self, name: str, function: str, argument: Computed, here: Ints, table: Table) -> dict[str, pa.Array]:
        """An aggregate of the events that end the matches."""
        slot = table.columns[0]
        array = as_summable(self._at(argument, slot, table), function)
        if function in ("MIN", "MAX"):
            return {name: array}
        valid = np.asarray(array.is_valid())
        if function == "COUNT":
            counts, estimates = self._counted_at(here)
            return self._numbers(name, counts * valid, estimates * valid)
        if name not in self.groups.whole:
            values = np.asarray(array.fill_null(0.0).cast(pa.float64()))
            return {name: pa.array(values * self._base.estimates[here], mask=~valid)}
        values = np.asarray(array.fill_null(0).cast(pa.int64()))
        counts, estimates = self._counted_at(here)
        return self._numbers(name, values * counts, values * estimates, ~valid)

    def _number_of(self, argument: Computed, slot: int, here: Ints) -> tuple[Ints, Array]:
        """How many matches have a value for the argument."""
        _, valid = self._argument(argument, slot, "COUNT")
        in_all = slot not in self.output.plan.optional and slot not in self.counting.stages.last_slots
        if valid.all() and in_all:
            return self._counted_at(here)
        found = self._walk(("valid", argument), Weights({slot: valid.astype(np.int64)}))
        assert found.values is not None
        assert found.value_estimates is not None
        return found.values[here], found.value_estimates[here]

    def _weighed(self, argument: Computed, slot: int) -> Found:
        array, valid = self._argument(argument, slot, "SUM")
        values = np.asarray(array.fill_null(0))
        return self._walk(("sum", argument), Weights({slot: np.where(valid, values, values.dtype.type(0))}))

    def _least(self, argument: Computed, slot: int, greatest: bool, here: Ints) -> pa.Array:
        """The least value, or the greatest: the least of their opposites."""
        array, _ = self._argument(argument, slot, "MIN")
        numbers = sortable(array, greatest=greatest)
        found = self._walk((greatest, argument), Weights({slot: numbers.numbers}, least=True))
        assert found.values is not None
        return numbers.values(found.values[here])

    def _argument(self, argument: Computed, slot: int, function: str) -> tuple[pa.Array, Bools]:
        """The argument for all events of its slot, and where it is not null."""
        key = (function, argument)
        if key not in self._known:
            rows = self.counts.stack(slot)
            value = self.counting.at(argument, slot)
            array = as_summable(self.output.value(Table((slot,), rows[None, :]), value), function)
            self._known[key] = array, np.asarray(array.is_valid())
        known: tuple[pa.Array, Bools] = self._known[key]
        return known

    def _walk(self, key: object, weights: Weights) -> Found:
        if key not in self._known:
            found = self._known[key] = self.counts.weigh(weights)
            if found.counts is not None:
                self._known.setdefault("count", found)
        known: Found = self._known[key]
        return known

    @property
    def _counted(self) -> Found:
        """How many matches there are."""
        if "count" not in self._known:
            self._known["count"] = self.counts.count()
        found: Found = self._known["count"]
        return found

    def _counted_at(self, here: Ints) -> tuple[Ints, Array]:
        counts = self._counted.counts
        assert counts is not None
        return counts[here], self._counted.estimates[here]

    @cached_property
    def _base(self) -> Found:
        """Where there are matches: what sums need anyway tells it."""
        for _, function, argument in self.groups.parts:
            slot = None if argument is None or function != "SUM" else self.counting.inside(argument.expression)
            if argument is not None and slot is not None:
                return self._weighed(argument, slot)
        return self._counted


def _added(one: pa.Array, other: pa.Array) -> pa.Array:
    """The sum where both are there, else the one that is."""
    return pc.coalesce(pc.add(one, other), one, other)


def _better(one: pa.Array, other: pa.Array, is_better: Callable[[pa.Array, pa.Array], pa.Array]) -> pa.Array:
    """The better of two where both are there, else the one that is."""
    takes_other = pc.or_kleene(pc.is_null(one), is_better(other, one)).fill_null(False)
    return pc.if_else(takes_other, other, one)
