"""Positions in a stack: the same whether they are sought one by one or looked up in links."""

import numpy as np

from eventcube.engine.store import Stack


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
