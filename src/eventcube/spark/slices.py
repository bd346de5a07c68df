"""Cut the time line into slices that can be worked on apart, each with the events around it that it needs.

A match belongs to the slice of the event that reports it: its last, or for plans that look ahead (a trailing negation)
its first. Events within a window of that are borrowed from the neighbouring slice and marked in the column HALO, so
that every match is found, and found once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventcube.engine.kernels import Array, Ints
from eventcube.runtime.ingest import read_times
from eventcube.schema import INTERNAL, EventSchema

SLICE = INTERNAL + "slice"
# The largest window that is cut; beyond it (some 36,000 years) the line is one piece.
WIDEST = 2**60
# How many windows a slice has, for windows up to so many microseconds: the part that is borrowed shrinks with it, but
# long windows must not make so few slices that cores stand idle.
_WINDOWS = ((1_000_000, 64), (600_000_000, 16), (3_600_000_000, 8))
_WINDOWS_BEYOND = 4
_SHORTEST = 1000


def slice_width(window: int) -> int:
    """The length of a slice for a window, both in microseconds; never shorter than the window."""
    windows = next((n for most, n in _WINDOWS if window <= most), _WINDOWS_BEYOND)
    return max(window * windows, _SHORTEST)


@dataclass(frozen=True, slots=True)
class Slices:
    """Slices of a width, each with the window behind it (HALO is -1), the window ahead of it (1), or both."""

    schema: EventSchema
    window: int
    width: int
    behind: bool
    ahead: bool

    def places(self, events: pa.Table) -> tuple[Ints, Ints, Array]:
        """Rows of events, the number of a slice that each is needed in, and what it is marked with there."""
        ts, valid = read_times(events.column(self.schema.time), self.schema)
        own = ts // self.width
        since = ts - own * self.width
        rows, slices, halos = [np.arange(len(ts))], [own], [np.zeros(len(ts), np.int8)]
        for borrows, near, step in (
            (self.behind, since >= self.width - self.window, 1),
            (self.ahead, since < self.window, -1),
        ):
            if borrows:
                rows.append(np.flatnonzero(near))
                slices.append(own[rows[-1]] + step)
                halos.append(np.full(len(rows[-1]), -step, np.int8))
        found = np.concatenate(rows), np.concatenate(slices), np.concatenate(halos)
        if valid is None:
            return found
        usable = valid[found[0]]
        return found[0][usable], found[1][usable], found[2][usable]
