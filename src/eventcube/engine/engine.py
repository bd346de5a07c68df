"""One query running over released events: what is kept, what is due, what comes out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa

from eventcube.engine.allocator import keep_freed_memory
from eventcube.engine.columns import Columns, codes_of, to_column
from eventcube.engine.counters import Counters
from eventcube.engine.execute import Execution, scratch
from eventcube.engine.expressions import Look, holds, valid_mask
from eventcube.engine.idle_partitions import Hashes, IdlePartitions, hashes_of
from eventcube.engine.kernels import Array, Bools, Ints, group
from eventcube.engine.output import Output
from eventcube.engine.rows import Rows
from eventcube.engine.sampling import StoredEvents
from eventcube.engine.sinks.sink import make_sink
from eventcube.engine.store import Store
from eventcube.engine.table import Table
from eventcube.engine.views.strategy import Parts
from eventcube.optimizer.choose import Costs, ProgramChoice
from eventcube.plan.physical import PhysicalQuery
from eventcube.plan.steps import Program, State

# Partitions that are active at least, and for each new event: only the others can be idle.
_MIN_ACTIVE, _ACTIVE_PER_EVENT = 1 << 13, 4


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

    def __init__(self, plan: PhysicalQuery) -> None:
        keep_freed_memory()
        self.plan, self.scan = plan, plan.scan
        self.counters = Counters()
        self.parts = Parts()
        self.programs = ProgramChoice(plan, self.parts.cost)
        self._scratch = scratch()
        own = self.scan.partition_by
        self.sink = make_sink(plan)
        self.by_count, self.width = self.scan.by_count, self.scan.width
        self._keyed = [i for i, component in enumerate(self.scan.components) if component.keyed]
        self.rows: Rows | None = None
        self.sequence = 0
        self.position = 0
        self.positions: pa.Table | None = None
        # To report the earliest matches, every event that a match can still begin with must be in `rows`.
        separate_streams = self.by_count and own and not (plan.forward and plan.sink.limit is not None)
        self._idle = IdlePartitions(own) if separate_streams else None

    # What goes in.

    def feed(self, released: Released, watermark: int | None) -> Iterator[pa.RecordBatch]:
        """Take events in and give the matches that are due; without a watermark the input has ended."""
        if self.sink.is_full:
            self.rows = None
            if self._idle is not None:
                self._idle.take_all()
            return
        if watermark is None:
            self.gather()
        elif self._idle is not None and self._idle.partitions:
            self._put_back(self._idle.take(self._touched(released)))
        fresh = self._rows(released)
        rows = fresh if self.rows is None else self.rows.append(fresh)
        state, due = self._states(rows, watermark)
        if due:
            yield from self.sink.take(_Due(self, rows, state))
        self.rows = self._still_needed(rows, state, watermark)
        if self._idle is not None and watermark is not None:
            self._move_to_idle(self._idle, released)
        self.parts.count_bytes(self.counters)
        if watermark is None:
            self.parts.close(self.counters)
            yield from self.sink.finish(self.counters)

    def _rows(self, released: Released) -> Rows:
        """The events that some component can use."""
        positions = self._positions(released) if self.by_count else None
        relevant = self._relevant(released)
        table = released.table.select(self.scan.columns)
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
        for name in self.scan.key:
            member[self._keyed] &= valid_mask(to_column(rows.payload.column(name)))
        if not self.plan.forward:
            # A match ends no earlier than its events do: one with such an event is found by the run it belongs to.
            member &= ~rows.ahead
        rows = rows.where(np.asarray(member.any(axis=0)))
        self.counters.relevant += len(rows)
        # Numbers without gaps, so that where no key sorts events a row follows from a number.
        self.sequence += len(rows)
        return replace(rows, seq=np.arange(self.sequence - len(rows), self.sequence, dtype=np.int64))

    def _relevant(self, released: Released) -> Bools:
        wanted = self.scan.types
        if released.types is None or wanted is None:
            return np.ones(len(released), np.bool_)
        if wanted.issuperset(released.type_names):
            return released.types >= 0
        return np.asarray(_members_of((wanted,), released.type_names)[0, released.types])

    def _members(self, table: pa.Table, size: int, types: Ints | None, names: tuple[str, ...]) -> Array:
        components = self.scan.components
        if types is None:
            member = np.ones((len(components), size), np.bool_)
        else:
            member = _members_of(tuple(c.types for c in components), names).take(types, axis=1)
        columns = Columns(table, self.scan.dictionary)
        for own, component in zip(member, components, strict=True):
            for condition in component.conditions:
                index = np.flatnonzero(own)
                held = holds(condition, len(index), _looking(columns, index), columns)
                own[index[~held]] = False
        return member

    def _positions(self, released: Released) -> Ints:
        """The place of each event in the stream, or in its partition."""
        size = len(released)
        if not self.scan.partition_by:
            own = np.arange(self.position, self.position + size, dtype=np.int64)
            self.position += size
            return own
        keys = [f"k{i}" for i in range(len(self.scan.partition_by))]
        fresh = released.table.select(self.scan.partition_by).rename_columns(keys)
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

    # Partitions that get no events at the moment.

    @property
    def kept(self) -> int:
        """How many events are kept for matches to come."""
        return (0 if self.rows is None else len(self.rows)) + (0 if self._idle is None else self._idle.events)

    @property
    def partitions(self) -> int:
        """How many partitions have events that are kept for a window of events."""
        counted = 0 if self.positions is None else self.positions.num_rows
        return counted + (0 if self._idle is None else self._idle.partitions)

    def gather(self) -> None:
        """Have all events that are kept in `rows`, and the totals of all partitions in `positions`."""
        if self._idle is not None:
            self._put_back(self._idle.take_all())

    def _touched(self, released: Released) -> Hashes:
        """The partitions of released events."""
        return np.unique(hashes_of([released.table.column(k) for k in self.scan.partition_by]))

    def _put_back(self, found: tuple[Rows, pa.Table] | None) -> None:
        if found is None:
            return
        rows, totals = found
        rows = rows if self.rows is None else self.rows.append(rows)
        self.rows = rows.take(np.argsort(rows.seq))
        self.positions = totals if self.positions is None else pa.concat_tables([self.positions, totals])

    def _move_to_idle(self, idle: IdlePartitions, released: Released) -> None:
        """Store the events of partitions that got none apart, once there are many of them."""
        most = max(_MIN_ACTIVE, _ACTIVE_PER_EVENT * len(released))
        if self.rows is None or self.positions is None or self.positions.num_rows < most:
            return
        touched = self._touched(released)
        keys = self.scan.partition_by
        by_row, by_key = hashes_of([self.rows.payload.column(k) for k in keys]), hashes_of(self.positions.columns[:-1])
        # Only differences between positions matter: a partition without events may start again from 0.
        needed = np.isin(by_key, by_row)
        row_quiet, key_quiet = ~np.isin(by_row, touched), ~np.isin(by_key, touched) & needed
        if key_quiet.any():
            idle.put(self.rows.where(row_quiet), self.positions.filter(pa.array(key_quiet)))
        self.rows = self.rows.where(~row_quiet)
        self.positions = self.positions.filter(pa.array(needed & ~key_quiet))

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
        keys = [f"k{i}" for i in range(len(self.scan.partition_by))]
        own = rows.payload.select(self.scan.partition_by).rename_columns(keys)
        joint = pa.concat_tables([self.positions.select(keys), own])
        codes, groups = codes_of([joint.column(k) for k in keys], nulls_match=True)
        totals = np.zeros(groups, np.int64)
        totals[codes[: self.positions.num_rows]] = self.positions.column("n").to_numpy()
        return totals[codes[self.positions.num_rows :]]

    def _still_needed(self, rows: Rows, state: Ints | None, watermark: int | None) -> Rows:
        """The events that a match still to come can use."""
        done = np.ones(len(rows), np.bool_) if not self.plan.forward else rows.done | (state == State.DUE.value)
        rows = replace(rows, done=done)
        if watermark is None or len(self.scan.components) == 1:
            return rows.where(np.zeros(len(rows), np.bool_))
        if self.width is None:
            return rows
        reach = self.width * (2 if self.plan.forward and self.plan.looks_back else 1)
        if self.by_count:
            return rows.where(rows.pos + reach >= self._totals(rows))
        return rows.where(rows.ts >= watermark - reach)

    # What comes out.

    def program(self, execution: Execution) -> Program:
        """The program that the optimizer chooses for an execution."""
        return self.programs.program(StoredEvents(execution), materialize=not self.sink.only_counts)

    def estimate(self, released: Released) -> Costs:
        """What the programs would cost over these events, if there were no others; nothing is run."""
        rows = self._rows(released)
        events = StoredEvents(self.execution(rows, self._states(rows, None)[0]))
        return self.programs.estimate(events, materialize=not self.sink.only_counts)

    def choices(self, *, measured: bool = False) -> Iterator[str]:
        """What was chosen and expected, in words, for the program and for parts; `measured`: and what parts did."""
        if self.programs.is_open:
            yield f"program: {self.programs.summary()}"
        for strategy, choice in self.parts.choices():
            yield f"({strategy.part.name}): {choice.summary()}"
            yield from (f"  {line}" for line in strategy.report() if measured)

    def execution(self, rows: Rows, state: Ints | None) -> Execution:
        """An execution over these events; without states, the matches of all are due."""
        store = Store(rows, self.scan.sort_key, self.plan.dictionary, self.width, self.by_count)
        if state is not None:
            store.set_states(state)
        return Execution(store, self.parts, self.counters, self._scratch)

    def nothing(self) -> tuple[Table, Output]:
        """No match, and what would make a result of it: this tells how results of the query are kept."""
        slots = tuple(range(len(self.scan.components)))
        rows = Rows.none(self.plan.schema.columns, self.scan.columns, len(slots))
        table = Table(slots, np.empty((len(slots), 0), np.int64))
        return table, Output(self.plan, self.execution(rows, None))


@dataclass(frozen=True, slots=True)
class _Due:
    """The due events of an engine, for its sink."""

    engine: Engine
    rows: Rows
    state: Ints | None

    @property
    def counters(self) -> Counters:
        return self.engine.counters

    @property
    def parts(self) -> Parts:
        return self.engine.parts

    def execution(self, rows: Rows | None = None, state: Ints | None = None) -> Execution:
        """An execution over these events, or over a piece of them."""
        return self.engine.execution(*((self.rows, self.state) if rows is None else (rows, state)))

    def matches(self, execution: Execution) -> Iterator[Table]:
        """The matches, in chunks."""
        return execution.run(self.engine.program(execution), Table.single())

    def count(self, execution: Execution) -> int:
        """How many matches there are."""
        return execution.count(self.engine.program(execution), Table.single())


def _looking(columns: Columns, rows: Ints) -> Look:
    """Columns of some rows, whatever slot they are of."""
    return lambda ref: columns[ref].take(rows)


@lru_cache(maxsize=256)
def _members_of(slots: tuple[frozenset[str] | None, ...], names: tuple[str, ...]) -> Bools:
    """For each slot and code whether the slot takes events of that name; the last code, -1, is of other types."""
    return np.array([[types is None or n in types for n in (*names, None)] for types in slots], np.bool_)
