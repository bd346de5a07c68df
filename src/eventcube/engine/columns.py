"""Events' attributes as NumPy arrays: whole numbers and times as int64, other numbers as float64, text as codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventcube.engine.kernels import Array, Bools, Ints
from eventcube.engine.payload import Payload
from eventcube.engine.ranks import Ranks, as_decimal
from eventcube.engine.text_codes import TextCodes
from eventcube.engine.time_text import parse_times
from eventcube.plan.dictionary import Dictionary
from eventcube.plan.expressions import ColumnRef, Encoding
from eventcube.schema import Kind, kind_of, plain_type


@dataclass(frozen=True, slots=True)
class Column:
    """Values and, where some are null, a mask of those that are not. A float's null is NaN, and NaN is null."""

    values: Array
    valid: Bools | None = None

    def take(self, rows: Ints) -> Column:
        """The values at some rows."""
        return Column(self.values[rows], None if self.valid is None else self.valid[rows])


class Columns:
    """The columns of events, converted at first use, optionally in another order of rows."""

    def __init__(self, table: Payload, dictionary: Dictionary, order: Ints | None = None) -> None:
        self.table = table
        self._dictionary = dictionary
        self._order = order
        self._converted: dict[tuple[str, Encoding], Column] = {}
        self._text_codes: TextCodes | None = None
        self._number_codes: dict[Decimal, int] = {}

    def __getitem__(self, ref: ColumnRef) -> Column:
        """The column that is referred to, whatever the slot."""
        key = (ref.column, ref.encoding)
        if key not in self._converted:
            match ref.encoding:
                case Encoding.TEXT:
                    self.text_codes()
                case Encoding.RANK:
                    self._rank()
                case Encoding.TIME_TEXT:
                    self._converted[key] = self._in_order(to_column(parse_times(self.table.column(ref.column))))
                case Encoding.NUMBER | Encoding.NULLS:
                    self._converted[key] = self._in_order(to_column(self.table.column(ref.column)))
        return self._converted[key]

    def code(self, constant: str | Decimal) -> int:
        """The code of a text constant, or the rank of a number constant."""
        if isinstance(constant, str):
            return self.text_codes().constants[constant]
        if constant not in self._number_codes:
            self._rank()
        return self._number_codes[constant]

    def text_codes(self) -> TextCodes:
        """The codes of all text; equal text has equal codes, in whatever column."""
        if self._text_codes is None:
            names = self._dictionary.columns
            self._text_codes = TextCodes([self.table.column(n) for n in names], self._dictionary)
            for name, codes in zip(names, self._text_codes.columns, strict=True):
                valid = codes >= 0
                column = Column(codes, None if valid.all() else valid)
                self._converted[name, Encoding.TEXT] = self._in_order(column)
        return self._text_codes

    def _in_order(self, column: Column) -> Column:
        return column if self._order is None else column.take(self._order)

    def _rank(self) -> None:
        """Rank all numbers that are compared exactly, columns and constants together."""
        names = self._dictionary.numbers
        ranks = Ranks([self.table.column(n) for n in names])
        for name, (places, valid) in zip(names, ranks.columns, strict=True):
            self._converted[name, Encoding.RANK] = self._in_order(Column(places, None if valid.all() else valid))
        for number in self._dictionary.number_constants:
            self._number_codes[number] = ranks.place(number)


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.large_string())


def _codes(encoded: pa.DictionaryArray) -> Ints:
    """The position of each value in the dictionary, -1 for null."""
    codes: Ints = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return codes


def _ranked(encoded: pa.DictionaryArray) -> Ints:
    """The rank of each value among the dictionary's values, -1 for null."""
    rank = np.empty(len(encoded.dictionary) + 1, np.int64)
    rank[np.asarray(pc.array_sort_indices(encoded.dictionary))] = np.arange(len(encoded.dictionary))
    rank[-1] = -1
    ranks: Ints = rank[_codes(encoded)]
    return ranks


def text_ranks(column: pa.ChunkedArray) -> Ints:
    """Numbers that sort as the text does, null first."""
    return _ranked(_as_text(column).combine_chunks().dictionary_encode())


