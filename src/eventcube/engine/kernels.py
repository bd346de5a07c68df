"""The compiled loops of joins: searching, expanding, testing, grouping.

Written once for 64-bit rows and values, compiled by Numba at the first use on a machine and cached on disk; none is
compiled for a query. `warm.py` lists the kinds of arguments that they are compiled for. Everything else in the engine
is NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from eventcube.engine.compiled import compiled, copy_compiled_loops

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]
# The position in a stack for every row.
Links = tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]

# The tests of a join step: new values, bound values and operators of whole numbers, then those of floats.
Tests = tuple[Ints, Ints, Ints, Floats, Floats, Ints]

# Candidates in a block, which is expanded and tested at once.
BLOCK = 1 << 13

LT, LE, GT, GE, EQ, NE = range(6)
OPERATORS = {"<": LT, "<=": LE, ">": GT, ">=": GE, "=": EQ, "!=": NE}


def read_only(array: Array) -> Array:
    """A read-only view, as arrays from Arrow are: so one compiled loop serves both kinds."""
    view = array.view()
    view.flags.writeable = False
    return view


@compiled
def _holds(op: int, x: Any, y: Any) -> Any:
    if op == LT:
        return x < y
    if op == LE:
        return x <= y
    if op == GT:
        return x > y
    if op == GE:
        return x >= y
    if op == EQ:
        return x == y
    return x != y


@compiled
def meets(
    ints_new: Ints,
    ints_bound: Ints,
    int_ops: Ints,
    floats_new: Floats,
    floats_bound: Floats,
    float_ops: Ints,
    j: int,
    i: int,
) -> bool:
    """Whether the candidate at position j meets the tests for row i of the table."""
    for c in range(int_ops.size):
        if not _holds(int_ops[c], ints_new[c, j], ints_bound[c, i]):
            return False
    for c in range(float_ops.size):
        x, y = floats_new[c, j], floats_bound[c, i]
        # NaN is null, and no comparison with null holds, not even !=.
        if x != x or y != y or not _holds(float_ops[c], x, y):
            return False
    return True


@compiled
def search(keys: Ints, low: int, high: int, value: int) -> int:
    """The first position from low on, before high, whose key is not below the value; high if there is none."""
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def seek(keys: Ints, wanted: Ints) -> Ints:
    """For each wanted value the first position in the sorted keys that is not below it.

    Gallops from the previous position, so that nearly sorted values cost a step or two each.
    """
    out = np.empty(wanted.size, np.int64)
    size = keys.size
    at = 0
    for i in range(wanted.size):
        value = wanted[i]
        step = 1
        if at < size and keys[at] < value:
            while at + step < size and keys[at + step] < value:
                at += step
                step *= 2
            low, high = at + 1, min(at + step, size)
        else:
            while at - step >= 0 and keys[at - step] >= value:
                at -= step
                step *= 2
            low, high = max(at - step + 1, 0), at
        at = search(keys, low, high, value)
        out[i] = at
    return out


@compiled
def seek_in(rows: Ints, starts: Ints, groups: Ints, wanted: Ints) -> Ints:
    """For each wanted row the first position in its group, rows[starts[g]:starts[g + 1]], that is not below it.

    Group -1, an empty one, gives position 0.
    """
    out = np.zeros(wanted.size, np.int64)
    for i in range(wanted.size):
        group = groups[i]
        if group < 0:
            continue
        out[i] = search(rows, starts[group], starts[group + 1], wanted[i])
    return out


@compiled
def links(keys: Ints, size: int) -> Links:
    """The positions that `seek` finds for 0, 1, …, size: of each 256 rows the first, and how much more for each.

    They are looked up far apart, so that what counts is how little memory they take.
    """
    firsts = np.empty((size >> 8) + 1, np.int32)
    more = np.zeros(size + 1, np.uint8)
    for i in range(keys.size):
        more[keys[i] + 1] = 1
    at = np.int32(0)
    for block in range(firsts.size):
        begin, end = block << 8, min((block + 1) << 8, size + 1)
        at += more[begin]
        firsts[block] = at
        more[begin] = 0
        here = np.int32(0)
        for row in range(begin + 1, end):
            here += more[row]
            more[row] = here
        at += here
    return firsts, more


@compiled
def linked(links: Links, rows: Ints) -> Ints:
    """The position of each row."""
    firsts, more = links
    out = np.empty(rows.size, np.int64)
    for i in range(rows.size):
        out[i] = firsts[rows[i] >> 8] + more[rows[i]]
    return out


@compiled
def count_between(links: Links, lower: Ints, upper: Ints) -> int:
    """How many events a stack has from each lower row to before the upper one, in all."""
    firsts, more = links
    found = 0
    for i in range(lower.size):
        low, high = lower[i], upper[i]
        found += max(firsts[high >> 8] - firsts[low >> 8] + more[high] - more[low], 0)
    return found


@compiled
def _fill(
    lo: Ints,
    hi: Ints,
    start: int,
    offset: int,
    parent: Ints,
    place: Ints,
    at: int,
    marks: Ints,
    bases: Ints,
) -> tuple[int, int, int]:
    """Write the next candidates, at most a block, as (row of the table, position in the stack).

    No branch depends on the number of candidates of a row: mispredicted branches would dominate.
    """
    room = marks.size - 1
    total = 0
    i = start
    skip = offset
    while i < lo.size and i - start < bases.size:
        width = hi[i] - lo[i] - skip
        if total + width > room:
            break
        total += width
        skip = 0
        i += 1
    rows = i - start
    partial = 0
    if i < lo.size and rows < bases.size:
        partial = room - total
        total = room
        rows += 1
    marks[: total + 1] = 0
    k = 0
    skip = offset
    for r in range(rows):
        bases[r] = lo[start + r] + skip - k
        marks[min(k, total)] += 1
        k += hi[start + r] - lo[start + r] - skip
        skip = 0
    r = -1
    for k in range(total):
        r += marks[k]
        parent[at + k] = start + r
        place[at + k] = bases[r] + k
    return total, i, (offset if i == start else 0) + partial


@compiled
def _keep_less(
    low: Array, high: Array, low_at: Ints, high_at: Ints, parent: Ints, place: Ints, start: int, end: int
) -> int:
    """`_narrow` for the most frequent test; `low_at` and `high_at` are parent and place, or the other way round."""
    write = start
    for k in range(start, end):
        i, j = parent[k], place[k]
        holds = low[low_at[k]] < high[high_at[k]]
        parent[write] = i
        place[write] = j
        write += holds
    return write


@compiled
def _narrow(new: Array, bound: Array, op: int, parent: Ints, place: Ints, start: int, end: int) -> int:
    """Keep, from start to end, the pairs for which `new op bound` holds, never for NaN; returns the new end."""
    if op == LT:
        return _keep_less(new, bound, place, parent, parent, place, start, end)
    if op == GT:
        return _keep_less(bound, new, parent, place, parent, place, start, end)
    allow_less = op in (LT, LE, NE)
    allow_equal = op in (LE, GE, EQ)
    allow_greater = op in (GT, GE, NE)
    write = start
    for k in range(start, end):
        i, j = parent[k], place[k]
        x, y = new[j], bound[i]
        parent[write] = i
        place[write] = j
        write += (allow_less & (x < y)) | (allow_equal & (x == y)) | (allow_greater & (x > y))
    return write


@compiled
def expand(
    lo: Ints, hi: Ints, stack: Ints, table: Ints, tests: Tests, start: int, offset: int, scratch: Ints
) -> tuple[Ints, int, int, int]:
    """The table's rows extended by the events of stack[lo:hi] that meet all tests: the columns, then the event.

    Begins at row `start`, candidate `offset`; stops when the scratch space is full or all is done. Returns the new
    columns, where to continue, and the number of candidates tested.
    """
    ints_new, ints_bound, int_ops, floats_new, floats_bound, float_ops = tests
    parent, place = scratch[0], scratch[1]
    marks, bases = scratch[2][: BLOCK + 1], scratch[3][:BLOCK]
    capacity = parent.size
    written = 0
    tested = 0
    while start < lo.size and written + BLOCK <= capacity:
        filled, start, offset = _fill(lo, hi, start, offset, parent, place, written, marks, bases)
        tested += filled
        end = written + filled
        for c in range(int_ops.size):
            end = _narrow(ints_new[c], ints_bound[c], int_ops[c], parent, place, written, end)
        for c in range(float_ops.size):
            end = _narrow(floats_new[c], floats_bound[c], float_ops[c], parent, place, written, end)
        written = end
    columns = table.shape[0]
    out = np.empty((columns + 1, written), np.int64)
    for c in range(columns):
        for k in range(written):
            out[c, k] = table[c, parent[k]]
    for k in range(written):
        out[columns, k] = stack[place[k]]
    return out, start, offset, tested


@compiled
def exists(lo: Ints, hi: Ints, tests: Tests) -> tuple[Bools, int]:
    """For each row of the table whether a candidate meets all tests, and the number of candidates tested."""
    ints_new, ints_bound, int_ops, floats_new, floats_bound, float_ops = tests
    out = np.zeros(lo.size, np.bool_)
    tested = 0
    for i in range(lo.size):
        for j in range(lo[i], hi[i]):
            tested += 1
            if meets(ints_new, ints_bound, int_ops, floats_new, floats_bound, float_ops, j, i):
                out[i] = True
                break
    return out, tested


@compiled
def latest(lo: Ints, hi: Ints, tests: Tests) -> tuple[Ints, int]:
    """For each row of the table the last candidate that meets all tests, -1 for none, and the number tested."""
    ints_new, ints_bound, int_ops, floats_new, floats_bound, float_ops = tests
    out = np.full(lo.size, -1, np.int64)
    tested = 0
    for i in range(lo.size):
        j = hi[i] - 1
        while j >= lo[i]:
            tested += 1
            if meets(ints_new, ints_bound, int_ops, floats_new, floats_bound, float_ops, j, i):
                out[i] = j
                break
            j -= 1
    return out, tested


@compiled
def count(lo: Ints, hi: Ints, tests: Tests) -> int:
    """The number of rows that `expand` would make in all."""
    ints_new, ints_bound, int_ops, floats_new, floats_bound, float_ops = tests
    found = 0
    for i in range(lo.size):
        for j in range(lo[i], hi[i]):
            if meets(ints_new, ints_bound, int_ops, floats_new, floats_bound, float_ops, j, i):
                found += 1
    return found


copy_compiled_loops()
