"""LIMIT over many tasks: each returns its earliest matches with a sort key, and Spark takes the first of all.

Matches are sorted by last event, first event, then the bound events in the order of the query; events by time and
order columns. Ties go by arrival in a stream; a DataFrame has no such order, so the values of the other columns decide.
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
from eventcube.runtime.read_columns import read_times, unrounded
from eventcube.schema import INTERNAL, Kind, is_long, kind_of

ORDER = INTERNAL + "order"
_WIDE = Context(prec=80)


def tie_breakers(plan: PhysicalQuery) -> tuple[str, ...]:
    """The columns that order events of equal time and order columns."""
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
    """The plan with the sort columns of its matches as extra result columns."""
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
    """Encodes the extra columns of `with_order` as one binary column with the order of the matches."""

    def __init__(self, plan: PhysicalQuery) -> None:
        self.schema = plan.schema
        self.slots = len(plan.positive)
        self.rank_columns = 1 + len(plan.schema.order_by)
        self.slot_columns = self.rank_columns + len(tie_breakers(plan))

    def strip(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
        """The batch without the extra columns, and the sort keys."""
        visible = batch.num_columns - self.slots * self.slot_columns
        ranks: list[list[bytes]] = []
        events: list[list[bytes]] = []
        for slot in range(self.slots):
            at = visible + slot * self.slot_columns
            columns = [self._times(batch.column(at))]
            columns += [_encoded(batch.column(at + j)) for j in range(1, self.slot_columns)]
            bound = np.asarray(batch.column(at).is_valid()).tolist()
            rank = _concatenated(columns[: self.rank_columns])
            event = _concatenated([rank, *columns[self.rank_columns :]])
            ranks.append([r if b else b"" for r, b in zip(rank, bound, strict=True)])
            events.append([b"\1" + e if b else b"\0" for e, b in zip(event, bound, strict=True)])
        keys = [
            max(match_ranks) + min(rank for rank in match_ranks if rank) + b"".join(match_events)
            for match_ranks, match_events in zip(zip(*ranks, strict=True), zip(*events, strict=True), strict=True)
        ]
        return batch.select(list(range(visible))), pa.array(keys, pa.binary())

    def _times(self, array: pa.Array) -> list[bytes]:
        ts, _ = read_times(pa.chunked_array([array]), self.schema)
        return list(_fixed_width(Column(ts)))


def _concatenated(columns: list[list[bytes]]) -> list[bytes]:
    return [b"".join(parts) for parts in zip(*columns, strict=True)]


def _encoded(array: pa.Array) -> list[bytes]:
    """Bytes with the order of the values, nulls first; none is a prefix of another."""
    if kind_of(array.type) is Kind.TEXT:
        return [
            b"\0" if t is None else b"\1" + t.encode().replace(b"\0", b"\0\xff") + b"\0\0" for t in array.to_pylist()
        ]
    chunked = pa.chunked_array([array])
    if is_long(array.type):
        return [b"\0" if n is None else b"\1" + _digits(n) for n in as_decimal(chunked).to_pylist()]
    column = to_column(unrounded(chunked))
    known = valid_mask(column).tolist()
    return [b"\1" + r if v else b"\0" for r, v in zip(_fixed_width(column), known, strict=True)]


def _digits(number: Decimal) -> bytes:
    """A decimal as an integer of 33 bytes; all decimals of a column have the same scale."""
    _, _, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    return (int(number.scaleb(-exponent, _WIDE)) + 2**256).to_bytes(33)


def _fixed_width(column: Column) -> Iterator[bytes]:
    """Each number as 8 bytes with the order of the numbers."""
    values = column.values
    if values.dtype == np.float64:
        # Turns -0.0 into 0.0.
        values = values + 0.0
        bits = values.view(np.int64)
        unsigned = np.where(bits < 0, ~bits, bits ^ np.int64(-(2**63))).view(np.uint64)
    else:
        unsigned = values.astype(np.int64).view(np.uint64) ^ np.uint64(2**63)
    data = unsigned.astype(">u8").tobytes()
    return (data[i : i + 8] for i in range(0, len(data), 8))
