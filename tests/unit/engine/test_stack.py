"""Positions in a stack, and windows: the same whether they are sought one by one or found for all rows."""

import numpy as np
import pyarrow as pa
import pytest

from eventcube.engine.payload import Payload
from eventcube.engine.rows import Rows
from eventcube.engine.store import SortedRows, Stack
from eventcube.plan.dictionary import Dictionary


def test_links_are_found_once_enough_rows_were_sought_in_all() -> None:
    rng = np.random.default_rng(0)
    size = 3200
    rows = np.flatnonzero(rng.random(size) < 0.1)
    stack = Stack(rows, size)
    for _ in range(5):
        lower = rng.integers(0, size + 1, 30)
        upper = np.minimum(lower + rng.integers(-5, 50, 30), size)
        low, high = np.searchsorted(rows, lower), np.searchsorted(rows, upper)
        assert np.array_equal(stack.positions(lower), low)
        assert stack.count_between(lower, upper) == np.maximum(high - low, 0).sum()
    assert stack._links is not None
    few = Stack(rows, size)
    few.positions(np.arange(10))
    assert few._links is None


@pytest.mark.parametrize("keys", [1, 7, 600])
@pytest.mark.parametrize("width", [0, 3, 50, 1 << 62])
def test_windows_of_a_few_rows_are_those_among_all(keys: int, width: int) -> None:
    rng = np.random.default_rng(keys)
    size = 2000
    ts, seq = np.sort(rng.integers(0, 900, size)), np.arange(size)
    payload = Payload(pa.table({"k": rng.integers(0, keys, size)}), size)
    rows = SortedRows(Rows(ts, seq, ts, (seq,), (), payload), ["k"] if keys > 1 else [], Dictionary())
    some = np.sort(rng.choice(size, 40, replace=False))
    for positions in (None, 0):
        for ends in (False, True):
            few = rows.windows_at(some, positions, width, ends=ends)
            assert not rows._windows or positions == 0 or ends
            assert np.array_equal(few, rows.windows(positions, width, ends=ends)[some])
