"""Long numbers, which floats would round, by their places in order: equal where they are equal, sorted as they are.

Decimals of more than fifteen digits and whole numbers without a sign of 64 bits are long.
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
_FURTHEST = 2**63 - 1


class Ranks:
    """The places of the numbers of some columns among all of them: equal and in order where the numbers are.

    Numbers that fit 64 bits without their decimal point are such places already; others are sorted.
    """

    def __init__(self, columns: Sequence[pa.ChunkedArray]) -> None:
        alike = _alike(columns)
        self._scale = int(alike[0].type.scale)
        chunks = [chunk for column in alike for chunk in column.chunks]
        joint = pa.concat_arrays(chunks or [pa.array([], alike[0].type)])
        valid = np.asarray(joint.is_valid())
        self._known: pa.Array | None = None
        codes = _whole(joint, valid)
        if codes is None:
            codes = self._sorted(joint)
        cuts = np.cumsum([len(c) for c in columns])[:-1]
        # Even numbers are for what is there, odd ones for constants that lie between.
        self.columns: list[tuple[Ints, Bools]] = list(
            zip(np.split(2 * codes, cuts), np.split(valid, cuts), strict=True)
        )

    def _sorted(self, joint: pa.Array) -> Ints:
        encoded = joint.dictionary_encode()
        order = pc.array_sort_indices(encoded.dictionary)
        self._known = encoded.dictionary.take(order)
        places = np.zeros(len(order) + 1, np.int64)
        places[np.asarray(order)] = np.arange(len(order))
        codes: Ints = places[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
        return codes

    def place(self, number: Decimal) -> int:
        """The place of a constant: that of the numbers equal to it, or one of its own between its neighbours."""
        if self._known is None:
            exact = Fraction(number) * 10**self._scale
            place = 2 * math.floor(exact) + (exact.denominator > 1)
            return int(max(-_FURTHEST, min(_FURTHEST, place)))
        at = bisect_left(_Decimals(self._known), number)
        equal = at < len(self._known) and bool(self._known[at].as_py() == number)
        return 2 * at if equal else 2 * at - 1


def _whole(decimals: pa.Array, valid: Bools) -> Ints | None:
    """Decimals without their decimal point, zero for null; None if 62 bits do not hold them all."""
    if not len(decimals):
        return np.zeros(0, np.int64)
    if decimals.type.bit_width > 128:
        return None
    words = np.frombuffer(decimals.buffers()[1], np.int64).reshape(-1, 2)[decimals.offset :][: len(decimals)]
    low, high = np.where(valid, words[:, 0], 0), np.where(valid, words[:, 1], 0)
    fits = (high == low >> 63) & (low < 2**62) & (low > -(2**62))
    return low if fits.all() else None


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
