"""The columns of a batch as ingest needs them: cast to those of the first, times in microseconds, keys to order by."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventcube.engine.columns import text_ranks, to_column, to_microseconds
from eventcube.engine.expressions import valid_mask
from eventcube.engine.kernels import Array, Bools, Ints, read_only
from eventcube.engine.order_kernels import time_span
from eventcube.engine.ranks import Ranks
from eventcube.engine.time_text import parse_times
from eventcube.errors import InputError
from eventcube.options import NANOSECONDS, UNITS_IN_MICROSECONDS
from eventcube.schema import EventSchema, Kind, is_long, kind_of, plain_type


def order_keys(table: pa.Table, schema: EventSchema) -> list[Array]:
    """The order columns as numbers with the same order; nulls and NaN come first, and are equal."""
    keys: list[Array] = []
    for name in schema.order_by:
        column = table.column(name)
        if kind_of(column.type) is Kind.TEXT:
            keys.append(text_ranks(column))
            continue
        if is_long(column.type):
            ranks, valid = Ranks([column]).columns[0]
            keys += [valid.astype(np.int64), ranks]
            continue
        converted = to_column(unrounded(column))
        known = valid_mask(converted)
        if not known.all():
            keys.append(known.astype(np.int64))
        keys.append(np.where(known, converted.values, 0))
    return keys


def content_keys(table: pa.Table) -> list[Array]:
    """Numbers that are equal for rows only if the rows are, to the last bit; the values alone decide their order."""
    keys: list[Array] = []
    for column in table.columns:
        width = column.type.bit_width if pa.types.is_primitive(column.type) else 0
        if width in (8, 16, 32, 64):
            bits = column.combine_chunks().view(f"int{width}")
            keys += [np.asarray(bits.is_null()), np.asarray(bits.fill_null(0))]
        else:
            is_text = kind_of(column.type) is Kind.TEXT
            keys.append(
                text_ranks(column if is_text else pa.chunked_array([map(repr, column.to_pylist())], pa.string()))
            )
    return keys


def unrounded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times and durations as the integers that store them, in full precision."""
    type_ = plain_type(column.type)
    if not (pa.types.is_timestamp(type_) or pa.types.is_duration(type_)):
        return column
    return column.cast(type_).cast(pa.int64())


def read_times(column: pa.ChunkedArray, schema: EventSchema) -> tuple[Ints, Bools | None]:
    """Times in microseconds, and a mask of the readable ones (None: all are)."""
    kind = kind_of(column.type)
    if kind is Kind.TEXT:
        column = parse_times(column)
    elif kind is Kind.TIME:
        column = to_microseconds(column)
    elif kind is Kind.INTEGER and schema.time_unit == NANOSECONDS:
        column = to_microseconds(column.cast(pa.int64()).cast(pa.timestamp("ns")))
    elif kind is Kind.INTEGER:
        factor = int(UNITS_IN_MICROSECONDS[schema.time_unit])
        column = column.cast(pa.int64())
        if factor > 1:
            bound = 2**62 // factor
            inside = pc.and_(pc.less(column, bound), pc.greater(column, -bound))
            column = pc.multiply(pc.if_else(inside, column, None), factor)
    else:
        column = pa.chunked_array([pa.nulls(len(column), pa.int64())])
    read = to_column(column)
    assert read.values.dtype == np.int64
    low, high, _ = time_span(read_only(read.values)) if len(read.values) else (0, 0, True)
    if high >= 2**62 or low <= -(2**62):
        extreme = (read.values >= 2**62) | (read.values <= -(2**62))
        valid = ~extreme if read.valid is None else read.valid & ~extreme
        return np.where(valid, read.values, 0), valid
    return read.values, read.valid


def check_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table cast to the schema, with nulls in dictionaries as plain nulls."""
    if table.schema.equals(schema):
        return _with_plain_nulls(table)
    missing = [n for n in schema.names if n not in table.schema.names]
    if missing:
        raise InputError(
            f"a batch has no column {missing[0]!r}", code="EC306", hint="all batches have the same columns"
        )
    try:
        return _with_plain_nulls(table.select(schema.names).cast(schema))
    except (ValueError, pa.ArrowNotImplementedError) as error:
        unknown = [
            f.name for f in schema if pa.types.is_null(f.type) and not pa.types.is_null(table.field(f.name).type)
        ]
        hint = f"the first batch has only nulls in {unknown[0]!r}; give Runtime(…, schema=…)" if unknown else None
        raise InputError(f"a batch does not fit the columns of the first: {error}", code="EC306", hint=hint) from None


def _with_plain_nulls(table: pa.Table) -> pa.Table:
    """The table with nulls of dictionaries as nulls of the column, which Arrow counts."""
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = table.column(i)
            if any(chunk.dictionary.null_count for chunk in column.chunks):
                plain = column.cast(field.type.value_type).dictionary_encode()
                table = table.set_column(i, field, plain.cast(field.type))
    return table
