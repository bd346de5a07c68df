"""Matches as Arrow: the events or values that a query returns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventcube.engine.columns import Column, Columns
from eventcube.engine.execute import Execution
from eventcube.engine.expressions import evaluate
from eventcube.engine.kernels import Ints
from eventcube.engine.table import Table
from eventcube.options import NANOSECONDS, UNITS_IN_MICROSECONDS
from eventcube.plan.dictionary import Dictionary
from eventcube.plan.expressions import ColumnRef, Constant
from eventcube.plan.logical import Computed, EventColumn
from eventcube.plan.physical import PhysicalQuery
from eventcube.schema import EventSchema


class Output:
    """Turns tables of matches over one store into record batches."""

    def __init__(self, plan: PhysicalQuery, execution: Execution) -> None:
        self.plan, self.execution, self.events = plan, execution, plan.schema
        self.store = execution.store
        self.schema = plan.sink.schema
        self._coded: dict[Dictionary, Columns] = {}
        time_type = self.events.columns.field(self.events.time).type
        # Microseconds represent a time exactly, unless it has nanoseconds or is text.
        unit = time_type.unit if pa.types.is_timestamp(time_type) else self.events.time_unit
        self._exact_time = time_type == self.events.time_type and unit != NANOSECONDS

    def batch(self, table: Table) -> pa.RecordBatch:
        """The matches as the query returns them, one row each."""
        times: dict[tuple[int, ...], pa.Array] = {}
        columns = [
            self._time(self.plan.first, self.first(table), times),
            # With several slots, the first and the last event of a match differ even if the slots are the same.
            self._time(self.plan.last if len(self.plan.last) == 1 else (), self.last(table), times),
        ]
        for column in self.plan.sink.results.returns:
            if isinstance(column, EventColumn):
                columns.append(self.event(table, column))
            else:
                value = self.value(table, column.value, times)
                columns.append(value if value.type == column.value.type else value.cast(column.value.type))
        if self.plan.sink.numbered:
            columns.append(self._numbers(table))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _numbers(self, table: Table) -> pa.Array:
        """The sequence numbers of each match's events, which no other match has: `17-23`, or `17-` for one left out."""
        slots = (table[slot] for slot in self.plan.positive)
        texts = [pa.array(self.store.seq[rows], mask=rows < 0).cast(pa.string()).fill_null("") for rows in slots]
        return pc.binary_join_element_wise(*texts, "-")

    def first(self, table: Table) -> Ints:
        """The row of each match's first event."""
        return table.first(self.plan.first, optional=bool(self.plan.optional))

    def last(self, table: Table) -> Ints:
        """The row of each match's last event."""
        return table.last(self.plan.last)

    def value(self, table: Table, computed: Computed, times: dict[tuple[int, ...], pa.Array] | None = None) -> pa.Array:
        """A value for each match; null where its slot is not taken."""
        value, type_ = computed.expression, computed.type
        if isinstance(value, ColumnRef):
            slot = value.slot
            optional = slot in self.plan.optional
            if times is not None and not optional and value.column == self.events.time and self._exact_time:
                return self._time((slot,), table[slot], times)
            return self._take(value.column, table[slot], optional)
        if isinstance(value, Constant) and not isinstance(value.value, int | float):
            return pa.array([value.value], type_).take(pa.array(np.zeros(len(table), np.int64)))
        columns = self._columns(computed.dictionary)
        column = evaluate(value, len(table), self._lookup(table, columns), columns)
        return text_array(column, columns.text_codes().texts) if pa.types.is_string(type_) else to_array(column, type_)

    def _columns(self, dictionary: Dictionary) -> Columns:
        """The columns that a value is computed from; a value of text has codes of its own."""
        if not dictionary.has_text:
            return self.store.columns
        if dictionary not in self._coded:
            self._coded[dictionary] = Columns(self.store.events.payload, dictionary, self.store.order)
        return self._coded[dictionary]

    def _lookup(self, table: Table, columns: Columns) -> Callable[[ColumnRef], Column]:
        def lookup(ref: ColumnRef) -> Column:
            rows = table[ref.slot]
            column = columns[ref].take(rows)
            if ref.slot not in self.plan.optional:
                return column
            taken = rows >= 0
            if column.values.dtype == np.float64:
                return Column(np.where(taken, column.values, np.nan))
            return Column(column.values, taken if column.valid is None else taken & column.valid)

        return lookup

    def _time(self, slots: tuple[int, ...], rows: Ints, times: dict[tuple[int, ...], pa.Array]) -> pa.Array:
        """The times of rows; those of a slot are converted once."""
        if slots not in times:
            times[slots] = times_to_array(self.store.ts[rows], self.events)
        return times[slots]

    def event(self, table: Table, column: EventColumn) -> pa.Array:
        """The event of a slot for each match, as a struct."""
        optional = column.slot in self.plan.optional
        rows = table[column.slot]
        arrays = [self._take(f.name, rows, optional) for f in column.type]
        mask = pa.array(rows < 0) if optional else None
        return pa.StructArray.from_arrays(arrays, fields=list(column.type), mask=mask)

    def _take(self, name: str, rows: Ints, optional: bool) -> pa.Array:
        order = self.store.order
        mask = rows < 0 if optional else None
        return self.store.events.payload.take(name, rows if order is None else order[rows], mask)


def to_array(column: Column, type_: pa.DataType) -> pa.Array:
    """A computed column as Arrow."""
    values = column.values
    if pa.types.is_null(type_):
        return pa.nulls(len(values))
    if values.dtype == np.float64 and not pa.types.is_floating(type_):
        # A fraction of a duration, or whole numbers too large for 64 bits.
        inside = np.abs(values) < float(2**63)
        return pa.array(np.where(inside, values, 0).astype(np.int64), pa.int64(), mask=~inside).cast(type_)
    mask = None if column.valid is None else ~column.valid
    if values.dtype == np.float64:
        return pa.array(values, pa.float64(), mask=mask, from_pandas=True)
    return pa.array(values, pa.int64(), mask=mask).cast(type_)


def text_array(column: Column, texts: pa.Array) -> pa.Array:
    """A computed column of text as Arrow."""
    null = np.zeros(len(column.values), np.bool_) if column.valid is None else ~column.valid
    return texts.take(pa.array(np.where(null, 0, column.values), mask=null)).cast(pa.string())


def times_to_array(ts: Ints, schema: EventSchema) -> pa.Array:
    """Microseconds in the type of the time column."""
    type_ = schema.time_type
    if pa.types.is_integer(type_):
        return pa.array(in_unit(ts, schema.time_unit)).cast(type_)
    times = pa.array(ts).view(pa.timestamp("us", type_.tz))
    return times if times.type == type_ else times.cast(type_, safe=False)


def in_unit(ts: Ints, unit: str) -> Ints:
    """Microseconds as whole numbers of a unit."""
    return ts * 1000 if unit == NANOSECONDS else ts // int(UNITS_IN_MICROSECONDS[unit])
