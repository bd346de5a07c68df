"""Compiles all loops of the engine ahead of their first use, for every signature that the engine calls them with.

A test runs the engine in a new process afterwards and checks that nothing is left to compile.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba

from eventcube.engine import intervals, kernels, min_max_kernels, order_kernels, stage_kernels, type_kernels
from eventcube.engine.compiled import CONFIG, LOOPS, cache_folder
from eventcube.errors import OptionError
from eventcube.signals import signals_wait

# Untyped: Numba makes array types by indexing, which type checkers do not know.
types: Any = numba.types
INT, WORD = types.int64, types.uint64
INTS, WORDS = INT[::1], WORD[::1]
TABLE, STRIDED = INT[:, ::1], INT[:, :]
LINKS = types.Tuple((types.int32[::1], types.uint8[::1]))
FLOATS = types.float64[:, ::1]
READ_ONLY = types.Array(INT, 1, "C", readonly=True)
TESTS = types.Tuple((TABLE, TABLE, INTS, FLOATS, FLOATS, INTS))
BYTES = types.Array(types.uint8, 1, "C", readonly=True)
OVERLAPPING_WORDS = types.Array(WORD, 1, "A", readonly=True)
NAME_TABLE = (WORDS, WORDS, INTS, types.int32[::1])
TO_CODES = [
    (types.Array(offset, 1, "C", readonly=True), BYTES, OVERLAPPING_WORDS, WORD, INT, *NAME_TABLE)
    for offset in (types.int32, INT)
]

FLOAT = types.float64


def _slide(value: Any) -> tuple[Any, ...]:
    """The arguments of the loops that count by stages, for a kind of values."""
    events = (types.uint8[::1], INTS, INTS, INTS, INT, INTS)
    out = types.Tuple((INTS, FLOAT[::1], value[::1], FLOAT[::1]))
    return (*events, types.UniTuple(INTS, 3), INT, value[::1], value, INTS, INTS, out)


SIGNATURES: dict[Any, list[tuple[Any, ...]]] = {
    kernels.meets: [(TABLE, TABLE, INTS, FLOATS, FLOATS, INTS, INT, INT)],
    kernels.search: [(INTS, INT, INT, INT), (READ_ONLY, INT, INT, INT)],
    kernels.seek: [(INTS, INTS)],
    kernels.seek_in: [(INTS, INTS, INTS, INTS), (READ_ONLY, INTS, INTS, INTS)],
    kernels.links: [(INTS, INT)],
    kernels.linked: [(LINKS, INTS)],
    kernels.count_between: [(LINKS, INTS, INTS)],
    kernels.expand: [(INTS, INTS, INTS, TABLE, TESTS, INT, INT, TABLE)],
    kernels.exists: [(INTS, INTS, TESTS)],
    kernels.latest: [(INTS, INTS, TESTS)],
    kernels.count: [(INTS, INTS, TESTS)],
    min_max_kernels.pairs_by_blocks: [
        (INTS, INTS, TESTS, types.Tuple((TESTS, INTS)), types.boolean, INT, INT, INTS, INTS)
    ],
    order_kernels.window_starts: [(READ_ONLY, INTS, INT)],
    order_kernels.window_ends: [(READ_ONLY, INTS, INT)],
    order_kernels.group: [(INTS, types.int32[::1]), (INTS, INTS)],
    order_kernels.ties: [(READ_ONLY, INTS)],
    order_kernels.time_order: [(INTS,), (READ_ONLY,)],
    order_kernels.time_span: [(INTS,), (READ_ONLY,)],
    order_kernels.stack_types: [(types.int32[::1], INT, types.boolean)],
    intervals.pairs_of: [(INTS,) * 8],
    intervals.combined: [(TABLE, rows, INTS, INTS, INT) for rows in (TABLE, STRIDED)],
    intervals.counts_of: [(INTS,) * 5],
    intervals.tallies: [(INTS, INTS, INTS, INT, INTS, INTS, INTS, INT)],
    intervals.block_of: [(TABLE, INTS, INTS, INTS, INTS, INT)],
    intervals.run_order: [(INTS, INTS, INT)],
    intervals.first_asked: [(INTS,) * 3],
    intervals.unmet: [(INTS, INTS, INTS, INTS, INTS, INTS, INT, INT)],
    intervals.swept_counts: [(INTS,) * 5],
    intervals.covered: [(INTS, INTS, INT, INT)],
    intervals.past_empty: [(INTS, INTS)],
    intervals.chain_lengths: [(INTS,) * 4],
    intervals.chains: [(INTS,) * 3],
    stage_kernels.in_order: [(INTS, INTS, INTS, INT)],
    stage_kernels.slide_counts: [_slide(INT)],
    stage_kernels.slide_whole_sums: [_slide(INT)],
    stage_kernels.slide_float_sums: [_slide(FLOAT)],
    stage_kernels.slide_least: [_slide(INT), _slide(FLOAT)],
    type_kernels.name_table: [(WORDS, WORDS, INTS, INT)],
    type_kernels.ends_of: [(INTS, BYTES)],
    type_kernels.names_to_codes: TO_CODES,
    type_kernels.short_names_to_codes: TO_CODES,
}


def warm() -> tuple[int, Path]:
    """Compile every loop that is not cached yet; returns their number, and the cache folder."""
    folder = None if CONFIG.DISABLE_JIT else cache_folder()
    if folder is None:
        raise OptionError(
            "there is no folder to keep compiled loops in",
            code="EC445",
            hint="set NUMBA_CACHE_DIR to a folder that only you can write, and do not set NUMBA_DISABLE_JIT",
        )
    for loop, signatures in SIGNATURES.items():
        for signature in signatures:
            # The compiler calls back.
            with signals_wait():
                loop.compile(signature)
    return sum(misses().values()), folder


def uncompiled() -> list[str]:
    """The names of the loops that are not cached yet; none if there is no cache folder."""
    if CONFIG.DISABLE_JIT or cache_folder() is None:
        return []
    return [loop.py_func.__name__ for loop, signatures in SIGNATURES.items() if not _is_cached(loop, signatures)]


def _is_cached(loop: Any, signatures: list[tuple[Any, ...]]) -> bool:
    """Whether Numba has the loop in its cache for these signatures; loading it would take far longer."""
    try:
        index = loop._cache._cache_file._load_index()
        return all(loop._cache._index_key(signature, loop.targetctx.codegen()) in index for signature in signatures)
    except AttributeError:
        # Another version of Numba has another cache index: the loop is then compiled without a message.
        return True


def misses() -> dict[str, int]:
    """How often this process compiled each loop because the cache lacked a signature."""
    counted = {name: sum(loop.stats.cache_misses.values()) for name, loop in LOOPS.items()}
    return {name: number for name, number in counted.items() if number}
