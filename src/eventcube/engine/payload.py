"""The columns of retained events: a table, and which of its rows they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eventcube.engine.kernels import Bools, Ints

# Rows whose memory need not be freed.
_FEW = 1 << 10


class Payload:
    """Columns of events. `index` has the row of each event in the table; None if they are its rows.

    Columns are copied when they are asked for: most events of a batch are never part of a match.
    """

    __slots__ = ("_columns", "_index", "_stored", "_table", "size")

    def __init__(self, table: pa.Table, size: int, index: Ints | None = None) -> None:
        self._table, self._index = table, index
        # A table without columns has no length.
        self.size = size
        # The number of rows whose memory is held.
        self._stored = table.num_rows if table.num_columns else 0
        self._columns: dict[tuple[str, bool], pa.Array] = {}

    def __len__(self) -> int:
        return self.size

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of all events."""
        if self._index is None:
            return self._table.column(name)
        if (name, True) not in self._columns:
            self._columns[name, True] = self._source(name).take(pa.array(self._index))
        return pa.chunked_array([self._columns[name, True]])

    def take(self, name: str, rows: Ints, mask: Bools | None = None) -> pa.Array:
        """A column of some events; null where the mask is set."""
        if (name, True) not in self._columns and self._index is not None:
            rows = self._index[rows]
            return self._source(name).take(pa.array(rows, mask=mask))
        source = self._source(name) if self._index is None else self._columns[name, True]
        return source.take(pa.array(rows, mask=mask))

    def _source(self, name: str) -> pa.Array:
        """A column of the table, in one piece."""
        if (name, False) not in self._columns:
            column = self._table.column(name)
            combined = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            if isinstance(combined, pa.ChunkedArray):
                combined = pa.concat_arrays(combined.chunks) if combined.num_chunks else pa.array([], column.type)
            self._columns[name, False] = combined
        return self._columns[name, False]

    @property
    def table(self) -> pa.Table:
        """All columns of all events."""
        if self._index is not None:
            self._table, self._index = self._table.take(pa.array(self._index)).combine_chunks(), None
            self._columns = {}
        return self._table

    def compact(self) -> None:
        """Copy the events, if they are few of those whose memory is held."""
        if self._stored > 4 * self.size + _FEW:
            if self._index is None:
                self._index = np.arange(self.size)
            self._stored = self.table.num_rows

    def select(self, rows: Ints) -> Payload:
        """Some events."""
        return Payload(self._table, len(rows), rows if self._index is None else self._index[rows])

    def slice(self, start: int, size: int) -> Payload:
        """Consecutive events."""
        if self._index is None:
            sliced = Payload(self._table.slice(start, size), size)
            sliced._stored = self._stored
            return sliced
        return Payload(self._table, size, self._index[start : start + size])

    def append(self, more: Payload) -> Payload:
        """These events followed by others; those are copied only if they are their whole table."""
        size = self.size + more.size
        table = pa.concat_tables([self.table, more._table])
        if more._index is None:
            return Payload(table.combine_chunks(), size)
        return Payload(table, size, np.concatenate([np.arange(self.size), more._index + self.size]))
