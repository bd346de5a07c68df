"""What a workload keeps between batches: retained events, and how many there were."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventcube.engine.idle_partitions import Hashes, IdlePartitions, hashes_of
from eventcube.engine.positions import Positions
from eventcube.engine.released import Released
from eventcube.engine.retention import Retention, StackRetention, places_of
from eventcube.engine.rows import Rows
from eventcube.engine.saved import BOUND, Saved, check_range, numbers
from eventcube.engine.saved_rows import read_rows, row_columns, rows_table
from eventcube.engine.stacking import Stacking, empty_rows
from eventcube.plan.workload import WorkloadPlan, WorkloadQuery

# Partitions that are active at least, and for each new event: only the others can be idle.
_MIN_ACTIVE, _ACTIVE_PER_EVENT = 1 << 13, 4
# Events that no stack needs any more are dropped from between others once there are so many events.
_MIN_COMPACTED = 1 << 10

BEGINNING = -(2**62)


@dataclass(frozen=True, slots=True)
class Version:
    """A point in the life of a state: the number of the batch, and how many events were stored, held and skipped.

    `line` tells states of one run, and of runs that go on from them, from those of others.
    """

    number: int = -1
    sequence: int = 0
    arrived: int = 0
    skipped: int = 0
    line: int = 0

    @property
    def numbers(self) -> list[int]:
        """The numbers that tell this point from others of its line."""
        return [self.number, self.sequence, self.arrived, self.skipped]


# Before everything: all that there is has changed since then.
NOTHING = Version()


class State:
    """Events that a match to come can use, each once for all queries, with positions and numbers.

    `watermark` is that of the last batch: what was due then is done. With `keep`, events are retained for that time
    (microseconds) at least, also after the input has ended.
    """

    def __init__(self, plan: WorkloadPlan, columns: pa.Schema, keep: int | None = None) -> None:
        self.plan, self.columns, self.keep = plan, columns, keep
        self.rows = empty_rows(plan, columns)
        self.sequence = 0
        self.positions = [Positions(partition_by) for partition_by in plan.partitionings]
        self.watermark = BEGINNING
        self.retention = Retention(plan.queries, plan.queries, len(plan.stacks), keep)
        separate = len(self.positions) == 1 and all(_has_own_streams(query) for query in plan.queries.values())
        self._idle = IdlePartitions(plan.partitionings[0]) if separate else None
        # Whether rows leave only at the front, and sequence numbers have no gaps.
        self.gapless = self.retention.is_uniform and not any(plan.partitionings)
        # For each stack whether an event has left it, and the time before which more may be missing than its
        # retention tells: it was shorter then.
        self.has_lost = np.zeros(len(plan.stacks), np.bool_)
        self.known_from = np.full(len(plan.stacks), BEGINNING)
        self.stacking = Stacking(plan)
        self._compacted = _MIN_COMPACTED

    def append(self, released: Released, *, final: bool) -> int:
        """Add released events; `final`: they are the last ones. Gives the number of rows before them."""
        if self._idle is not None and final:
            self.gather()
        elif self._idle is not None and self._idle.partitions:
            self._put_back(self._idle.take(self._touched(released)))
        positions = tuple(p.add(released) for p in self.positions)
        if not len(released):
            return len(self.rows)
        fresh = self.stacking.rows(released, positions, self.sequence)
        self.sequence += len(fresh)
        before = len(self.rows)
        self.rows = self.rows.append(fresh)
        return before

    def purge(self, released: Released, watermark: int | None) -> None:
        """Drop what no match to come can use; without a watermark the input has ended."""
        rows = self.rows
        if watermark is None:
            self.rows = rows.slice(0, 0) if self.keep is None else rows
            return
        self.watermark = watermark
        if len(rows):
            self._purge(rows, watermark)
            self.rows.payload.compact()
        if self._idle is not None:
            self._move_to_idle(self._idle, released)

    def _purge(self, rows: Rows, watermark: int, retention: Retention | None = None) -> None:
        stacks = (retention or self.retention).still_needed(rows, watermark, self.positions)
        self.has_lost |= [len(left) < len(stack) for left, stack in zip(stacks, rows.stacks, strict=True)]
        first = min((int(stack[0]) for stack in stacks if len(stack)), default=len(rows))
        rows = replace(rows, stacks=stacks).slice(first, len(rows) - first)
        if not self.gapless and len(rows) >= self._compacted:
            rows = rows.where(places_of(rows.stacks, len(rows)))
            self._compacted = max(_MIN_COMPACTED, 2 * len(rows))
        self.rows = rows

    def retain_for(self, names: set[str]) -> None:
        """Retain events for these queries only: the others need no more."""
        self.retention = Retention(self.plan.queries, names, len(self.plan.stacks), self.keep)

    def kept(self, name: str) -> int:
        """How many events are retained for a query."""
        stacks = [self.rows.stacks[number] for number in self.plan.queries[name].stacks]
        kept = int(np.count_nonzero(places_of(stacks, len(self.rows))))
        return kept + (0 if self._idle is None else self._idle.events)

    def horizon(self, stacks: Iterable[int]) -> int:
        """The time from which on all events of these stacks are retained."""
        numbers = [*stacks]
        known = int(self.known_from[numbers].max())
        if not self.has_lost[numbers].any():
            return known
        kept = [self.retention.stacks[number] for number in numbers]
        return max(known, self.watermark - min(BOUND if k.for_ever else k.time or 0 for k in kept))

    @property
    def first_sequence(self) -> int:
        """A number that no retained event is below; those of idle partitions are retained, too."""
        first = int(self.rows.seq[0]) if len(self.rows) else self.sequence
        return first if self._idle is None else min(first, self._idle.first_sequence)

    def can_derive(self, query: WorkloadQuery, source: WorkloadQuery) -> bool:
        """Whether all events are there for a query to be computed from matches of another, which were due before."""
        known = int(self.known_from[list(source.stacks)].max())
        if known == BEGINNING:
            return True
        needed = StackRetention()
        needed.add(query)
        # Or they lack no more than those that the query itself would be computed from.
        return self.is_long_ago(known, needed) or known <= self.known_from[list(query.stacks)].min()

    def is_long_ago(self, time: int, needed: StackRetention) -> bool:
        """Whether what may be missing before a time is not needed any more."""
        return time == BEGINNING or (needed.is_time_only and time <= self.watermark - (needed.time or 0))

    def reaches_before(self, time: int) -> bool:
        """Whether an event before a time may be retained."""
        return bool(len(self.rows) and self.rows.ts[0] < time) or (self._idle is not None and self._idle.events > 0)

    @property
    def size(self) -> int:
        """How many events are stored, with those that will be dropped soon."""
        return len(self.rows) + (0 if self._idle is None else self._idle.events)

    def partitions(self, name: str) -> int:
        """How many partitions have events that are kept for a window of events."""
        number = self.plan.queries[name].arrangement.positions
        if number is None:
            return 0
        return self.positions[number].partitions + (0 if self._idle is None else self._idle.partitions)

    # Saving.

    def changes(self, since: Version, version: int, *, ranked: bool) -> Saved:
        """The events that came since a version and are retained, and the numbers of now; `ranked`: with their ranks."""
        self.gather()
        values = {"sequence": self.sequence, "watermark": self.watermark, "gaps": int(not self.gapless)}
        values |= self._saved_knowledge(whole=since == NOTHING)
        tables: dict[str, pa.Table] = {}
        rows = self.rows.slice_from(int(self.rows.seq.searchsorted(since.sequence)))
        rows = rows if self.gapless else rows.where(places_of(rows.stacks, len(rows)))
        if len(rows):
            tables["rows"] = rows_table(rows, row_columns(self.plan, self.columns, ranked=ranked), ranked=ranked)
        for i, positions in enumerate(self.positions):
            values[f"total{i}"] = positions.total
            changed, whole = positions.changed(since.number, version)
            if positions.partition_by:
                values[f"whole{i}"] = int(whole)
                tables |= {} if changed is None else {f"positions{i}": changed}
        return Saved(values, tables)

    def apply(self, saved: Saved, version: int, watermark: int, rank: int | None) -> None:
        """Take on saved changes, which lead to a version, and drop what is not needed any more.

        `watermark` and `rank` are those of the input, which no event can exceed; without a rank it is the time.
        """
        places = range(len(self.positions))
        retained = [f"{name}_{i}" for name in ("known", *self._retained) for i in range(len(self.plan.stacks))]
        totals = [f"{name}{i}" for name in ("total", "whole") for i in places]
        saved.check_fields(["sequence", "watermark", "gaps", "retention", *totals, *retained])
        self.gapless &= not saved.integer("gaps", 0, 1)
        if saved.integer("retention", 0, 1):
            self._saved_retention = [self._read_retention(saved, i) for i in range(len(self.plan.stacks))]
        self.has_lost[:] = True
        sequence = saved.integer("sequence", self.sequence, BOUND)
        self.watermark = saved.integer("watermark", BEGINNING, watermark)
        for i, positions in enumerate(self.positions):
            positions.total = saved.integer(f"total{i}", 0, BOUND)
            if positions.partition_by:
                table = saved.take(f"positions{i}", positions.columns(self.columns))
                check_range(numbers(table, ["n"])["n"], 0, BOUND, "n")
                positions.restore(table, version, whole=bool(saved.integer(f"whole{i}", 0, 1)))
        # Events that came and left between two versions are not in the changes: those before them have left, too.
        retention = self.retention.within(self._saved_retention)
        self._purge(self.rows, self.watermark, retention)
        fresh = read_rows(self, saved, sequence, watermark, rank)
        self.sequence = sequence
        self.rows = self.rows.append(fresh)
        self._purge(self.rows, self.watermark, retention)
        for i, (own, theirs) in enumerate(zip(self.retention.stacks, self._saved_retention, strict=True)):
            ago = saved.integer(f"known_{i}", 0, 2 * BOUND)
            known = self.watermark - ago + 1 if ago else BEGINNING
            self.known_from[i] = known if theirs.reaches(own) else self.watermark

    def _saved_knowledge(self, *, whole: bool) -> dict[str, int]:
        """How long events are retained, unless a reader of changes knows, and since when that has been so."""
        retained = self.retention.stacks
        values = {}
        if whole or not all(own.reaches(known) for own, known in zip(retained, self._saved_retention, strict=True)):
            values["retention"] = 1
            for i, stack in enumerate(retained):
                values |= {f"{name}_{i}": number for name, number in stack.numbers.items()}
        # A 0 is not saved.
        known = enumerate(map(int, self.known_from))
        return values | {f"known_{i}": self.watermark - time + 1 for i, time in known if time > BEGINNING}

    @cached_property
    def _saved_retention(self) -> list[StackRetention]:
        """What the run retained that saved the state from which this one goes on; the least, if that does not tell."""
        return Retention(self.plan.queries, self.plan.queries, len(self.plan.stacks), derived=False).stacks

    @property
    def _retained(self) -> list[str]:
        """The names of the numbers that tell what is retained of a stack."""
        return ["time", *(f"count{i}" for i in range(len(self.positions)))]

    def _read_retention(self, saved: Saved, stack: int) -> StackRetention:
        return StackRetention.of_numbers({name: saved.integer(f"{name}_{stack}", 0, BOUND) for name in self._retained})

    # Partitions that get no events at the moment.

    def gather(self) -> None:
        """Have all retained events in `rows`, and the totals of all partitions in `positions`."""
        if self._idle is not None:
            self._put_back(self._idle.take_all())

    def _touched(self, released: Released) -> Hashes:
        """The partitions of released events."""
        return np.unique(hashes_of(released.columns(self.positions[0].partition_by).columns))

    def _put_back(self, found: tuple[Rows, pa.Table] | None) -> None:
        if found is None:
            return
        rows, totals = found
        rows = self.rows.append(rows)
        self.rows = rows.take(np.argsort(rows.seq))
        self.positions[0].put_back(totals)

    def _move_to_idle(self, idle: IdlePartitions, released: Released) -> None:
        """Store the events of partitions that got none apart, once there are many of them."""
        (positions,) = self.positions
        most = max(_MIN_ACTIVE, _ACTIVE_PER_EVENT * len(released))
        if not len(self.rows) or positions.totals is None or positions.totals.num_rows < most:
            return
        touched = self._touched(released)
        by_row = hashes_of([self.rows.payload.column(k) for k in positions.partition_by])
        by_key = hashes_of(positions.totals.columns[:-1])
        # Only differences between positions matter: a partition without events may start again.
        needed = np.isin(by_key, by_row)
        row_quiet, key_quiet = ~np.isin(by_row, touched), ~np.isin(by_key, touched) & needed
        if key_quiet.any():
            idle.put(self.rows.where(row_quiet), positions.totals.filter(pa.array(key_quiet)))
        self.rows = self.rows.where(~row_quiet)
        positions.totals = positions.totals.filter(pa.array(needed & ~key_quiet))


def _has_own_streams(query: WorkloadQuery) -> bool:
    """Whether partitions can be stored apart while they are idle."""
    plan = query.plan
    # To report the earliest matches, every event that a match can still begin with must be in `rows`.
    searched = plan.forward and plan.sink.limit is not None
    return plan.scan.by_count and bool(plan.scan.partition_by) and not searched
