"""The events of a query in the order in which a walk over its stages takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eventcube.engine.kernels import Ints
from eventcube.engine.order_kernels import Bytes, stacks_in_order
from eventcube.engine.store import Store
from eventcube.plan.steps import State

_DUE = frozenset({State.DUE})


@dataclass(frozen=True, slots=True)
class OrderedEvents:
    """Events so that what must be strictly later comes first among events of equal rank.

    `codes` are those of the layout; an event of several slots stands here once for each. `segments` has the first event
    of each key, and the end. The `metric` of windows ascends within a key. Where windows can begin between events of
    equal rank, `ranks` tells which are equal, and the metric is in order of rows: `by_row` has the event at each place
    in that order. Both are empty elsewhere.
    """

    rows: Ints
    codes: Bytes
    by_row: Ints
    ranks: Ints
    metric: Ints
    segments: Ints


def ordered_events(store: Store, stacks: Sequence[Ints], *, forward: bool) -> OrderedEvents:
    """The events with the rows of some stacks, in the order of the stacks if of equal rank.

    `forward`: in the opposite order of time, in which rows are counted from the end.
    """
    size, ties, key_starts = store.size, store.ties, store.sorted.starts
    ranks = np.zeros(0, np.int64) if ties is None else ties[0]
    if forward:
        stacks = [size - 1 - rows[::-1] for rows in stacks]
        ranks = ranks if ties is None else np.ascontiguousarray(size - ties[1][::-1])
        key_starts = size - key_starts[::-1]
    numbers = _one_each(stacks, size) if ties is None else None
    if numbers is None:
        starts = np.cumsum([0, *map(len, stacks)], dtype=np.int64)
        places, numbers, ends = stacks_in_order(np.concatenate(stacks), starts, ranks, size)
        segments = np.concatenate([[0], ends[key_starts[1:] - 1]]).astype(np.int64)
    else:
        places, segments = np.arange(size), key_starts
    rows = size - 1 - places if forward else places
    codes = 2 * numbers
    if not store.all_have(_DUE):
        codes += ~store.has_state(rows, _DUE)
    cuts = store.cuts
    by_row = np.argsort(places, kind="stable") if cuts else np.zeros(0, np.int64)
    metric = store.measure(rows[by_row] if cuts else rows)
    return OrderedEvents(
        rows, codes, by_row, ranks[places] if cuts else by_row, -metric if forward else metric, segments
    )


def _one_each(stacks: Sequence[Ints], size: int) -> Bytes | None:
    """The number of the stack of each row, if each is in just one, as most often."""
    if sum(map(len, stacks)) != size:
        return None
    numbers = np.full(size, len(stacks), np.uint8)
    for number, rows in enumerate(stacks):
        numbers[rows] = number
    return numbers if numbers.max() < len(stacks) else None
