"""Compiles all loops of the engine ahead of their first use, for every kind of arguments that the engine gives them.

A test runs the engine in a new process afterwards and finds that nothing is left to compile.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba

from eventcube.engine import intervals, kernels, type_names
from eventcube.engine.compiled import CONFIG, LOOPS, kept_in
from eventcube.errors import OptionError

# Numba makes them of C types by index, which type checkers do not see.
types: Any = numba.types
INT, WORD = types.int64, types.uint64
INTS, WORDS = INT[::1], WORD[::1]
TABLE, PART = INT[:, ::1], INT[:, :]
FLOATS = types.float64[:, ::1]
FIXED = types.Array(INT, 1, "C", readonly=True)
TESTS = types.Tuple((TABLE, TABLE, INTS, FLOATS, FLOATS, INTS))
BYTES = types.Array(types.uint8, 1, "C", readonly=True)
OVERLAPPING_WORDS = types.Array(WORD, 1, "A", readonly=True)
PLACES = (WORDS, WORDS, INTS, types.int32[::1])

SIGNATURES: dict[Any, list[tuple[Any, ...]]] = {
    kernels.search: [(INTS, INT, INT, INT)],
    kernels.seek: [(INTS, INTS)],
    kernels.seek_in: [(INTS, INTS, INTS, INTS)],
    kernels.links: [(INTS, INT)],
    kernels.expand: [(INTS, INTS, INTS, TABLE, TESTS, INT, INT, TABLE)],
    kernels.exists: [(INTS, INTS, TESTS)],
    kernels.latest: [(INTS, INTS, TESTS)],
    kernels.count: [(INTS, INTS, TESTS)],
    kernels.window_starts: [(FIXED, INTS, INT)],
    kernels.window_ends: [(FIXED, INTS, INT)],
    kernels.group: [(INTS, INT)],
    intervals.pairs_of: [(INTS,) * 8],
    intervals.combined: [(TABLE, rows, INTS, INTS, INT) for rows in (TABLE, PART)],
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
    type_names.name_table: [(WORDS, WORDS, INTS, INT)],
    type_names.ends_of: [(INTS, BYTES)],
    type_names.names_to_codes: [
        (types.Array(offset, 1, "C", readonly=True), BYTES, OVERLAPPING_WORDS, WORD, INT, *PLACES)
        for offset in (types.int32, INT)
    ],
}


def warm() -> tuple[int, Path]:
    """Compile every loop that is not kept yet; gives how many that were, and the folder."""
    folder = None if CONFIG.DISABLE_JIT else kept_in()
    if folder is None:
        raise OptionError(
            "there is no folder to keep compiled loops in",
            code="EC445",
            hint="set NUMBA_CACHE_DIR to a folder that only you can write, and do not set NUMBA_DISABLE_JIT",
        )
    for loop, signatures in SIGNATURES.items():
        for signature in signatures:
            loop.compile(signature)
    return sum(misses().values()), folder


def unkept() -> list[str]:
    """The loops that are still to be compiled, by name; none where there is no folder to keep them in."""
    if CONFIG.DISABLE_JIT or kept_in() is None:
        return []
    return [loop.py_func.__name__ for loop, signatures in SIGNATURES.items() if not _is_kept(loop, signatures)]


def _is_kept(loop: Any, signatures: list[tuple[Any, ...]]) -> bool:
    """Whether Numba would find the loop for these arguments; to load it instead takes far longer."""
    try:
        index = loop._cache._cache_file._load_index()
        return all(loop._cache._index_key(signature, loop.targetctx.codegen()) in index for signature in signatures)
    except AttributeError:
        # Another Numba keeps its books elsewhere: the loop is then compiled, or not, without a word.
        return True


def misses() -> dict[str, int]:
    """How often loops were compiled in this process, by name, as they were not kept for arguments of such kinds."""
    counted = {name: sum(loop.stats.cache_misses.values()) for name, loop in LOOPS.items()}
    return {name: number for name, number in counted.items() if number}
