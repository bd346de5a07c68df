"""Cuts events into time slices that can be processed independently.

A match belongs to the slice of its triggering event: the last, or for plans that look ahead (a trailing negation) the
first. Each slice also gets the events of the neighbouring slice within a window, marked in the column HALO, so that
every match is found exactly once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventcube.engine.kernels import Array, Ints
from eventcube.runtime.read_columns import read_times
from eventcube.schema import INTERNAL, EventSchema

SLICE = INTERNAL + "slice"
# The largest window (some 36,000 years) for which events are sliced.
WIDEST = 2**60
# Pairs of a window in microseconds and the windows of a slice up to it: longer slices borrow a smaller share of events,
# but long windows must leave enough slices for all cores.
_WINDOWS = ((1_000_000, 64), (600_000_000, 16), (3_600_000_000, 8))
_WINDOWS_OTHERWISE = 4
_MIN_WIDTH = 1000


def slice_width(window: int) -> int:
    """The width of a slice for a window, both in microseconds; at least the window."""
    windows = next((n for bound, n in _WINDOWS if window <= bound), _WINDOWS_OTHERWISE)
    return max(window * windows, _MIN_WIDTH)


@dataclass(frozen=True, slots=True)
class Slices:
    """Slices of a width, each with a window of events from the slice before (HALO is -1), after (1), or both."""

    schema: EventSchema
    window: int
    width: int
    behind: bool
    ahead: bool

    def assign(self, events: pa.Table) -> tuple[Ints, Ints, Array]:
        """Row numbers of events, the slice that needs each, and its HALO there; a row can occur twice."""
        ts, valid = read_times(events.column(self.schema.time), self.schema)
        home = ts // self.width
        offset = ts - home * self.width
        rows, slices, halos = [np.arange(len(ts))], [home], [np.zeros(len(ts), np.int8)]
        for borrows, near, step in (
            (self.behind, offset >= self.width - self.window, 1),
            (self.ahead, offset < self.window, -1),
        ):
            if borrows:
                rows.append(np.flatnonzero(near))
                slices.append(home[rows[-1]] + step)
                halos.append(np.full(len(rows[-1]), -step, np.int8))
        assigned = np.concatenate(rows), np.concatenate(slices), np.concatenate(halos)
        if valid is None:
            return assigned
        usable = valid[assigned[0]]
        return assigned[0][usable], assigned[1][usable], assigned[2][usable]
