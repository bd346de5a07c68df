"""The compiled loops against what plain Python and NumPy say, on random input."""

from __future__ import annotations

import operator
from random import Random

import numpy as np
import pytest

from eventcube.engine.candidates import NO_TESTS
from eventcube.engine.execute import CHUNK
from eventcube.engine.kernels import (
    BLOCK,
    OPERATORS,
    Ints,
    Tests,
    count,
    exists,
    expand,
    linked,
    links,
    read_only,
    seek,
    seek_in,
)
from eventcube.engine.order_kernels import group, group_by_code, ties, window_ends, window_starts

SEEDS = range(20)
PYTHON = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


@pytest.mark.parametrize("seed", SEEDS)
def test_seek_finds_the_first_key_that_is_not_below(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = np.sort(rng.integers(0, 200, rng.integers(0, 300)))
    for wanted in (rng.integers(-5, 210, 200), np.sort(rng.integers(-5, 210, 200)), np.arange(205)[::-1]):
        assert np.array_equal(seek(keys, np.ascontiguousarray(wanted)), np.searchsorted(keys, wanted))


@pytest.mark.parametrize("seed", SEEDS)
def test_links_are_seek_for_every_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(0, 1000))
    keys = np.flatnonzero(rng.random(size) < rng.choice([rng.random(), 1.0]))
    assert np.array_equal(linked(links(keys, size), np.arange(size + 1)), np.searchsorted(keys, np.arange(size + 1)))


