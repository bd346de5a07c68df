"""Clusters of events with the same links: formed on a stack, bound like events, counted, and expanded.

Links come from the place of an event among those that the search goes on to, so that the events of a cluster are
neighbours on their stack, and a range of a stack is a few clusters, of which the first and the last may be cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np

from eventcube.engine.candidates import NO_TESTS
from eventcube.engine.cluster_kernels import bind_clusters
from eventcube.engine.kernels import Ints, expand
from eventcube.engine.table import Table, width_column
from eventcube.engine.views.strategy import Executor
from eventcube.plan.steps import Bind, BindClusters, ExpandClusters, Link, Program

# Counts up to this are exact in 64 bits, however they are added up.
_EXACT = 2.0**62


class Joins(Executor, Protocol):
    """What clusters need of the engine."""

    def range_of(self, bind: Bind, table: Table) -> tuple[Ints, Ints]:
        """The range of rows in which the candidates of each partial match lie."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """The clusters of a stack: where each begins, and at last where the stack ends; and the cluster of each event."""

    starts: Ints
    of: Ints

    @classmethod
    def formed(cls, slot: int, links: tuple[Link, ...], executor: Executor) -> Clusters:
        """The clusters of events that have the same links; without any, all events are one."""
        store = executor.store
        rows = store.stack(slot).rows
        events, differ = Table((slot,), rows.reshape(1, -1)), np.zeros(len(rows), np.bool_)
        for link in links:
            places = store.stack(link.slot, link.states).positions(executor.rows_at(link.bound, events))
            differ[1:] |= places[1:] != places[:-1]
        return cls(np.concatenate([[0], np.flatnonzero(differ), [len(rows)]]), np.cumsum(differ))


class ClusterJoins:
    """The joins of one execution that bind clusters, and what becomes of these."""

    def __init__(self, executor: Joins, scratch: Ints) -> None:
        self._executor, self._scratch = executor, scratch
        self._formed: dict[int, Clusters] = {}

    def bind(self, step: BindClusters, table: Table, lower: Ints, upper: Ints) -> Iterator[Table]:
        """Every partial match with each cluster, or part of one, from a lower row to before an upper one."""
        slot, counters = step.bind.slot, self._executor.counters
        if step.id not in self._formed:
            self._formed[step.id] = Clusters.formed(slot, step.links, self._executor)
        clusters, stack = self._formed[step.id], self._executor.store.stack(slot)
        lo, hi = stack.positions(lower), stack.positions(upper)
        columns = (*table.columns, slot, width_column(slot))
        row, offset = 0, 0
        while row < len(table):
            data, row, offset = bind_clusters(
                table.data, lo, hi, clusters.of, clusters.starts, stack.rows, row, offset, self._scratch
            )
            counters.candidates += data.shape[1]
            counters.links += data.shape[1]
            if data.shape[1]:
                yield Table(columns, data)

    def expand(self, slots: Sequence[int], table: Table) -> Iterator[Table]:
        """The partial matches with each combination of the events of their clusters for some slots."""
        if not slots:
            yield table
            return
        slot, *others = slots
        stack, width = self._executor.store.stack(slot), width_column(slot)
        rest = table.only(c for c in table.columns if c not in (slot, width))
        lo = stack.positions(table[slot])
        hi = lo + table[width]
        row, offset = 0, 0
        while row < len(table):
            data, row, offset, _ = expand(lo, hi, stack.rows, rest.data, NO_TESTS, row, offset, self._scratch)
            yield from self.expand(others, Table((*rest.columns, slot), data))

    def count(self, program: Program, last: ExpandClusters, table: Table) -> int:
        """The number of results of a program that ends by expanding clusters, none of which need be expanded."""
        final = program[-2]
        if not isinstance(final, BindClusters) or final.links:
            return sum(_combinations(_widths(last.slots, out)) for out in self._executor.run(program[:-1], table))
        total, others = 0, [slot for slot in last.slots if slot != final.bind.slot]
        stack, counters = self._executor.store.stack(final.bind.slot), self._executor.counters
        for out in self._executor.run(program[:-2], table):
            lower, upper = self._executor.range_of(final.bind, out)
            width = np.maximum(stack.positions(upper) - stack.positions(lower), 0)
            linked = int(np.count_nonzero(width))
            counters.candidates += linked
            counters.links += linked
            total += _combinations(np.vstack([_widths(others, out), width]))
        return total


def _widths(slots: Sequence[int], table: Table) -> Ints:
    """How many events the clusters of each slot have."""
    return table.only(map(width_column, slots)).data


def _combinations(widths: Ints) -> int:
    """How many combinations of events there are, added up; they can be more than 64 bits can count."""
    if float(np.prod(widths, axis=0, dtype=np.float64).sum()) < _EXACT:
        return int(np.prod(widths, axis=0).sum())
    return sum(map(prod, zip(*widths.tolist(), strict=True)))
