"""Cut the time line into slices that can be worked on apart, each with the events around it that it needs.

A match belongs to the slice of the event that reports it: its last, or for plans that look ahead (a trailing negation)
its first. Events within a window of that are borrowed from the neighbouring slice and marked in the column HALO, so
that every match is found, and found once.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from eventcube.schema import HALO, INTERNAL
from eventcube.spark.columns import column

SLICE = INTERNAL + "slice"
TIME = INTERNAL + "time"
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


def cut(frame: DataFrame, micros: Column, window: int, *, behind: bool, ahead: bool) -> DataFrame:
    """The events with the slice they are in, and once more for each slice that borrows them.

    A slice borrows the window behind it (HALO is -1), the window ahead of it (1), or both.
    """
    width = slice_width(window)
    own = _place(0, width, 0)
    borrowed = [*([(window, -1)] if behind else []), *([(-window, 1)] if ahead else [])]
    here = _index(0, width)
    if len(borrowed) == 1:
        ((shift, halo),) = borrowed
        both = f"array({own}, {_place(shift, width, halo)})"
        places = f"IF({_index(shift, width)} = {here}, array({own}), {both})"
    else:
        rest = [
            f"IF({_index(shift, width)} = {here}, {_NOWHERE}, array({_place(shift, width, halo)}))"
            for shift, halo in borrowed
        ]
        places = f"concat({', '.join([f'array({own})', *rest])})"
    kept = [column(name) for name in frame.columns]
    timed = frame.withColumn(TIME, micros).where(F.col(TIME).isNotNull())
    return timed.select(*kept, F.inline(F.expr(places)))


_NOWHERE = f"CAST(array() AS ARRAY<STRUCT<{SLICE}: BIGINT, {HALO}: TINYINT>>)"


def _index(shift: int, width: int) -> str:
    """The number of the slice that the time, so much later, lies in."""
    moved = f"({TIME} + {shift}L)"
    return f"(({moved} - pmod({moved}, {width}L)) div {width}L)"


def _place(shift: int, width: int, halo: int) -> str:
    return f"named_struct('{SLICE}', {_index(shift, width)}, '{HALO}', CAST({halo} AS TINYINT))"
