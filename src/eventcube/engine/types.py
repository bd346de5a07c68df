"""Event types as small numbers: only the types that some query names matter."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from eventcube.engine.kernels import Ints, name_table, names_to_codes


class TypeNames:
    """The type names of some queries; every other type is -1."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(sorted(names))
        texts = [n.encode() for n in self.names]
        self._offsets = np.cumsum([0, *map(len, texts)]).astype(np.int64)
        self._data = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
        size = 1 << (2 * len(texts) + 1).bit_length()
        self._table = name_table(self._offsets, self._data, size)

    def codes(self, column: pa.ChunkedArray) -> Ints:
        """The code of each type in a column without nulls."""
        parts = [self._chunk(chunk) for chunk in column.chunks if len(chunk)]
        return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int32), *parts])

    def _chunk(self, chunk: pa.Array) -> Ints:
        if pa.types.is_dictionary(chunk.type):
            known = self._chunk(chunk.dictionary) if len(chunk.dictionary) else np.zeros(0, np.int32)
            return known[chunk.indices.to_numpy(zero_copy_only=False)]
        if not pa.types.is_string(chunk.type):
            chunk = chunk.cast(pa.large_string())
        width = np.int32 if pa.types.is_string(chunk.type) else np.int64
        _, offsets, data = chunk.buffers()
        ends = np.frombuffer(offsets, width)[chunk.offset : chunk.offset + len(chunk) + 1]
        content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
        return np.asarray(names_to_codes(ends, content, self._table, self._offsets, self._data))
