"""The compiled loop that expands clusters of events."""

from __future__ import annotations

import numpy as np

from eventcube.engine.compiled import compiled
from eventcube.engine.kernels import Ints

# Combinations are counted up to this many.
_MOST = 1 << 62


@compiled
def _times(count: int, width: int) -> int:
    """The product, or the most that is counted."""
    return _MOST if count > _MOST // width else count * width


@compiled
def _combinations(widths: Ints, row: int) -> int:
    """How many combinations of the events of a row's clusters there are."""
    count: int = 1
    for k in range(widths.shape[0]):
        count = _times(count, widths[k, row])
    return count


@compiled
def expand_clusters(
    table: Ints, columns: Ints, starts: Ints, widths: Ints, stacks: Ints, row: int, offset: int, most: int
) -> tuple[Ints, int, int]:
    """The rows of a table with each combination of the events of their clusters, at most so many.

    Cluster k is in column columns[k], and row i has its events stacks[starts[k, i]:starts[k, i] + widths[k, i]]. Begins
    at a row, and a combination of it; gives the new columns, and where to go on.
    """
    size: int = -offset
    end = row
    while end < table.shape[1] and size < most:
        # A sum of two counts fits 64 bits.
        size = min(size + _combinations(widths, end), most)
        end += 1
    out = np.empty((table.shape[0], size), np.int64)
    filled: int = 0
    while filled < size:
        count = _combinations(widths, row)
        taken: int = min(count - offset, size - filled)
        for c in range(table.shape[0]):
            out[c, filled : filled + taken] = table[c, row]
        # The events of the last cluster change fastest.
        repeats: int = 1
        for k in range(columns.size - 1, -1, -1):
            column, start, width = columns[k], starts[k, row], widths[k, row]
            at, again = (offset // repeats) % width, repeats - offset % repeats
            for i in range(filled, filled + taken):
                out[column, i] = stacks[start + at]
                again -= 1
                if again == 0:
                    again = repeats
                    at += 1
                    if at == width:
                        at = 0
            repeats = _times(repeats, width)
        filled += taken
        offset += taken
        if offset == count:
            row += 1
            offset = 0
    return out, row, offset
