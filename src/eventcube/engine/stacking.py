"""Turns released events into rows: which of them some stack takes, and the places of each stack's events."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eventcube.engine.columns import Columns, to_column
from eventcube.engine.expressions import Look, holds, valid_mask
from eventcube.engine.kernels import Array, Ints
from eventcube.engine.order_kernels import stack_types
from eventcube.engine.payload import Payload
from eventcube.engine.released import Released
from eventcube.engine.retention import places_of
from eventcube.engine.rows import Rows
from eventcube.plan.workload import StackScan, WorkloadPlan


class Stacking:
    """Puts events on the stacks of a workload."""

    def __init__(self, plan: WorkloadPlan) -> None:
        self.plan = plan
        code = {name: number for number, name in enumerate(plan.types)}
        self._codes = [
            None if stack.types is None else np.array(sorted(code[name] for name in stack.types), np.int64)
            for stack in plan.stacks
        ]
        # Whether every event of a named type is in a stack, so that there is nothing to look for in others.
        unconditional = {c for s, codes in zip(plan.stacks, self._codes, strict=True) for c in _all_of(s, codes)}
        self._exact = len(unconditional) == len(plan.types) and not plan.takes_any

    def rows(self, released: Released, positions: tuple[Ints, ...], first_seq: int) -> Rows:
        """The events that some stack takes, numbered from a sequence number on."""
        plan, table = self.plan, released.table
        size = len(released)
        index: Ints | None = None
        order = starts = np.empty(0, np.int64)
        if released.types is not None:
            relevant, order, starts = stack_types(released.types, len(plan.types), plan.takes_any)
            index = None if len(relevant) == size else relevant
        payload = Payload(table.select(plan.columns), size, released.index)
        rows = _Part(released.ts, released.rank, released.halo, positions, payload)
        if index is not None:
            rows = rows.take(index)
        stacks = tuple(self._stack(i, rows, order, starts) for i in range(len(plan.stacks)))
        if rows.halo is not None:
            own = rows.halo <= 0
            stacks = tuple(s if scan.ahead else s[own[s]] for s, scan in zip(stacks, plan.stacks, strict=True))
        seq = np.arange(first_seq, first_seq + len(rows), dtype=np.int64)
        stacked = Rows(rows.ts, seq, rows.rank, rows.positions, stacks, rows.payload, rows.halo)
        if self._exact and rows.halo is None:
            return stacked
        left = stacked.where(places_of(stacks, len(stacked)))
        # Numbers without gaps, so that where no key sorts events a row follows from a number.
        return left if len(left) == len(stacked) else left.numbered(first_seq)

    def _stack(self, number: int, rows: _Part, order: Ints, starts: Ints) -> Ints:
        scan, codes = self.plan.stacks[number], self._codes[number]
        if codes is None or not len(starts):
            places = np.arange(len(rows), dtype=np.int64)
        else:
            places = _places(codes, order, starts)
        if scan.since is not None:
            places = places[places.searchsorted(rows.ts.searchsorted(scan.since)) :]
        if scan.conditions and rows.columns is None:
            rows.columns = Columns(rows.payload, self.plan.conditions)
        return self.fitting(scan, places, rows.payload, rows.columns)

    def fitting(self, scan: StackScan, places: Ints, payload: Payload, columns: Columns | None = None) -> Ints:
        """The places of the events, of the right types, that the conditions of a stack hold for."""
        for name in scan.not_null:
            known = valid_mask(to_column(payload.column(name)))
            places = places if known.all() else places[known[places]]
        columns = columns or Columns(payload, self.plan.conditions)
        for condition in scan.conditions:
            places = places[holds(condition, len(places), _looking(columns, places), columns)]
        return places


class _Part:
    """Some of the released events."""

    __slots__ = ("columns", "halo", "payload", "positions", "rank", "ts")

    def __init__(self, ts: Ints, rank: Ints, halo: Array | None, positions: tuple[Ints, ...], payload: Payload) -> None:
        self.ts, self.rank, self.halo, self.positions, self.payload = ts, rank, halo, positions, payload
        self.columns: Columns | None = None

    def __len__(self) -> int:
        return len(self.ts)

    def take(self, index: Ints) -> _Part:
        ts = self.ts[index]
        return _Part(
            ts,
            ts if self.rank is self.ts else self.rank[index],
            None if self.halo is None else self.halo[index],
            tuple(p[index] for p in self.positions),
            self.payload.select(index),
        )


def _all_of(scan: StackScan, codes: Ints | None) -> list[int]:
    """The codes of the types all of whose events the stack takes."""
    return [] if codes is None or scan.conditions or scan.not_null or scan.since is not None else codes.tolist()


def _places(codes: Ints, order: Ints, starts: Ints) -> Ints:
    """The places of events with these codes, ascending."""
    if not len(codes):
        return np.empty(0, np.int64)
    first, last = int(codes[0]), int(codes[-1])
    if last - first + 1 == len(codes):
        # A type, or a concept whose types have a range of codes.
        places = order[starts[first] : starts[last + 1]]
    else:
        places = np.concatenate([order[starts[c] : starts[c + 1]] for c in codes.tolist()])
    return places if first == last else np.sort(places)


def _looking(columns: Columns, rows: Ints) -> Look:
    """Columns of some rows, whatever slot they are of."""
    return lambda ref: columns[ref].take(rows)


def empty_rows(plan: WorkloadPlan, columns: pa.Schema) -> Rows:
    """No events."""
    schema = pa.schema([columns.field(name) for name in plan.columns])
    return Rows.none(schema, len(plan.stacks), len(plan.partitionings))
