"""One query running over released events: what is kept, what is due, what comes out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa

from eventcube.engine.aggregate import Groups
from eventcube.engine.columns import Columns, codes_of, to_column
from eventcube.engine.counters import Counters
from eventcube.engine.exact import exactly
from eventcube.engine.execute import Execution, scratch
from eventcube.engine.expressions import Look, holds, texts_of, valid_mask
from eventcube.engine.flatten import Flattening
from eventcube.engine.kernels import Array, Bools, Ints, group
from eventcube.engine.limit import Earliest, Pieces
from eventcube.engine.memory import keep_freed_memory
from eventcube.engine.output import Output
from eventcube.engine.rows import Rows
from eventcube.engine.store import Store
from eventcube.engine.table import Table, joined
from eventcube.engine.views.strategy import Parts
from eventcube.language.syntax import CountWindow
from eventcube.plan.logical import PredicateClass, regions
from eventcube.plan.physical import PhysicalQuery, State

OUTPUT_ROWS = 1 << 13


@dataclass(frozen=True, slots=True)
class Released:
    """Events whose place in time is final, in order: later ones come later in time, with none of equal rank.

    `types` are codes of `type_names`, if events have types. `halo` is -1 or 1 for events that belong to the slice
    before or after, and whose matches are found there.
    """

    table: pa.Table
    ts: Ints
    rank: Ints
    types: Ints | None
    type_names: tuple[str, ...]
    halo: Ints | None = None

    def __len__(self) -> int:
        return len(self.ts)


class Engine:
    """Finds the matches of one query. Give it released events in order; it keeps what a window can still need."""

    def __init__(self, plan: PhysicalQuery, limit: int | None = None) -> None:
        keep_freed_memory()
        plan = exactly(plan)
        self.plan, self.logical = plan, plan.logical
        self.counters = Counters()
        self.parts = Parts()
        self.flattening = Flattening(plan)
        self._scratch = scratch()
        logical = self.logical
        limits = [n for n in (logical.query.limit, limit) if n is not None]
        self.limit = Earliest(min(limits), plan) if limits and not logical.query.agg else None
        self.groups = Groups(logical) if logical.query.agg else None
        every = [p for r in regions(logical.region) for p in r.predicates]
        self._local = {
            slot.index: [p.qual for p in every if p.kind is PredicateClass.LOCAL and p.slots == {slot.index}]
            for slot in logical.slots
        }
        self._local_texts = texts_of([q for quals in self._local.values() for q in quals], logical)
        self._texts = texts_of(
            [p.qual for p in every if p.kind is not PredicateClass.LOCAL and p.qual not in logical.implied], logical
        )
        self.by_count = isinstance(logical.window, CountWindow)
        self.width: int | None = None
        if isinstance(logical.window, CountWindow):
            # No stream is longer, and twice as much still fits 64 bits.
            self.width = min(logical.window.events - 1, 2**60)
        elif logical.window is not None:
            self.width = logical.window.microseconds
        own = logical.schema.partition_by
        self.key = (*own, *(k for k in logical.key if k not in own))
        alone = len(logical.positive) == 1
        self._tied = [s.index for s in logical.slots if not (alone and s in logical.positive)]
        self.rows: Rows | None = None
        self.sequence = 0
        self.position = 0
        self.positions: pa.Table | None = None

    # What goes in.

    def feed(self, released: Released, watermark: int | None) -> Iterator[pa.RecordBatch]:
        """Take events in and give the matches that are due; without a watermark the input has ended."""
        if self.limit is not None and not self.limit.left:
            self.rows = None
            return
        fresh = self._rows(released)
        rows = fresh if self.rows is None else self.rows.append(fresh)
        state, due = self._states(rows, watermark)
        if due:
            yield from self._matches(rows, state)
        self.rows = self._still_needed(rows, state, watermark)
        self.parts.count_bytes(self.counters)
        if watermark is None:
            self.parts.close(self.counters)
            yield from self._rest()

    def _rows(self, released: Released) -> Rows:
        """The events that some component can use."""
        positions = self._positions(released) if self.by_count else None
        relevant = self._relevant(released)
        table = released.table.select(self.logical.columns)
        ts, rank, types, halo = released.ts, released.rank, released.types, released.halo
        if not relevant.all():
            index = np.flatnonzero(relevant)
            table = table.take(pa.array(index))
            ts, rank = ts[index], (ts if rank is ts else rank)[index]
            positions = None if positions is None else positions[index]
            types = None if types is None else types[index]
            halo = None if halo is None else halo[index]
        member = self._members(table, len(ts), types, released.type_names)
        halo = np.zeros(len(ts), np.int8) if halo is None else halo
        positions = ts if positions is None else positions
        rows = Rows(ts, ts, positions, rank, halo < 0, halo > 0, member, table.combine_chunks())
        for name in self.logical.key:
            # Nothing equals null, except that a lone event need not equal anything to match.
            member[self._tied] &= valid_mask(to_column(rows.payload.column(name)))
        if not self.plan.forward:
            # A match ends no earlier than its events do: one with such an event is found by the run it belongs to.
            member &= ~rows.ahead
        rows = rows.where(np.asarray(member.any(axis=0)))
        self.counters.relevant += len(rows)
        # Numbers without gaps, so that where no key sorts events a row follows from a number.
        self.sequence += len(rows)
        return replace(rows, seq=np.arange(self.sequence - len(rows), self.sequence, dtype=np.int64))

    def _relevant(self, released: Released) -> Bools:
        if released.types is None:
            return np.ones(len(released), np.bool_)
        wanted = frozenset().union(*(s.types or () for s in self.logical.slots))
        if wanted.issuperset(released.type_names):
            return released.types >= 0
        return np.asarray(_members_of((wanted,), released.type_names)[0, released.types])

    def _members(self, table: pa.Table, size: int, types: Ints | None, names: tuple[str, ...]) -> Array:
        slots = self.logical.slots
        if types is None:
            member = np.ones((len(slots), size), np.bool_)
        else:
            member = _members_of(tuple(s.types for s in slots), names)[:, types]
        columns = Columns(table, self._local_texts)
        for slot in slots:
            own = member[slot.index]
            for qual in self._local[slot.index]:
                index = np.flatnonzero(own)
                held = holds(qual, len(index), _looking(columns, index), columns.code)
                own[index[~held]] = False
        return member

    def _positions(self, released: Released) -> Ints:
        """The place of each event in the stream, or in its partition."""
        size = len(released)
        if not self.logical.schema.partition_by:
            own = np.arange(self.position, self.position + size, dtype=np.int64)
            self.position += size
            return own
        keys = [f"k{i}" for i in range(len(self.logical.schema.partition_by))]
        fresh = released.table.select(self.logical.schema.partition_by).rename_columns(keys)
        known = (
            self.positions
            if self.positions is not None
            else fresh.slice(0, 0).append_column("n", pa.array([], pa.int64()))
        )
        joint = pa.concat_tables([known.select(keys), fresh])
        codes, groups = codes_of([joint.column(k) for k in keys], nulls_match=True)
        order, starts = group(codes, groups)
        # In each group the known total comes first, then the events that follow it.
        base = np.zeros(groups, np.int64)
        base[codes[: known.num_rows]] = known.column("n").to_numpy()
        seen_before = np.zeros(groups, np.int64)
        seen_before[codes[: known.num_rows]] = 1
        within = np.empty(len(codes), np.int64)
        within[order] = np.arange(len(codes)) - np.repeat(starts[:-1], np.diff(starts))
        own = (base[codes] + within - seen_before[codes])[known.num_rows :]
        used = np.flatnonzero(np.diff(starts))
        totals = base[used] + np.diff(starts)[used] - seen_before[used]
        self.positions = joint.take(pa.array(order[starts[used]])).append_column("n", pa.array(totals))
        return own

    # What is due.

    def _states(self, rows: Rows, watermark: int | None) -> tuple[Ints | None, bool]:
        """For each event whether its matches are done, due or future; None means all due."""
        if not self.plan.forward:
            if not rows.done.any():
                return None, len(rows) > 0
            return np.where(rows.done, State.DONE.value, State.DUE.value), not rows.done.all()
        closed = self._closed(rows, watermark) & ~rows.ahead
        state = np.where(rows.done, State.DONE.value, np.where(closed, State.DUE.value, State.FUTURE.value))
        return state, bool((closed & ~rows.done).any())

    def _closed(self, rows: Rows, watermark: int | None) -> Bools:
        """Where a window that begins with the event can get no more events."""
        if watermark is None:
            return np.ones(len(rows), np.bool_)
        if self.width is None:
            return np.zeros(len(rows), np.bool_)
        if not self.by_count:
            return rows.ts < watermark - self.width
        return rows.pos + self.width < self._totals(rows)

    def _totals(self, rows: Rows) -> Ints:
        """How many events each event's partition has had."""
        if self.positions is None:
            return np.full(len(rows), self.position, np.int64)
        keys = [f"k{i}" for i in range(len(self.logical.schema.partition_by))]
        own = rows.payload.select(self.logical.schema.partition_by).rename_columns(keys)
        joint = pa.concat_tables([self.positions.select(keys), own])
        codes, groups = codes_of([joint.column(k) for k in keys], nulls_match=True)
        totals = np.zeros(groups, np.int64)
        totals[codes[: self.positions.num_rows]] = self.positions.column("n").to_numpy()
        return totals[codes[self.positions.num_rows :]]

    def _still_needed(self, rows: Rows, state: Ints | None, watermark: int | None) -> Rows:
        """The events that a match still to come can use."""
        done = np.ones(len(rows), np.bool_) if not self.plan.forward else rows.done | (state == State.DUE.value)
        rows = replace(rows, done=done)
        if watermark is None or len(self.logical.slots) == 1:
            return rows.where(np.zeros(len(rows), np.bool_))
        if self.width is None:
            return rows
        reach = self.width * (2 if self.plan.forward and self.plan.looks_back else 1)
        if self.by_count:
            return rows.where(rows.pos + reach >= self._totals(rows))
        return rows.where(rows.ts >= watermark - reach)

    # What comes out.

    def _matches(self, rows: Rows, state: Ints | None) -> Iterator[pa.RecordBatch]:
        if self.limit is not None:
            yield from self._count(self._earliest(self.limit, rows, state))
            return
        execution = self._execution(rows, state)
        counting = self.groups is not None and self.groups.only_count
        program, start = self.flattening.program(execution, hand_on=not counting), Table.single()
        if self.groups is not None:
            if counting:
                found = execution.count(program, start)
                self.counters.matches += found
                self.groups.add_count(found)
                return
            output = Output(self.plan, execution)
            for table in execution.run(program, start):
                self.counters.matches += len(table)
                self.groups.add(table, output)
            return
        output = Output(self.plan, execution)
        yield from self._count(output.batch(t) for t in coalesced(execution.run(program, start)))

    def _execution(self, rows: Rows, state: Ints | None) -> Execution:
        store = Store(rows, self.key, self._texts, self.width, self.by_count)
        if state is not None:
            store.set_states(state)
        return Execution(self.logical, store, self.parts, self.counters, self._scratch)

    def _earliest(self, limit: Earliest, rows: Rows, state: Ints | None) -> Iterator[pa.RecordBatch]:
        """The first matches: due events are taken in pieces, in order of time, until nothing left can be earlier."""
        slots = list(self.plan.first if self.plan.forward else self.plan.last)
        trigger: Bools = np.asarray(rows.member[slots].any(axis=0))
        for piece in Pieces(limit, rows, state, trigger, forward=self.plan.forward):
            execution = self._execution(piece.rows, piece.state)
            output = Output(self.plan, execution)
            for table in execution.run(self.plan.program, Table.single()):
                piece.found += len(table)
                if piece.crowded:
                    break
                limit.add(table, execution.store, output)
            else:
                yield from limit.settled(output, following=piece.following)

    def _rest(self) -> Iterator[pa.RecordBatch]:
        if self.groups is not None:
            yield self.groups.result()
        elif self.limit is not None:
            yield from self._count(self.limit.rest())

    def _count(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.counters.matches += batch.num_rows
            yield batch


def _looking(columns: Columns, rows: Ints) -> Look:
    """Attributes of some rows, whatever variable they are of."""
    return lambda attribute: columns[attribute.name].take(rows)


@lru_cache(maxsize=256)
def _members_of(slots: tuple[frozenset[str] | None, ...], names: tuple[str, ...]) -> Bools:
    """For each slot and code whether the slot takes events of that name; the last code, -1, is of other types."""
    return np.array([[types is None or n in types for n in (*names, None)] for types in slots], np.bool_)


def coalesced(tables: Iterator[Table]) -> Iterator[Table]:
    """The same rows in tables that are not small, but for the last."""
    waiting: list[Table] = []
    for table in tables:
        waiting.append(table)
        if sum(map(len, waiting)) >= OUTPUT_ROWS:
            yield joined(waiting)
            waiting = []
    if waiting:
        yield joined(waiting)
