"""Stores that rows leave in the middle, as they do where queries with other windows share one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from eventcube.engine import engine
from eventcube.engine.engine import Engine
from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.rows import Rows
from eventcube.engine.store import Store


@contextmanager
def rows_leave_in_the_middle() -> Iterator[None]:
    """Have stores with rows that no stack holds and rows out of reach, some of which leave before earlier ones."""
    still_needed = Engine._still_needed

    def some_longer(own: Engine, rows: Rows, state: Ints | None, watermark: int | None) -> Rows:
        needed = still_needed(own, rows, state, watermark)
        if watermark is None or own.width is None or not len(rows):
            return needed
        kept = np.isin(rows.seq, needed.seq)
        done = rows.done.copy()
        done[kept] = needed.done
        done[~kept] = True
        return replace(rows, done=done).where(kept | _stays(rows.seq, 13, 5))

    with (
        patch.object(Store, "gapless", False),
        patch.object(engine, "Store", _Gappy),
        patch.object(Engine, "_still_needed", some_longer),
    ):
        yield


class _Gappy(Store):
    """A store in which some events are followed by copies that no stack holds, until a while later."""

    def __init__(self, events: Rows, *settings: Any) -> None:
        copied = _stays(events.seq, 11, 4) & (events.seq % 3 != 1)
        self._index = np.repeat(np.arange(len(events)), 1 + copied)
        is_copy = np.append(False, self._index[1:] == self._index[:-1])[: len(self._index)]
        rows = events.take(self._index)
        super().__init__(
            replace(rows, seq=2 * rows.seq + is_copy, done=rows.done | is_copy, member=rows.member & ~is_copy),
            *settings,
        )

    def set_states(self, states: Ints) -> None:
        super().set_states(states[self._index])


def _stays(seq: Ints, factor: int, most: int) -> Bools:
    """Where few enough events have come since, up to four times `most` and different for each event."""
    newest = int(seq[-1]) if len(seq) else 0
    return np.asarray(seq + 4 * (seq * factor % (most + 1)) >= newest)
