"""What becomes of addresses when rows leave a store."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa

from eventcube.engine.counters import Counters
from eventcube.engine.payload import Payload
from eventcube.engine.rows import Rows
from eventcube.engine.store import SortedRows, States, Store
from eventcube.engine.views.addresses import Move, RowAddresses
from eventcube.plan.dictionary import Dictionary
from eventcube.plan.steps import StandalonePart

PART = StandalonePart((0, 1), (1,), True, (), (), None, ())


@dataclass
class _Executor:
    store: Store
    counters: Counters = field(default_factory=Counters)


def addresses(seq: list[int], key: list[int] | None = None, *, gapless: bool = True) -> RowAddresses:
    numbers, every = np.array(seq, np.int64), np.arange(len(seq))
    payload = Payload(pa.table({"k": pa.array(key or [0] * len(seq), pa.int64())}), len(seq))
    rows = SortedRows(
        Rows(numbers, numbers, numbers, (), (every, every), payload), ["k"] if key else [], Dictionary(())
    )
    store = Store(rows, (0, 1), States(0, len(seq)), None, None, gapless=gapless)
    return RowAddresses(PART, cast("Any", _Executor(store)))


def moved(before: RowAddresses, now: RowAddresses) -> Move:
    return Move(before, now, before.store.seq)


def ints(*values: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(values, np.int64)


with_gaps = partial(addresses, gapless=False)


def test_without_gaps_an_address_stays_the_same() -> None:
    before, now = addresses([4, 5, 6, 7]), addresses([6, 7, 8])
    assert now.rows(before.shift + ints(2, 3)).tolist() == [0, 1]
    assert moved(before, now).plain
    assert moved(before, now).carried(ints(1, 2, 3, 4), 9).tolist() == [3, 4, 9]


def test_with_gaps_numbers_follow_their_events() -> None:
    before, now = with_gaps([4, 5, 8, 9]), with_gaps([5, 9, 10])
    assert not moved(before, now).plain
    assert moved(before, now).carried(ints(1, 2, 3, 4), 0).tolist() == [2, 4, 0]


def test_a_view_that_was_in_no_store_knows_nothing() -> None:
    now = with_gaps([5, 9, 10])
    assert Move(now, now, ints()).carried(ints(), 7).tolist() == [7, 7, 7]


def test_of_intervals_what_is_left_is_kept() -> None:
    """Whichever rows have left; an earlier row that is left is in no interval that it was not in before."""
    move = moved(with_gaps([0, 1, 2, 3, 4, 5, 6]), with_gaps([0, 2, 5, 6, 7]))
    lo, hi = ints(0, 1, 1, 3, 2, 0, 6), ints(2, 4, 7, 5, 6, 7, 7)
    first, end, kept = move.intervals(lo, hi, clip=True)
    assert kept.tolist() == [True, True, True, False, True, True, True]
    assert list(zip(first.tolist(), end.tolist(), strict=True)) == [(0, 1), (1, 2), (1, 4), (1, 3), (0, 4), (3, 4)]
    first, end, kept = move.intervals(lo, hi, clip=False)
    assert kept.tolist() == [False, False, False, False, True, True, True]
    assert list(zip(first.tolist(), end.tolist(), strict=True)) == [(1, 3), (0, 4), (3, 4)]


def test_intervals_stay_with_their_key() -> None:
    """The rows of key 1 are 0 to 2 before, those of key 2 are 3 to 5."""
    move = moved(addresses([0, 1, 2, 3, 4, 5], [1, 2, 1, 2, 1, 2]), addresses([3, 4, 5, 6], [2, 1, 2, 1]))
    first, end, kept = move.intervals(ints(0, 0, 3, 4, 3), ints(2, 3, 6, 6, 4), clip=True)
    assert kept.tolist() == [False, True, True, True, False]
    rows = move.now.store.rows_of(ints(4, 3, 5)).tolist()
    assert list(zip(first.tolist(), (end - 1).tolist(), strict=True)) == [
        (rows[0], rows[0]),
        (rows[1], rows[2]),
        (rows[1], rows[2]),
    ]


def test_results_that_lost_an_event_are_told() -> None:
    move = moved(with_gaps([0, 1, 2, 3, 4]), with_gaps([0, 2, 4]))
    block, alive = move.results(np.array([[0, 0, 2, -1], [2, 1, 4, 4]], np.int64))
    assert alive.tolist() == [True, False, True, True]
    assert block.compress(alive, axis=1).tolist() == [[0, 1, -1], [1, 2, 2], [0, 1, 2], [1, 2, 2]]
