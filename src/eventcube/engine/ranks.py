"""Long numbers, which floats would round, by their places in order: equal where they are equal, sorted as they are.

Decimals of more than fifteen digits and whole numbers without a sign of 64 bits are long.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from eventcube.engine.kernels import Ints
from eventcube.errors import InputError
from eventcube.schema import INTERNAL, plain_type

# The name of a column, or the text of a constant, that stands for a place in order begins like this.
RANKED = INTERNAL + "rank_"
# Every decimal of so many digits has a float of its own.
_FLOAT_DIGITS = 15
_WHOLE = pa.decimal128(20, 0)


def is_long(type_: pa.DataType) -> bool:
    """Whether floats cannot tell all numbers of a column apart."""
    type_ = plain_type(type_)
    if pat.is_decimal(type_):
        return bool(type_.precision > _FLOAT_DIGITS or type_.scale < 0)
    return bool(pat.is_uint64(type_))


class Ranks:
    """The places of the numbers of some columns among all of them."""

    def __init__(self, columns: Sequence[pa.ChunkedArray]) -> None:
        alike = _alike(columns)
        joint = pa.chunked_array([chunk for column in alike for chunk in column.chunks], alike[0].type)
        encoded = pa.concat_arrays(joint.chunks or [pa.array([], joint.type)]).dictionary_encode()
        order = pc.array_sort_indices(encoded.dictionary)
        self._known: pa.Array = encoded.dictionary.take(order)
        # Odd numbers are taken by what is there; even ones are for constants that lie between.
        places = np.empty(len(order) + 1, np.int64)
        places[np.asarray(order)] = 2 * np.arange(len(order)) + 1
        places[-1] = -1
        codes = places[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
        self.columns: list[Ints] = np.split(codes, np.cumsum([len(c) for c in columns])[:-1])

    def place(self, number: Decimal) -> int:
        """The place of a constant: that of the numbers equal to it, or one of its own between its neighbours."""
        at = bisect_left(_Decimals(self._known), number)
        equal = at < len(self._known) and self._known[at].as_py() == number
        return 2 * at + 1 if equal else 2 * at


class _Decimals(Sequence[Decimal]):
    """An array of decimals that converts only what is looked at."""

    def __init__(self, array: pa.Array) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._array[index].as_py()


def _alike(columns: Sequence[pa.ChunkedArray]) -> list[pa.ChunkedArray]:
    """The columns as decimals of one type."""
    decimals = [as_decimal(c) for c in columns]
    scale = max(0, *(c.type.scale for c in decimals))
    digits = scale + max(c.type.precision - c.type.scale for c in decimals)
    type_ = pa.decimal128(38, scale) if digits <= 38 else pa.decimal256(76, min(scale, 76))
    try:
        return [c.cast(type_) for c in decimals]
    except pa.ArrowInvalid:
        raise InputError(
            "numbers compared with each other need more than 76 digits", code="EC309", hint="round or scale them first"
        ) from None


def as_decimal(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whole numbers and decimals as decimals of a width that Arrow can sort."""
    column = column.cast(plain_type(column.type))
    if not pat.is_decimal(column.type):
        return column.cast(_WHOLE) if pat.is_uint64(column.type) else column.cast(pa.int64()).cast(_WHOLE)
    if column.type.bit_width < 128:
        return column.cast(pa.decimal128(column.type.precision, column.type.scale))
    return column
