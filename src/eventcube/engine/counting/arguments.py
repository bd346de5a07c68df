"""Keys of groups and arguments of aggregates for single events, as the walks over them need them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventcube.engine.aggregate import single_array, summable
from eventcube.engine.counting.counts import NO_VALUE
from eventcube.engine.kernels import Array, Bools, Ints
from eventcube.engine.output import Output
from eventcube.engine.table import Table
from eventcube.plan.counting import Counting
from eventcube.plan.logical import Computed


def value_at(output: Output, counting: Counting, value: Computed, slot: int, rows: Ints) -> pa.Array:
    """A value at events of a slot that end matches; one of another event, which other matches end with, is null."""
    table = Table((slot,), rows[None, :])
    for other in counting.free(value.expression) - {slot}:
        table = table.absent([other])
    return output.value(table, counting.at(value, slot))


def as_summable(array: pa.Array, function: str) -> pa.Array:
    """The argument of an aggregate in one array; one of nulls only as numbers."""
    array = single_array(summable(array, function))
    return array.cast(pa.float64()) if pa.types.is_null(array.type) and function in ("SUM", "COUNT") else array


@dataclass(frozen=True, slots=True)
class Sortable:
    """Numbers whose least is that of some values, or with `greatest` the greatest, or their places in `originals`."""

    numbers: Array
    type_: pa.DataType
    greatest: bool
    originals: pa.Array | None

    def values(self, least: Array) -> pa.Array:
        """The values that stand behind numbers."""
        missing = least == NO_VALUE[least.dtype]
        least = np.where(missing, 0, least)
        if self.originals is not None:
            places = len(self.originals) - 1 - least if self.greatest else least
            return self.originals.take(pa.array(places, pa.int64(), mask=missing))
        if self.greatest:
            least = -least if least.dtype == np.float64 else ~least
        plain = pa.array(least, mask=missing)
        if plain.type != self.type_ and self.type_.bit_width == 64:
            return plain.view(self.type_)
        return plain.cast(self.type_)


def sortable(array: pa.Array, *, greatest: bool) -> Sortable:
    """The values of an array as numbers; what is null is no value."""
    valid = np.asarray(array.is_valid())
    numbers, originals = _numbers(array, valid, greatest)
    return Sortable(np.where(valid, numbers, NO_VALUE[numbers.dtype]), array.type, greatest, originals)


def _numbers(array: pa.Array, valid: Bools, greatest: bool) -> tuple[Array, pa.Array | None]:
    type_ = array.type
    if pa.types.is_float64(type_) or pa.types.is_float32(type_):
        values = np.asarray(array.fill_null(0.0), np.float64)
        if np.isfinite(values).all():
            return (-values if greatest else values), None
    elif type_ == pa.int64() or pa.types.is_timestamp(type_) or pa.types.is_duration(type_):
        numbers = np.asarray(array.view(pa.int64()).fill_null(0))
        numbers = ~numbers if greatest else numbers
        if not (numbers[valid] == NO_VALUE[numbers.dtype]).any():
            return numbers, None
    originals = array.drop_null().unique()
    originals = originals.take(pc.sort_indices(originals))
    places = np.asarray(pc.index_in(array, originals).fill_null(0), np.int64)
    return (len(originals) - 1 - places if greatest else places), originals
