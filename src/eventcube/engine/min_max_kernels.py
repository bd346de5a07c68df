"""The compiled loop of joins that skip blocks of candidates, by the least or greatest value of each.

A block is on a level: one of level 1 has 8 candidates, one of level 2 has 8 of these blocks, and so on.
"""

from __future__ import annotations

from eventcube.engine.compiled import compiled, copy_compiled_loops
from eventcube.engine.kernels import Floats, Ints, Tests, meets

# How many candidates, or blocks of a level, a block of the next level has: as a power of two, and as a number.
SHIFT = 3
WIDTH = 1 << SHIFT

# The tests of blocks, and where the blocks of each level begin; there are none of level 0.
Blocks = tuple[Tests, Ints]


@compiled
def _skip(
    ints: Ints,
    ints_bound: Ints,
    int_ops: Ints,
    floats: Floats,
    floats_bound: Floats,
    float_ops: Ints,
    starts: Ints,
    level: int,
    i: int,
    j: int,
    end: int,
) -> tuple[int, int]:
    """The first position from j on that is in no block that fails, or one from `end` on; and how many were looked at.

    Begins with the block of that level that j is in. A block beside one that failed is of a higher level if possible.
    """
    looked_at = 0
    while level and j < end:
        looked_at += 1
        shift = SHIFT * level
        if meets(ints, ints_bound, int_ops, floats, floats_bound, float_ops, starts[level] + (j >> shift), i):
            level -= 1
        else:
            j = ((j >> shift) + 1) << shift
            while level < starts.size - 1 and not (j >> shift) & (WIDTH - 1):
                shift += SHIFT
                level += 1
    return j, looked_at


@compiled
def pairs_by_blocks(
    lo: Ints,
    hi: Ints,
    tests: Tests,
    blocks: Blocks,
    only_first: bool,
    start: int,
    offset: int,
    parent: Ints,
    place: Ints,
) -> tuple[int, int, int, int]:
    """Write which candidates from lo to hi meet all tests, as (row of the table, position), ascending.

    Begins at row `start`, candidate `offset`; stops when there may be no room for what another block has, or all is
    done. Returns the number of pairs, where to continue, and the number of candidates and blocks looked at.
    """
    ints, ints_bound, int_ops, floats, floats_bound, float_ops = tests
    (b_ints, b_ints_bound, b_int_ops, b_floats, b_floats_bound, b_float_ops), starts = blocks
    top = starts.size - 1
    written = looked_at = 0
    while start < lo.size and written + WIDTH <= parent.size:
        j, end = lo[start] + offset, hi[start]
        # A few blocks of the level to begin with cover all candidates.
        level, width = 0, (end - j) >> SHIFT
        while width and level < top:
            width >>= SHIFT
            level += 1
        while j < end and written + WIDTH <= parent.size:
            j, skipped = _skip(
                b_ints, b_ints_bound, b_int_ops, b_floats, b_floats_bound, b_float_ops, starts, level, start, j, end
            )
            looked_at += skipped
            until = min((j | (WIDTH - 1)) + 1, end)
            while j < until:
                parent[written] = start
                place[written] = j
                looked_at += 1
                j += 1
                if meets(ints, ints_bound, int_ops, floats, floats_bound, float_ops, j - 1, start):
                    written += 1
                    if only_first:
                        j = until = end
            level = min(1, top)
        if j < end:
            return written, start, j - lo[start], looked_at
        start += 1
        offset = 0
    return written, start, 0, looked_at


copy_compiled_loops()
