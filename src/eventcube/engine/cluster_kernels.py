"""The compiled loop that binds clusters of events."""

from __future__ import annotations

import numpy as np

from eventcube.engine.compiled import compiled
from eventcube.engine.kernels import BLOCK, Ints, _fill


@compiled
def bind_clusters(
    table: Ints, lo: Ints, hi: Ints, of: Ints, starts: Ints, stack: Ints, start: int, offset: int, scratch: Ints
) -> tuple[Ints, int, int]:
    """The table's rows extended by the clusters that have events from place lo[i] to before hi[i] of a stack.

    Of a cluster follow its first event there, and how many there are. `of` has the cluster of every place, `starts` the
    first place of every cluster. Begins at row `start`, cluster `offset`; stops when the scratch space is full or all
    is done. Returns the new columns, and where to continue.
    """
    first, end = np.zeros(lo.size, np.int64), np.zeros(lo.size, np.int64)
    for i in range(start, lo.size):
        if lo[i] < hi[i]:
            first[i], end[i] = of[lo[i]], of[hi[i] - 1] + 1
    parent, place = scratch[0], scratch[1]
    marks, bases = scratch[2][: BLOCK + 1], scratch[3][:BLOCK]
    written = 0
    while start < lo.size and written + BLOCK <= parent.size:
        filled, start, offset = _fill(first, end, start, offset, parent, place, written, marks, bases)
        written += filled
    columns = table.shape[0]
    out = np.empty((columns + 2, written), np.int64)
    for c in range(columns):
        for k in range(written):
            out[c, k] = table[c, parent[k]]
    for k in range(written):
        i, cluster = parent[k], place[k]
        begin = max(starts[cluster], lo[i])
        out[columns, k] = stack[begin]
        out[columns + 1, k] = min(starts[cluster + 1], hi[i]) - begin
    return out, start, offset
