"""Ranks of long numbers, which floats would round: ranks are equal and ordered as the numbers are.

Decimals of more than fifteen digits and unsigned 64-bit numbers are long.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from eventcube.engine.kernels import Bools, Ints
from eventcube.errors import InputError
from eventcube.schema import plain_type

_WHOLE = pa.decimal128(20, 0)
_MAX_RANK = 2**63 - 1


class Ranks:
    """The ranks of the numbers of some columns among all of them.

    Decimals that fit 64 bits without their decimal point serve as ranks themselves; others are sorted.
    """

    def __init__(self, columns: Sequence[pa.ChunkedArray]) -> None:
        decimals = _as_one_type(columns)
        self._scale = int(decimals[0].type.scale)
        chunks = [chunk for column in decimals for chunk in column.chunks]
        combined = pa.concat_arrays(chunks or [pa.array([], decimals[0].type)])
        valid = np.asarray(combined.is_valid())
        self._distinct: pa.Array | None = None
        codes = _unscaled(combined, valid)
        if codes is None:
            codes = self._sorted(combined)
        ends = np.cumsum([len(c) for c in columns])[:-1]
        # Numbers of the columns have even ranks; odd ones are for constants between them.
        self.columns: list[tuple[Ints, Bools]] = list(
            zip(np.split(2 * codes, ends), np.split(valid, ends), strict=True)
        )

    def _sorted(self, numbers: pa.Array) -> Ints:
        encoded = numbers.dictionary_encode()
        order = pc.array_sort_indices(encoded.dictionary)
        self._distinct = encoded.dictionary.take(order)
        ranks = np.zeros(len(order) + 1, np.int64)
        ranks[np.asarray(order)] = np.arange(len(order))
        codes: Ints = ranks[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
        return codes

    def place(self, number: Decimal) -> int:
        """The rank of a constant: that of equal numbers, or an odd one between its neighbours."""
        if self._distinct is None:
            exact = Fraction(number) * 10**self._scale
            place = 2 * math.floor(exact) + (exact.denominator > 1)
            return int(max(-_MAX_RANK, min(_MAX_RANK, place)))
        at = bisect_left(_Decimals(self._distinct), number)
        equal = at < len(self._distinct) and bool(self._distinct[at].as_py() == number)
        return 2 * at if equal else 2 * at - 1


def _unscaled(decimals: pa.Array, valid: Bools) -> Ints | None:
    """Decimals without their decimal point, zero for null; None if some do not fit 62 bits."""
    if not len(decimals):
        return np.zeros(0, np.int64)
    if decimals.type.bit_width > 128:
        return None
    words = np.frombuffer(decimals.buffers()[1], np.int64).reshape(-1, 2)[decimals.offset :][: len(decimals)]
    low, high = np.where(valid, words[:, 0], 0), np.where(valid, words[:, 1], 0)
    fits = (high == low >> 63) & (low < 2**62) & (low > -(2**62))
    return low if fits.all() else None


class _Decimals(Sequence[Decimal]):
    """An array of decimals that converts elements on access."""

    def __init__(self, array: pa.Array) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._array[index].as_py()


def _as_one_type(columns: Sequence[pa.ChunkedArray]) -> list[pa.ChunkedArray]:
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