def to_column(array: pa.ChunkedArray) -> Column:
    """An Arrow column as numbers; of text, and of types without a comparison, only the nulls remain."""
    kind = kind_of(array.type)
    if kind is Kind.TEXT or kind is Kind.OTHER or kind is Kind.NULL:
        return Column(np.zeros(len(array), np.int64), _validity(array))
    if kind is Kind.FLOAT:
        return Column(_numpy(array.cast(pa.float64(), safe=False).fill_null(np.nan), np.float64))
    if kind is Kind.TIME or kind is Kind.DURATION:
        array = to_microseconds(array)
    elif kind is Kind.BOOLEAN:
        array = array.cast(pa.int8())
    array = array if array.type == pa.int64() else array.cast(pa.int64())
    valid = _validity(array)
    return Column(_numpy(array if valid is None else array.fill_null(0), np.int64), valid)


def to_microseconds(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times and durations as whole microseconds, rounded down; null if they do not fit 64 bits."""
    plain = plain_type(array.type)
    array = array if array.type == plain else array.cast(plain)
    if pa.types.is_date(array.type):
        array = array.cast(pa.timestamp("s")) if pa.types.is_date32(array.type) else array.cast(pa.timestamp("ms"))
    unit = array.type.unit
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    raw = pa.chunked_array([chunk.view(pa.int64()) for chunk in chunks], pa.int64())
    if unit == "us":
        return raw
    if unit == "ns":
        # Arrow divides towards zero; times before 1970 must still be rounded down.
        quotient = pc.divide(raw, 1000)
        return pc.subtract(quotient, pc.greater(pc.multiply(quotient, 1000), raw).cast(pa.int64()))
    factor = 1_000_000 if unit == "s" else 1_000
    bound = (2**62) // factor
    inside = pc.and_(pc.less(raw, bound), pc.greater(raw, -bound))
    return pc.multiply(pc.if_else(inside, raw, None), factor)


def _validity(array: pa.ChunkedArray) -> Bools | None:
    return None if array.null_count == 0 else _numpy(array.is_valid(), np.bool_)


def _numpy(array: pa.ChunkedArray, dtype: npt.DTypeLike) -> Array:
    chunks = array.chunks
    if len(chunks) == 1:
        return np.asarray(chunks[0].to_numpy(zero_copy_only=False), dtype=dtype)
    return np.asarray(array.to_numpy(), dtype=dtype)


def codes_of(columns: Sequence[pa.ChunkedArray], *, nulls_match: bool) -> tuple[Ints, int]:
    """A group number for each row, equal for equal values of all columns, and the number of groups.

    If nulls do not match, rows with a null get -1.
    """
    codes: Ints | None = None
    groups = 1
    missing = np.zeros(len(columns[0]), np.bool_)
    for column in columns:
        column_codes, size = _dense(comparable(column))
        missing |= column_codes < 0
        column_codes = np.where(column_codes < 0, size, column_codes)
        codes = column_codes if codes is None else codes * (size + 1) + column_codes
        groups *= size + 1
        if groups > 2 * len(column_codes) + 1024:
            _, codes = np.unique(codes, return_inverse=True)
            groups = int(codes.max(initial=-1)) + 1
    assert codes is not None
    if not nulls_match:
        codes = np.where(missing, -1, codes)
    return np.ascontiguousarray(codes, np.int64), groups


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in a type in which Arrow finds the same values equal as `=` does."""
    type_ = plain_type(column.type)
    if pa.types.is_floating(type_):
        # -0.0 = 0.0, and NaN is null.
        return pa.chunked_array([pa.array(to_column(column).values + 0.0, from_pandas=True)])
    if kind_of(type_) is Kind.FLOAT:
        return as_decimal(column)
    if kind_of(type_) in (Kind.TIME, Kind.DURATION):
        return to_microseconds(column)
    return column


def _dense(column: pa.ChunkedArray) -> tuple[Ints, int]:
    """Small codes for a column's values, -1 for null."""
    kind = kind_of(column.type)
    if kind in (Kind.INTEGER, Kind.BOOLEAN) and len(column):
        converted = to_column(column)
        values, valid = converted.values, converted.valid
        low, high = int(values.min()), int(values.max())
        if high - low < max(1 << 16, 4 * len(values)):
            dense = values - low
            return (dense if valid is None else np.where(valid, dense, -1)), high - low + 1
    encoded = encoded_of(column)
    return _codes(encoded), len(encoded.dictionary)


def encoded_of(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """The column as a dictionary array without duplicate values."""
    encoded = column.combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = pa.concat_arrays(encoded.chunks) if encoded.num_chunks else pa.array([], column.type)
    if isinstance(encoded, pa.DictionaryArray) and len(encoded.dictionary.unique()) < len(encoded.dictionary):
        encoded = encoded.dictionary_decode()
    return encoded if isinstance(encoded, pa.DictionaryArray) else encoded.dictionary_encode()
