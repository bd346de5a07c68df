"""Event types as small codes, for the types that some query names."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventcube.engine.kernels import Array, read_only
from eventcube.engine.type_kernels import ends_of, name_table, names_to_codes, short_names_to_codes

# Up to this length the first and the last eight bytes are all of a name,
_LONGEST = 16
# and up to this one the first.
_WORD = 8
# The first n bytes of a word, for n up to its length; none for longer texts.
_MASKS = np.array([(1 << 8 * n) - 1 for n in range(_WORD + 1)] + [0], np.uint64)


class TypeCodes:
    """The codes of type names, which are their places among the names given; every other type is -1."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        texts = [n.encode() for n in self.names]
        self._bits = max(4, (len(texts) ** 2).bit_length())
        self._factor = np.uint64(0)
        longest = max(map(len, texts), default=_LONGEST + 1)
        if longest <= _LONGEST:
            offsets = np.cumsum([0, *map(len, texts)]).astype(np.int64)
            firsts, lasts, lengths = ends_of(offsets, np.frombuffer(b"".join(texts) + bytes(8), np.uint8))
            # Names that differ in zero bytes at their ends only are one word.
            self._short = longest <= _WORD and len(np.unique(firsts)) == len(firsts)
            hashed = (firsts, np.zeros_like(lasts), np.zeros_like(lengths)) if self._short else (firsts, lasts, lengths)
            table, factor = name_table(*hashed, self._bits)
            # Numba would take a plain int for a signed one, which half of the factors do not fit.
            self._factor = np.uint64(factor)
            # No text has the length of an empty entry.
            lengths = np.where(table < 0, -1, lengths[table])
            ends = (_MASKS, firsts[table]) if self._short else (firsts[table], lasts[table])
            self._table = (*ends, lengths, table.astype(np.int32))

    def codes(self, column: pa.ChunkedArray) -> Array:
        """The code of each type in a column without nulls."""
        parts = [self._chunk(chunk) for chunk in column.chunks if len(chunk)]
        return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int32), *parts])

    def _chunk(self, chunk: pa.Array) -> Array:
        if pa.types.is_dictionary(chunk.type):
            dictionary_codes = self._chunk(chunk.dictionary) if len(chunk.dictionary) else np.zeros(0, np.int32)
            return np.asarray(dictionary_codes[chunk.indices.to_numpy(zero_copy_only=False)])
        if not self._factor:
            positions = pc.index_in(chunk.cast(pa.string()), pa.array(self.names, pa.string()))
            return np.asarray(positions.fill_null(-1), np.int32)
        if not pa.types.is_string(chunk.type):
            chunk = chunk.cast(pa.large_string())
        width = np.int32 if pa.types.is_string(chunk.type) else np.int64
        _, offsets, data = chunk.buffers()
        ends = read_only(np.frombuffer(offsets, width)[chunk.offset : chunk.offset + len(chunk) + 1])
        content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
        if len(content) < 9:
            # With less than two words NumPy makes a contiguous array, for which the loop is not compiled.
            content = np.append(content, np.zeros(9, np.uint8))
        content = read_only(content)
        words = np.ndarray(len(content) - 7, np.uint64, content.data, strides=(1,))
        to_codes = short_names_to_codes if self._short else names_to_codes
        return to_codes(ends, content, words, self._factor, self._bits, *self._table)
