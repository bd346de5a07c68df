"""Stores that rows leave in the middle, as they do where queries with other windows share one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.retention import Retention, places_of
from eventcube.engine.rows import Rows
from eventcube.engine.state import State


@contextmanager
def rows_leave_in_the_middle() -> Iterator[None]:
    """Have stores with rows that no stack holds and rows out of reach, some of which leave before earlier ones."""
    set_up = State.__init__

    def with_gaps(state: State, *settings: Any) -> None:
        set_up(state, *settings)
        state.gapless = False
        # Events that meet no condition stay, too.
        state.stacking._exact = True

    def some_longer(state: State, rows: Rows, watermark: int, retention: Retention | None = None) -> None:
        needed = places_of((retention or state.retention).still_needed(rows, watermark, state.positions), len(rows))
        state.has_lost[:] = True
        state.rows = rows.where(needed | _stays(rows.seq, 13, 5))

    with patch.object(State, "__init__", with_gaps), patch.object(State, "_purge", some_longer):
        yield


def _stays(seq: Ints, factor: int, most: int) -> Bools:
    """Where few enough events have come since, up to four times `most` and different for each event."""
    newest = int(seq[-1]) if len(seq) else 0
    return np.asarray(seq + 4 * (seq * factor % (most + 1)) >= newest)
