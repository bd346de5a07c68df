"""Events less other rows, each of which takes one away: the late rows of a stream, for a replay."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventcube.runtime.compared_types import compared_types


def without_rows(events: pa.Table, rows: pa.Table, time: str) -> pa.Table:
    """The events that stay, with the columns of the rows; these are compared by types that both can have."""
    types = compared_types(events.schema, rows.schema)
    events = events.select(rows.column_names)
    places = np.arange(events.num_rows)
    if time in types and events[time].type == rows[time].type:
        places = np.flatnonzero(pc.is_in(events[time], rows[time].combine_chunks()))
    excess = Counter(_keys(rows, types))
    stays = np.ones(events.num_rows, np.bool_)
    for place, key in zip(places, _keys(events.take(places), types), strict=True):
        if excess[key]:
            excess[key] -= 1
            stays[place] = False
    return events.filter(pa.array(stays))


def _keys(table: pa.Table, types: dict[str, pa.DataType]) -> list[str]:
    """A text for each row; texts are equal where the values are: NaN is not equal to itself."""
    columns = [_values(table[name], type_) for name, type_ in types.items()]
    return [repr(row) for row in zip(*columns, strict=True)]


def _values(column: pa.ChunkedArray, type_: pa.DataType) -> list[object]:
    """The values in a type; text that cannot be read as such a value stays text."""
    try:
        return list(column.cast(type_, safe=False).to_pylist())
    except pa.ArrowException:
        return [_value(scalar, type_) for scalar in column]


def _value(scalar: pa.Scalar, type_: pa.DataType) -> object:
    try:
        return scalar.cast(type_, safe=False).as_py()
    except pa.ArrowException:
        return scalar.as_py()
