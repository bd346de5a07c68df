"""LIMIT over many tasks: each gives its earliest matches with a key that sorts them all, and Spark picks the first.

Matches are sorted by (last, first, then the bound events in the order of the text), events by time and order column.
Where a stream says by its arrival which of two events of equal rank comes first, a DataFrame does not: their values do,
column by column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa

from eventcube.engine.columns import Column, to_column
from eventcube.engine.expressions import valid_mask
from eventcube.engine.ranks import as_decimal
from eventcube.plan.bind_expressions import ExpressionBinder
from eventcube.plan.logical import ValueColumn
from eventcube.plan.physical import PhysicalQuery
from eventcube.plan.result import computed
from eventcube.runtime.ingest import read_times, unrounded
from eventcube.schema import INTERNAL, Kind, is_long, kind_of

ORDER = INTERNAL + "order"
_WIDE = Context(prec=80)


def tie_breakers(plan: PhysicalQuery) -> tuple[str, ...]:
    """The columns whose values tell events of equal rank apart."""
    schema = plan.schema
    ranked = {schema.time, *schema.order_by}
    return tuple(
        n
        for n in schema.columns.names
        if n in plan.scan.columns
        and n not in ranked
        and not n.startswith(INTERNAL)
        and schema.kind(n) not in (Kind.OTHER, Kind.NULL)
    )


def with_order(plan: PhysicalQuery) -> PhysicalQuery:
    """The plan with, beside what the query returns, all that its matches are sorted by."""
    schema = plan.schema
    names = (schema.time, *schema.order_by, *tie_breakers(plan))
    binder = ExpressionBinder(schema, {}, lambda _: None)
    hidden = tuple(
        ValueColumn(f"{ORDER}_{i}_{j}", computed(binder.column(slot, name), schema))
        for i, slot in enumerate(plan.positive)
        for j, name in enumerate(names)
    )
    fields = [pa.field(column.name, column.value.type) for column in hidden]
    results = replace(plan.sink.results, returns=(*plan.sink.results.returns, *hidden))
    sink = replace(plan.sink, results=results, schema=pa.schema([*plan.sink.schema, *fields]))
    needed = {*plan.scan.columns, *names}
    scan = replace(plan.scan, columns=tuple(n for n in schema.columns.names if n in needed))
    return replace(plan, sink=sink, scan=scan)


class OrderKeys:
    """Turns the hidden columns of a batch of matches into one column of bytes that sort as the matches do."""

    def __init__(self, plan: PhysicalQuery) -> None:
        self.schema = plan.schema
        self.slots = len(plan.positive)
        self.ranked = 1 + len(plan.schema.order_by)
        self.attributes = self.ranked + len(tie_breakers(plan))

    def strip(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
        """The batch without the hidden columns, and the keys."""
        hidden = self.slots * self.attributes
        shown = batch.num_columns - hidden
        moments: list[list[bytes]] = []
        events: list[list[bytes]] = []
        for slot in range(self.slots):
            at = shown + slot * self.attributes
            columns = [self._times(batch.column(at))]
            columns += [_encoded(batch.column(at + j)) for j in range(1, self.attributes)]
            taken = np.asarray(batch.column(at).is_valid()).tolist()
            moment = _glued(columns[: self.ranked])
            rest = _glued([moment, *columns[self.ranked :]])
            moments.append([m if t else b"" for m, t in zip(moment, taken, strict=True)])
            events.append([b"\1" + e if t else b"\0" for e, t in zip(rest, taken, strict=True)])
        keys = [
            max(own) + min(m for m in own if m) + b"".join(bound)
            for own, bound in zip(zip(*moments, strict=True), zip(*events, strict=True), strict=True)
        ]
        return batch.select(list(range(shown))), pa.array(keys, pa.binary())

    def _times(self, array: pa.Array) -> list[bytes]:
        ts, _ = read_times(pa.chunked_array([array]), self.schema)
        return list(_pieces(Column(ts)))


def _glued(columns: list[list[bytes]]) -> list[bytes]:
    return [b"".join(parts) for parts in zip(*columns, strict=True)]


def _encoded(array: pa.Array) -> list[bytes]:
    """Bytes that sort as the values do, nulls first; none is the beginning of another."""
    if kind_of(array.type) is Kind.TEXT:
        return [
            b"\0" if t is None else b"\1" + t.encode().replace(b"\0", b"\0\xff") + b"\0\0" for t in array.to_pylist()
        ]
    chunked = pa.chunked_array([array])
    if is_long(array.type):
        return [b"\0" if n is None else b"\1" + _digits(n) for n in as_decimal(chunked).to_pylist()]
    column = to_column(unrounded(chunked))
    known = valid_mask(column).tolist()
    return [b"\1" + r if v else b"\0" for r, v in zip(_pieces(column), known, strict=True)]


def _digits(number: Decimal) -> bytes:
    """A decimal without its decimal point in 33 bytes; all of a column have as many places after it."""
    _, _, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    return (int(number.scaleb(-exponent, _WIDE)) + 2**256).to_bytes(33)


def _pieces(column: Column) -> Iterator[bytes]:
    values = column.values
    if values.dtype == np.float64:
        # -0.0 is 0.0.
        values = values + 0.0
        bits = values.view(np.int64)
        ordered = np.where(bits < 0, ~bits, bits ^ np.int64(-(2**63))).view(np.uint64)
    else:
        ordered = values.astype(np.int64).view(np.uint64) ^ np.uint64(2**63)
    data = ordered.astype(">u8").tobytes()
    return (data[i : i + 8] for i in range(0, len(data), 8))
