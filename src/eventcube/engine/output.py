"""Matches as Arrow: the events or values that a query returns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from eventcube.engine.columns import Column
from eventcube.engine.execute import Execution
from eventcube.engine.expressions import evaluate
from eventcube.engine.kernels import Ints
from eventcube.engine.table import Table
from eventcube.language.syntax import Attribute, Literal, Value, Variable
from eventcube.options import UNITS_IN_MICROSECONDS
from eventcube.plan.physical import PhysicalQuery
from eventcube.plan.result import result_schema, returned, value_type
from eventcube.schema import EventSchema


class Output:
    """Turns tables of matches over one store into record batches."""

    def __init__(self, plan: PhysicalQuery, execution: Execution) -> None:
        self.plan, self.execution, self.logical = plan, execution, plan.logical
        self.store = execution.store
        self.schema = result_schema(plan.logical)
        own = self.logical.schema.columns.field(self.logical.schema.time).type
        # Microseconds say all there is to a time, unless it has nanoseconds or is text.
        self._exact_time = own == self.logical.schema.time_type and not (
            pa.types.is_timestamp(own) and own.unit == "ns"
        )

    def batch(self, table: Table) -> pa.RecordBatch:
        """The matches as the query returns them, one row each."""
        times: dict[tuple[int, ...], pa.Array] = {}
        columns = [
            self._time(self.plan.first, self.first(table), times),
            # With several slots the first and the last event of a match differ, however alike the slots.
            self._time(self.plan.last if len(self.plan.last) == 1 else (), self.last(table), times),
        ]
        for item, field in zip(returned(self.logical), list(self.schema)[2:], strict=True):
            if isinstance(item.value, Variable):
                columns.append(self._events(table, item.value.name, field))
            else:
                columns.append(self.value(table, item.value, times).cast(field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def first(self, table: Table) -> Ints:
        """The row of each match's first event."""
        return table.first(self.plan.first, optional=bool(self.plan.optional))

    def last(self, table: Table) -> Ints:
        """The row of each match's last event."""
        return table.last(self.plan.last)

    def value(self, table: Table, value: Value, times: dict[tuple[int, ...], pa.Array] | None = None) -> pa.Array:
        """A value for each match; null where it is of an event that is not taken."""
        if isinstance(value, Attribute):
            slot = self.logical.slot(value.var).index
            optional = slot in self.plan.optional
            if times is not None and not optional and value.name == self.logical.schema.time and self._exact_time:
                return self._time((slot,), table[slot], times)
            return self._take(value.name, table[slot], optional)
        if isinstance(value, Literal):
            return pa.array([value.value], value_type(value, self.logical)).take(
                pa.array(np.zeros(len(table), np.int64))
            )
        column = evaluate(value, len(table), self._look(table), self.store.columns.code)
        return to_array(column, value_type(value, self.logical))

    def _look(self, table: Table) -> Callable[[Attribute], Column]:
        def look(attribute: Attribute) -> Column:
            slot = self.logical.slot(attribute.var).index
            rows = table[slot]
            column = self.store.columns[attribute.name].take(rows)
            if slot not in self.plan.optional:
                return column
            taken = rows >= 0
            if column.values.dtype == np.float64:
                return Column(np.where(taken, column.values, np.nan))
            return Column(column.values, taken if column.valid is None else taken & column.valid)

        return look

    def _time(self, slots: tuple[int, ...], rows: Ints, times: dict[tuple[int, ...], pa.Array]) -> pa.Array:
        """The times of rows; those of one slot are not converted twice."""
        if slots not in times:
            times[slots] = times_to_array(self.store.ts[rows], self.logical.schema)
        return times[slots]

    def _events(self, table: Table, name: str, field: pa.Field) -> pa.Array:
        slot = self.logical.slot(name).index
        optional = slot in self.plan.optional
        rows = table[slot]
        arrays = [self._take(f.name, rows, optional) for f in field.type]
        mask = pa.array(rows < 0) if optional else None
        return pa.StructArray.from_arrays(arrays, fields=list(field.type), mask=mask)

    def _take(self, name: str, rows: Ints, optional: bool) -> pa.Array:
        order = self.store.order
        index = pa.array(rows if order is None else order[rows], mask=rows < 0 if optional else None)
        return self.store.events.payload.column(name).chunk(0).take(index)


def to_array(column: Column, type_: pa.DataType) -> pa.Array:
    """A computed column as Arrow."""
    values = column.values
    if pa.types.is_null(type_):
        return pa.nulls(len(values))
    if values.dtype == np.float64 and not pa.types.is_floating(type_):
        # A length of time times a fraction, or whole numbers too large for 64 bits.
        inside = np.abs(values) < float(2**63)
        return pa.array(np.where(inside, values, 0).astype(np.int64), pa.int64(), mask=~inside).cast(type_)
    mask = None if column.valid is None else ~column.valid
    if values.dtype == np.float64:
        return pa.array(values, pa.float64(), mask=mask, from_pandas=True)
    return pa.array(values, pa.int64(), mask=mask).cast(type_)


def times_to_array(ts: Ints, schema: EventSchema) -> pa.Array:
    """Microseconds as the time column has them."""
    type_ = schema.time_type
    if pa.types.is_integer(type_):
        return pa.array(ts // UNITS_IN_MICROSECONDS[schema.time_unit]).cast(type_)
    return pa.array(ts).cast(pa.timestamp("us", type_.tz)).cast(type_, safe=False)