@pytest.mark.parametrize("seed", SEEDS)
def test_seek_in_stays_in_its_group(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [np.sort(rng.choice(50, rng.integers(0, 20), replace=False)) for _ in range(6)]
    rows = np.concatenate(parts).astype(np.int64)
    starts = np.cumsum([0, *map(len, parts)])
    groups, wanted = rng.integers(-1, 6, 100), rng.integers(-2, 55, 100)
    expected = [0 if g < 0 else starts[g] + np.searchsorted(parts[g], w) for g, w in zip(groups, wanted, strict=True)]
    assert seek_in(rows, starts, groups, wanted).tolist() == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_group_is_a_stable_sort_by_code(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = int(rng.choice([1, 3, 10, 1000]))
    codes = rng.integers(0, groups, rng.integers(0, 100))
    counted = [group(codes, np.zeros(groups, dtype)) for dtype in (np.int32, np.int64)]
    for order, starts in (*counted, group_by_code(codes, groups)):
        assert np.array_equal(order, np.argsort(codes, kind="stable"))
        assert np.array_equal(np.diff(starts), np.unique(codes, return_counts=True)[1])
        assert starts[0] == 0
        assert starts.dtype == order.dtype == np.int64


def test_group_of_no_rows_or_no_codes() -> None:
    none = np.empty(0, np.int64)
    for groups in (0, 5):
        order, starts = group_by_code(none, groups)
        assert order.tolist() == []
        assert starts.tolist() == [0]


@pytest.mark.parametrize("seed", SEEDS)
def test_ties_are_rows_of_equal_rank_in_a_segment(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [np.sort(rng.integers(0, rng.choice([3, 1000]), rng.integers(1, 9))) for _ in range(rng.integers(0, 5))]
    rank = np.concatenate([np.empty(0, np.int64), *parts])
    starts = np.cumsum([0, *map(len, parts)])
    firsts, ends = [], []
    for part, start in zip(parts, starts, strict=False):
        firsts += (start + np.searchsorted(part, part)).tolist()
        ends += (start + np.searchsorted(part, part, side="right")).tolist()
    if ends == list(range(1, len(rank) + 1)):
        firsts, ends = [], []
    assert [found.tolist() for found in ties(read_only(rank), starts)] == [firsts, ends]


def test_equal_ranks_of_different_segments_are_no_ties() -> None:
    rank, starts = np.array([1, 2, 2, 3]), np.array([0, 2, 4])
    assert [len(found) for found in ties(read_only(rank), starts)] == [0, 0]
    assert ties(read_only(rank), np.array([0, 4]))[0].tolist() == [0, 1, 1, 3]


@pytest.mark.parametrize("width", [0, 1, 7, 2**62])
@pytest.mark.parametrize("seed", SEEDS)
def test_windows_do_not_leave_their_segment(seed: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [np.sort(rng.integers(-40, 40, rng.integers(1, 30))) for _ in range(rng.integers(1, 5))]
    metric, starts = np.concatenate(parts), np.cumsum([0, *map(len, parts)])
    lows, highs = [], []
    for part, start in zip(parts, starts, strict=False):
        lows += [start + next(j for j, m in enumerate(part) if v - m <= width) for v in part.tolist()]
        highs += [start + sum(m - v <= width for m in part.tolist()) for v in part.tolist()]
    assert window_starts(metric, starts, width).tolist() == lows
    assert window_ends(metric, starts, width).tolist() == highs


def _ranges(rng: np.random.Generator, rows: int, stack: int, empty: float, most: int) -> tuple[Ints, Ints]:
    lo = rng.integers(0, stack + 1, rows)
    hi = np.minimum(lo + rng.integers(0, most + 1, rows), stack)
    return lo, np.where(rng.random(rows) < empty, lo, hi)


def _tests(rng: np.random.Generator, rows: int, stack: int) -> tuple[Tests, list[tuple[str, Ints, Ints]]]:
    """One or two tests of whole numbers and one of floats with NaN, and the same for Python."""
    ops = [str(o) for o in rng.choice(list(OPERATORS), 3)]
    ints_new, ints_bound = rng.integers(0, 4, (2, stack)), rng.integers(0, 4, (2, rows))
    floats_new = rng.choice([0.0, 0.5, 1.0, np.nan], (1, stack))
    floats_bound = rng.choice([0.0, 0.5, 1.0, np.nan], (1, rows))
    codes = np.array([OPERATORS[o] for o in ops])
    plain = [(ops[0], ints_new[0], ints_bound[0]), (ops[1], ints_new[1], ints_bound[1])]
    plain.append((ops[2], floats_new[0], floats_bound[0]))
    return (ints_new, ints_bound, codes[:2], floats_new, floats_bound, codes[2:]), plain


def _pairs(lo: Ints, hi: Ints, plain: list[tuple[str, Ints, Ints]]) -> list[tuple[int, int]]:
    return [
        (i, j)
        for i in range(len(lo))
        for j in range(lo[i], hi[i])
        if all(PYTHON[op](new[j], bound[i]) and new[j] == new[j] and bound[i] == bound[i] for op, new, bound in plain)
    ]


def _expanded(lo: Ints, hi: Ints, stack: Ints, table: Ints, tests: Tests) -> tuple[list[Ints], int]:
    """All of what expand gives, call after call, with scratch space for two blocks."""
    scratch = np.empty((4, 2 * BLOCK), np.int64)
    at, offset, looked, parts = 0, 0, 0, []
    while at < len(lo):
        data, at, offset, seen = expand(lo, hi, stack, table, tests, at, offset, scratch)
        looked += seen
        parts.append(data)
    return parts, looked


@pytest.mark.parametrize("tested", [False, True], ids=["free", "tested"])
@pytest.mark.parametrize(
    ("rows", "empty", "most"),
    [
        pytest.param(40, 0.3, 6, id="small ranges"),
        pytest.param(40, 1.0, 6, id="no candidates at all"),
        pytest.param(3, 0.0, 3 * BLOCK, id="one row needs several blocks"),
        pytest.param(3 * BLOCK, 0.95, 2, id="many rows without candidates"),
        pytest.param(0, 0.0, 1, id="no rows"),
    ],
)
def test_expand_gives_each_pair_once_and_in_order(rows: int, empty: float, most: int, tested: bool) -> None:
    rng = np.random.default_rng(rows + most)
    stack = np.sort(rng.choice(10**6, 4 * BLOCK, replace=False)).astype(np.int64)
    lo, hi = _ranges(rng, rows, len(stack), empty, most)
    table = rng.integers(0, 100, (2, rows))
    tests, plain = _tests(rng, rows, len(stack)) if tested else (NO_TESTS, [])
    parts, looked = _expanded(lo, hi, stack, table, tests)
    found = np.concatenate([np.empty((3, 0), np.int64), *parts], axis=1)
    pairs = _pairs(lo, hi, plain)
    assert looked == int((hi - lo).sum())
    assert found[2].tolist() == [stack[j] for _, j in pairs]
    assert np.array_equal(found[:2], table[:, [i for i, _ in pairs]])


@pytest.mark.parametrize("seed", range(6))
def test_expand_goes_on_in_the_middle_of_a_row(seed: int) -> None:
    rng = Random(seed)
    sizes = [rng.choice([0, 0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3]) for _ in range(12)]
    stack = np.arange(3 * BLOCK, dtype=np.int64)
    lo = np.array([rng.randint(0, 5) for _ in sizes])
    hi = lo + np.array(sizes)
    parts, _ = _expanded(lo, hi, stack, np.arange(len(sizes))[None, :], NO_TESTS)
    assert max(p.shape[1] for p in parts) <= 2 * BLOCK, "no more than the scratch space holds"
    found = np.concatenate(parts, axis=1)
    assert found[0].tolist() == [i for i, n in enumerate(sizes) for _ in range(n)]
    assert found[1].tolist() == [int(lo[i]) + k for i, n in enumerate(sizes) for k in range(n)]


def test_a_chunk_of_the_engine_has_room_for_blocks() -> None:
    assert CHUNK >= 2 * BLOCK


@pytest.mark.parametrize("seed", SEEDS)
def test_exists_and_count_agree_with_expand(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, stack = 60, 80
    lo, hi = _ranges(rng, rows, stack, 0.2, 10)
    tests, plain = _tests(rng, rows, stack)
    pairs = _pairs(lo, hi, plain)
    found, looked = exists(lo, hi, tests)
    assert found.tolist() == [any(i == r for i, _ in pairs) for r in range(rows)]
    assert looked <= int((hi - lo).sum())
    assert count(lo, hi, tests) == len(pairs)
