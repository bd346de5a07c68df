"""Loads made from statistics: from totals alone, from a sample of intervals, or from windows before anything runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate
from operator import mul

import numpy as np

from eventcube.optimizer.cost import Load
from eventcube.optimizer.statistics import Ints, Statistics


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


def sampled_load(load: Load, lo: Ints, hi: Ints, selectivity: float, statistics: Statistics) -> Load:
    """What is asked for, from a sample of the intervals; as if a view had all of it."""
    part = load.part
    inside = statistics.inside(part.slots[::-1], lo, hi)
    sums = np.multiply.accumulate(inside, axis=0).sum(axis=1).tolist()
    orders = _partial_results((1.0,) * len(sums), part.ordered)
    wide = np.sort(inside[1:], axis=1)[:, len(lo) * 9 // 10]
    return replace(
        load,
        partial=tuple(total * order / len(lo) for total, order in zip(sums, orders, strict=True)),
        extended=_partial_results(wide.tolist(), part.ordered),
        selectivity=selectivity,
    )


def view_load(load: Load, lo: Ints, hi: Ints, statistics: Statistics) -> Load:
    """The same of a new view: no last event is in it. Also how far back windows reach, and the ends of the intervals.

    A window is taken to hold as many times more events of each component as it is longer than an interval.
    """
    rows = float((hi - lo).sum())
    back = np.minimum(lo, statistics.window_starts(np.maximum(hi - 1, 0)))
    longer = float((hi - back).sum()) / rows if rows else 1.0
    between = int(hi.max() - hi.min()) + 1
    ends = min(load.outer_rows, between)
    first, end = lo.min(keepdims=True), hi.max(keepdims=True)
    last_events = min(float(statistics.inside(load.part.last, first, end).sum()), float(end[0] - first[0]))
    return replace(
        load,
        windowed=tuple(n * longer**k for k, n in enumerate(load.extended, 1)),
        missing=_asked_for(load, last_events),
        ends=ends,
        ends_inside=ends * min(1.0, rows / len(lo) / between),
    )


def with_missing(load: Load, missing: float) -> Load:
    """The same of a view that lacks some last events."""
    return replace(load, missing=_asked_for(load, missing))


def _asked_for(load: Load, last_events: float) -> float:
    """How many of the last events are asked for: no more than lie in the intervals."""
    return (
        min(last_events, load.outer_rows * load.partial[0]) if load.part.last == load.part.slots[-1:] else last_events
    )


def window_load(load: Load, events: list[float], bound: int) -> Load:
    """What is asked for by outer rows that are not there yet, from the events of each component in a window.

    Of the `bound` events of an outer row and the part's all orders are taken to be as likely.
    """
    partial = accumulate((n / max(1, bound + k) for k, n in enumerate(reversed(events))), mul)
    extended = _partial_results(events[-2::-1], load.part.ordered)
    return replace(load, partial=tuple(partial), extended=extended, windowed=extended, ends=load.outer_rows)
