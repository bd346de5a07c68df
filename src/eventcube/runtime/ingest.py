"""Turns batches into events in time order: reads times, skips unusable rows, buffers events until the watermark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from eventcube.engine.counters import Counters
from eventcube.engine.kernels import Array, Bools, Ints
from eventcube.engine.order_kernels import time_order, time_span
from eventcube.engine.released import Released
from eventcube.engine.saved import BOUND, DamagedStateError, Saved
from eventcube.engine.state import Version
from eventcube.engine.type_codes import TypeCodes
from eventcube.runtime.input_profile import InputProfile
from eventcube.runtime.read_columns import content_keys, order_keys, read_times
from eventcube.schema import BAD_TIME, HALO, LATE, NO_TIME, NO_TYPE, EventSchema
from eventcube.schema import REASON as REASON

_BEGINNING = -(2**62)
_SAVED = ("watermark", "latest", "rank", "arrived", "skipped_rows", "drained")


@dataclass(frozen=True, slots=True)
class _Held:
    """Events of one batch that wait: rows of a table (None: all of it), their times and type codes.

    Rows are numbered as they arrive, that of the table's first row is `first`. `ascends`: they are in order of time.
    """

    table: pa.Table
    index: Ints | None
    ts: Ints
    types: Array | None
    first: int
    ascends: bool

    def __len__(self) -> int:
        return len(self.ts)

    def where(self, chosen: Bools) -> _Held:
        """Some of the events; the table is not copied."""
        count = int(np.count_nonzero(chosen))
        if count == len(self):
            return self
        rows = np.flatnonzero(chosen)
        index = rows if self.index is None else self.index[rows]
        types = None if self.types is None else self.types[rows]
        return _Held(self.table, index, self.ts[rows], types, self.first, self.ascends)

    def cut(self, time: int) -> tuple[_Held, _Held]:
        """The events before a time, and the others."""
        if not self.ascends:
            before = self.ts < time
            return self.where(before), self.where(~before)
        place = int(self.ts.searchsorted(time))
        return self._slice(0, place), self._slice(place, len(self))

    def _slice(self, start: int, end: int) -> _Held:
        if end - start == len(self):
            return self
        types = None if self.types is None else self.types[start:end]
        if self.index is not None:
            return _Held(self.table, self.index[start:end], self.ts[start:end], types, self.first, self.ascends)
        table = self.table.slice(start, end - start)
        return _Held(table, None, self.ts[start:end], types, self.first + start, self.ascends)

    @property
    def numbers(self) -> Ints:
        """The number of each event."""
        return self.first + (np.arange(len(self)) if self.index is None else self.index)

    @property
    def rows(self) -> pa.Table:
        """The events with all columns."""
        return self.table if self.index is None else self.table.take(pa.array(self.index))


class Ingest:
    """Buffers batches in any order, and releases events in time order once the watermark has passed them.

    The watermark is the latest time so far less the lateness. Rows that arrive behind it are late, and skipped. Events
    of types that no query names are not buffered, unless `needs_all`: a window counts them. `ties` are columns that put
    released events of equal rank in order; without them, they are in order of arrival, unless `by_content`: then all
    that is in them decides, and never when they arrived.
    """

    def __init__(
        self,
        schema: EventSchema,
        names: Iterable[str],
        lateness: int,
        counters: Counters,
        *,
        needs_all: bool = True,
        ties: tuple[str, ...] = (),
        by_content: bool = False,
    ) -> None:
        self.names = TypeCodes(names)
        self.schema, self.lateness, self.counters = schema, lateness, counters
        self._needs_all, self._by_content = needs_all, by_content
        sorted_by = (*schema.order_by, *ties)
        self._by_value = EventSchema(schema.columns, schema.time, order_by=sorted_by) if sorted_by else None
        self.watermark = _BEGINNING
        self.latest = _BEGINNING
        self.rank = 0
        self._held: list[_Held] = []
        # How many events were held in all, and how many of these before a state was restored.
        self.arrived = self._restored = 0
        self.skipped: list[pa.Table] = []
        # How many rows were skipped in all, and how many of these were drained.
        self.skipped_rows = self.drained = 0
        self.profile = InputProfile(schema, self.names.names)

    def turn_to(self, names: Iterable[str], *, needs_all: bool) -> None:
        """Let events through that other queries name. Of those that wait, types that no query named may be gone."""
        self.names, self._needs_all = TypeCodes(names), needs_all
        self.profile.want(self.names.names)
        if self.schema.type is not None:
            kept = [(events, events.rows.column(self.schema.type)) for events in self._held]
            self._held = [replace(events, types=self.names.codes(column)) for events, column in kept]

    @property
    def held(self) -> int:
        """How many events wait for the watermark."""
        return sum(map(len, self._held))

    def take(self, table: pa.Table) -> None:
        """Buffer the usable rows of a batch, and skip the others."""
        self.counters.rows += table.num_rows
        self.counters.events += table.num_rows
        ts, valid = read_times(table.column(self.schema.time), self.schema)
        reasons: list[tuple[str, Bools]] = []
        if valid is not None:
            null = np.asarray(table.column(self.schema.time).is_null())
            reasons += [(NO_TIME, null), (BAD_TIME, ~valid & ~null)]
        if self.schema.type is not None and table.column(self.schema.type).null_count:
            reasons.append((NO_TYPE, np.asarray(table.column(self.schema.type).is_null())))
        span = time_span(ts) if len(ts) else None
        if span is not None and span[0] < self.watermark:
            reasons.append((LATE, ts < self.watermark))
        if any(bad.any() for _, bad in reasons):
            table, ts = self._skip(table, ts, reasons)
            span = time_span(ts) if len(ts) else None
        if span is not None:
            low, high, ascends = span
            self.profile.take(table, low, high)
            self.latest = max(self.latest, high)
            self._hold(self._arrived(table, ts, ascends=ascends))

    def _arrived(self, table: pa.Table, ts: Ints, *, ascends: bool) -> _Held:
        """Usable rows as events that wait."""
        types = None
        if self.schema.type is not None:
            column = table.column(self.schema.type)
            types = self.names.codes(column)
            self.profile.record_types(self.names.names, types, column)
        self.arrived += len(ts)
        return _Held(table, None, ts, types, self.arrived - len(ts), ascends)

    def _relevant(self, events: _Held) -> _Held:
        """The events that a query can use."""
        return events if events.types is None or self._needs_all else events.where(events.types >= 0)

    def _hold(self, events: _Held) -> None:
        if len(events):
            self._held.append(events)

    def _skip(self, table: pa.Table, ts: Ints, reasons: list[tuple[str, Bools]]) -> tuple[pa.Table, Ints]:
        """The usable rows and their times; the others are skipped, each for its first reason."""
        usable = np.ones(len(ts), np.bool_)
        for reason, bad in reasons:
            index = np.flatnonzero(bad & usable)
            usable[index] = False
            if len(index):
                self.counters.set_aside += len(index)
                self.counters.late += len(index) if reason == LATE else 0
                rows = table.take(pa.array(index))
                self.profile.skip(rows, reason)
                if reason == LATE and len(index) == table.num_rows > 1:
                    self.profile.late_push = self.profile.late_push or len(index)
                self.skipped_rows += len(index)
                self.skipped.append(rows.append_column(REASON, pa.array([reason] * len(index), pa.string())))
        remaining = np.flatnonzero(usable)
        return table.take(pa.array(remaining)), ts[remaining]

    def release(self, watermark: int | None) -> Released:
        """The buffered events before the watermark, in order; all of them if it is None."""
        if watermark is not None:
            self.watermark = max(self.watermark, watermark)
        if not self._held:
            types = None if self.schema.type is None else np.zeros(0, np.int32)
            none = np.zeros(0, np.int64)
            return Released(self.schema.columns.empty_table(), none, none, types)
        before, self._held = self._held, []
        if watermark is None or self.latest < self.watermark:
            return self._released(_joined(before))
        released = []
        for events in before:
            final, waiting = events.cut(self.watermark)
            released.append(final)
            if len(waiting):
                # What waits is not looked at again before its time comes.
                self._hold(self._relevant(waiting))
        return self._released(_joined(released))

    def _released(self, events: _Held) -> Released:
        """Events in order of time; their columns stay as they are."""
        is_sorted = self._by_value is None and events.ascends
        events = events if is_sorted else self._relevant(events)
        table, index, ts, types = events.table, events.index, events.ts, events.types
        order: Ints | None = None
        keys: list[Array] = []
        if self._by_value is not None or self._by_content:
            table, index = events.rows, None
        if self._by_value is not None:
            keys = order_keys(table, self._by_value)
            order = np.lexsort([*keys[::-1], ts])
        elif not is_sorted and len(ts):
            order = time_order(ts)
        if self._by_content:
            order = _ordered_by_content(table, np.arange(len(ts)) if order is None else order, [ts, *keys])
        if order is not None:
            index = order if index is None else index[order]
            ts, types = ts[order], None if types is None else types[order]
        halo = None
        if HALO in table.column_names:
            halo = np.asarray(table.column(HALO))
            halo = halo if index is None else halo[index]
        return Released(table, ts, self._ranks(table, index, ts), types, halo, index)

    def _ranks(self, table: pa.Table, index: Ints | None, ts: Ints) -> Ints:
        """Numbers that order events by time and order columns; ties have the same number."""
        if not self.schema.order_by:
            return ts
        columns = table.select(self.schema.order_by)
        table = columns if index is None else columns.take(pa.array(index))
        is_new = np.ones(len(ts), np.bool_)
        is_new[1:] = ts[1:] != ts[:-1]
        for key in order_keys(table, self.schema):
            is_new[1:] |= key[1:] != key[:-1]
        ranks = self.rank + np.cumsum(is_new)
        self.rank += int(is_new.sum())
        return ranks

    def drain(self) -> pa.Table:
        """The skipped rows, which are dropped here."""
        skipped = self.skipped_table()
        self.skipped, self.drained = [], self.skipped_rows
        return skipped

    def changes(self, since: Version) -> Saved:
        """The rows that were held or skipped since a version and still are, and the times of now.

        All that are held if a state of a later version was restored, which does not tell when its rows arrived.
        """
        whole = since.arrived < self._restored
        tables: dict[str, pa.Table] = {}
        if self._held:
            held = [(events if whole else events.where(events.numbers >= since.arrived)).rows for events in self._held]
            tables["held"] = pa.concat_tables(held)
        if self.skipped_rows > max(since.skipped, self.drained):
            tables["aside"] = self.skipped_table().slice(max(0, since.skipped - self.drained))
        return Saved({"whole": int(whole), **{name: getattr(self, name) for name in _SAVED}}, tables)

    def apply(self, saved: Saved) -> None:
        """Take on saved changes: held events that were released since then leave."""
        saved.check_fields(("whole", *_SAVED))
        if saved.integer("whole", 0, 1):
            self._held = []
        self.watermark = saved.integer("watermark", max(self.watermark, _BEGINNING), BOUND)
        self.latest = saved.integer("latest", self.latest, BOUND)
        self.rank = saved.integer("rank", self.rank, BOUND)
        self.arrived = saved.integer("arrived", self.arrived, BOUND)
        self.skipped_rows = saved.integer("skipped_rows", self.skipped_rows, BOUND)
        self.drained = saved.integer("drained", self.drained, self.skipped_rows)
        columns = self.schema.columns
        held = saved.take("held", columns)
        skipped = pa.concat_tables(
            [self.skipped_table(), saved.take("aside", columns.append(pa.field(REASON, pa.string())))]
        )
        if skipped.num_rows < self.skipped_rows - self.drained:
            raise DamagedStateError("skipped rows are missing")
        self.skipped = [skipped.slice(skipped.num_rows - (self.skipped_rows - self.drained))]
        ts, valid = read_times(held.column(self.schema.time), self.schema)
        if valid is not None and not valid.all():
            raise DamagedStateError("an event has no time")
        if len(ts) and (ts.min() < self.watermark or ts.max() > self.latest):
            raise DamagedStateError("an event was held that was late, or later than the latest")
        if len(ts):
            arrived, self.arrived = self.arrived, self.arrived - len(ts)
            self._hold(self._arrived(held, ts, ascends=time_span(ts)[2]))
            self.arrived = arrived
        self._restored = self.arrived
        # Events that were held before, and released since then, leave.
        before, self._held = self._held, []
        for events in before:
            self._hold(events.cut(self.watermark)[1])

    def skipped_table(self) -> pa.Table:
        """The rows skipped so far, with the reason in an extra column."""
        schema = self.schema.columns.append(pa.field(REASON, pa.string()))
        return pa.concat_tables([schema.empty_table(), *self.skipped], promote_options="permissive")


def _ordered_by_content(table: pa.Table, order: Ints, keys: list[Array]) -> Ints:
    """The order of events by keys, with those of equal keys in the order of all their columns."""
    same = np.ones(max(len(order) - 1, 0), np.bool_)
    for key in keys:
        values = key[order]
        same &= values[1:] == values[:-1]
    if not same.any():
        return order
    is_first, is_last = np.append(True, ~same), np.append(~same, True)
    tied = np.flatnonzero(~(is_first & is_last))
    rows = order[tied]
    ordered = order.copy()
    content = content_keys(table.take(pa.array(rows)))
    ordered[tied] = rows[np.lexsort([*content[::-1], np.cumsum(is_first)[tied]])]
    return ordered


def _joined(held: list[_Held]) -> _Held:
    """Events one after the other; tables are not copied."""
    if len(held) == 1:
        return held[0]
    index: Ints | None = None
    if any(events.index is not None for events in held):
        starts = np.cumsum([0, *(events.table.num_rows for events in held)])
        rows = [np.arange(len(events)) if events.index is None else events.index for events in held]
        index = np.concatenate([own + start for own, start in zip(rows, starts, strict=False)])
    types = [events.types for events in held if events.types is not None]
    ts = np.concatenate([events.ts for events in held])
    return _Held(
        pa.concat_tables([events.table for events in held]),
        index,
        ts,
        np.concatenate(types) if types else None,
        held[0].first,
        not len(ts) or time_span(ts)[2],
    )
