"""Loads made from statistics: from totals alone, from a sample of intervals, or from windows before anything runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate
from operator import mul

import numpy as np

from eventcube.optimizer.cost import Load, PartProfile
from eventcube.optimizer.statistics import Floats, Ints, Statistics


def _partial_results(events: Iterable[float], ordered: bool) -> tuple[float, ...]:
    """Partial results after 1, 2, … components with so many events each; in the order of a SEQ 1 of k! is one."""
    return tuple(accumulate((n / k if ordered else n for k, n in enumerate(events, 1)), mul))


def greatest_load(load: Load, statistics: Statistics) -> Load:
    """No less than is asked for: as if every event lay in every interval, and views had none."""
    part, rows = load.part, load.outer_rows
    events = [statistics.count(slot) for slot in reversed(part.slots)]
    extended = _partial_results(events[1:], part.ordered)
    return replace(
        load,
        partial=_partial_results(events, part.ordered),
        extended=extended,
        windowed=extended,
        missing=sum(statistics.count(slot) for slot in part.last),
        ends=rows,
        ends_inside=rows,
    )


def sampled_load(load: Load, lo: Ints, hi: Ints, statistics: Statistics) -> Load:
    """What is asked for, from a sample of the intervals; as if a view had all of it."""
    part = load.part
    inside = statistics.inside(part.slots[::-1], lo, hi)
    orders = np.cumprod(np.arange(1.0, len(inside) + 1)) if part.ordered else np.ones(len(inside))
    partial = np.cumprod(inside, axis=0).mean(axis=1) / orders
    rows = int(hi.max() - hi.min()) + 1
    ends = min(load.outer_rows, rows)
    return replace(
        load,
        partial=tuple(partial.tolist()),
        extended=_of_last_event(inside[1:], part),
        ends=ends,
        ends_inside=ends * min(1.0, float((hi - lo).mean()) / rows),
    )


def with_windows(load: Load, lo: Ints, hi: Ints, statistics: Statistics) -> Load:
    """The same with what each last event would be asked for as far back as its window reaches."""
    back = np.minimum(lo, statistics.window_starts(np.maximum(hi - 1, 0)))
    return replace(load, windowed=_of_last_event(statistics.inside(load.part.slots[-2::-1], back, hi), load.part))


def _of_last_event(inside: Floats, part: PartProfile) -> tuple[float, ...]:
    """The partial results of one last event, from how many events of the other components each interval holds."""
    if not len(inside):
        return ()
    wide = np.sort(inside, axis=1)[:, inside.shape[1] * 9 // 10]
    return _partial_results(wide.tolist(), part.ordered)


def last_events(part: PartProfile, lo: Ints, hi: Ints, statistics: Statistics) -> float:
    """How many events that can end a result lie between the first and the last row of all intervals."""
    first, end = lo.min(keepdims=True), hi.max(keepdims=True)
    return min(float(statistics.inside(part.last, first, end).sum()), float(end[0] - first[0]))


def with_missing(load: Load, missing: float) -> Load:
    """The same of a view that lacks some last events; no more of them are asked for than lie in the intervals."""
    if load.part.last == load.part.slots[-1:]:
        missing = min(missing, load.outer_rows * load.partial[0])
    return replace(load, missing=missing)


def window_load(load: Load, events: list[float], bound: int) -> Load:
    """What is asked for by outer rows that are not there yet, from the events of each component in a window.

    Of the `bound` events of an outer row and the part's all orders are taken to be as likely.
    """
    partial = accumulate((n / max(1, bound + k) for k, n in enumerate(reversed(events))), mul)
    extended = _partial_results(events[-2::-1], load.part.ordered)
    return replace(load, partial=tuple(partial), extended=extended, windowed=extended, ends=load.outer_rows)
