"""The few loops that are compiled: searching, expanding, testing, grouping.

Written once for 64-bit rows and values, compiled by Numba at the first use on a machine and cached on disk; none is
compiled for a query. `warm.py` lists the kinds of arguments that they are compiled for. Everything else in the engine
is NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from eventcube.engine.compiled import compiled, take_over

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]

# What a join step tests: whole numbers (new, bound, operators), then other numbers.
Tests = tuple[Ints, Ints, Ints, Floats, Floats, Ints]

# So many candidates are looked at in one go.
BLOCK = 1 << 13

LT, LE, GT, GE, EQ, NE = range(6)
OPERATORS = {"<": LT, "<=": LE, ">": GT, ">=": GE, "=": EQ, "!=": NE}


def read_only(array: Array) -> Array:
    """A view of the array that cannot be written, as arrays from Arrow cannot: one kind needs one compiled loop."""
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
def _meets(
    ints_new: Ints,
    ints_bound: Ints,
    int_ops: Ints,
    floats_new: Floats,
    floats_bound: Floats,
    float_ops: Ints,
    j: int,
    i: int,
) -> bool:
    for c in range(int_ops.size):
        if not _holds(int_ops[c], ints_new[c, j], ints_bound[c, i]):
            return False
    for c in range(float_ops.size):
        x, y = floats_new[c, j], floats_bound[c, i]
        # NaN stands for null, and a comparison with null does not hold; != would.
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

    Gallops from the answer before, so that nearly sorted questions cost a step or two each.
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

    Group -1 gives position 0: there is nothing to find.
    """
    out = np.zeros(wanted.size, np.int64)
    for i in range(wanted.size):
        group = groups[i]
        if group < 0:
            continue
        out[i] = search(rows, starts[group], starts[group + 1], wanted[i])
    return out


@compiled
def links(keys: Ints, size: int) -> Ints:
    """What `seek` gives for 0, 1, …, size."""
    out = np.empty(size + 1, np.int64)
    at = 0
    for i in range(keys.size):
        for row in range(at, keys[i] + 1):
            out[row] = i
        at = keys[i] + 1
    for row in range(at, size + 1):
        out[row] = keys.size
    return out


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
    """Write the next candidates, at most as many as `marks` has room for, as (row of the table, place in the stack).

    No branch depends on how many candidates a row has: that cannot be guessed, and guessing wrong is what costs.
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
    rest = 0
    if i < lo.size and rows < bases.size:
        rest = room - total
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
    return total, i, (offset if i == start else 0) + rest


@compiled
def _narrow(new: Array, bound: Array, op: int, parent: Ints, place: Ints, start: int, end: int) -> int:
    """Keep, from start to end, the pairs for which `new op bound` holds; NaN never does. Gives the new end."""
    less = op in (LT, LE, NE)
    same = op in (LE, GE, EQ)
    more = op in (GT, GE, NE)
    kept = start
    for k in range(start, end):
        i, j = parent[k], place[k]
        x, y = new[j], bound[i]
        parent[kept] = i
        place[kept] = j
        kept += (less & (x < y)) | (same & (x == y)) | (more & (x > y))
    return kept


@compiled
def expand(
    lo: Ints, hi: Ints, stack: Ints, table: Ints, tests: Tests, start: int, offset: int, scratch: Ints
) -> tuple[Ints, int, int, int]:
    """The table's rows extended by the events of stack[lo:hi] that meet all tests: the columns, then the event.

    Begins at row `start`, candidate `offset`; stops when the scratch space is full or all is done. Gives the new
    columns, where to go on, and how many candidates were looked at.
    """
    ints_new, ints_bound, int_ops, floats_new, floats_bound, float_ops = tests
    parent, place = scratch[0], scratch[1]
    marks, bases = scratch[2][: BLOCK + 1], scratch[3][:BLOCK]
    capacity = parent.size
    found = 0
    looked = 0
    while start < lo.size and found + BLOCK <= capacity:
        filled, start, offset = _fill(lo, hi, start, offset, parent, place, found, marks, bases)
        looked += filled
        end = found + filled
        for c in range(int_ops.size):
            end = _narrow(ints_new[c], ints_bound[c], int_ops[c], parent, place, found, end)
        for c in range(float_ops.size):
            end = _narrow(floats_new[c], floats_bound[c], float_ops[c], parent, place, found, end)
        found = end
    columns = table.shape[0]
    out = np.empty((columns + 1, found), np.int64)
    for c in range(columns):
        for k in range(found):
            out[c, k] = table[c, parent[k]]
    for k in range(found):
        out[columns, k] = stack[place[k]]
    return out, start, offset, looked


@compiled
def exists(lo: Ints, hi: Ints, tests: Tests) -> tuple[Bools, int]:
    """For each row of the table whether a candidate meets all tests, and how many candidates were looked at."""
    ints_new, ints_bound, int_ops, floats_new, floats_bound, float_ops = tests
    out = np.zeros(lo.size, np.bool_)
    looked = 0
    for i in range(lo.size):
        for j in range(lo[i], hi[i]):
            looked += 1
            if _meets(ints_new, ints_bound, int_ops, floats_new, floats_bound, float_ops, j, i):
                out[i] = True
                break
    return out, looked


@compiled
def latest(lo: Ints, hi: Ints, tests: Tests) -> tuple[Ints, int]:
    """For each row of the table the last candidate that meets all tests, -1 for none, and how many were looked at."""
    ints_new, ints_bound, int_ops, floats_new, floats_bound, float_ops = tests
    out = np.full(lo.size, -1, np.int64)
    looked = 0
    for i in range(lo.size):
        j = hi[i] - 1
        while j >= lo[i]:
            looked += 1
            if _meets(ints_new, ints_bound, int_ops, floats_new, floats_bound, float_ops, j, i):
                out[i] = j
                break
            j -= 1
    return out, looked


@compiled
def count(lo: Ints, hi: Ints, tests: Tests) -> int:
    """How many pairs `expand` would find in all."""
    ints_new, ints_bound, int_ops, floats_new, floats_bound, float_ops = tests
    found = 0
    for i in range(lo.size):
        for j in range(lo[i], hi[i]):
            if _meets(ints_new, ints_bound, int_ops, floats_new, floats_bound, float_ops, j, i):
                found += 1
    return found


@compiled
def window_starts(metric: Ints, starts: Ints, width: int) -> Ints:
    """For each row the first row of its segment whose metric is at least its own less the width.

    `starts` holds the first row of each segment and, last, the number of rows; the metric ascends in a segment.
    """
    out = np.empty(metric.size, np.int64)
    for s in range(starts.size - 1):
        at = starts[s]
        for i in range(starts[s], starts[s + 1]):
            while metric[i] - metric[at] > width:
                at += 1
            out[i] = at
    return out


@compiled
def window_ends(metric: Ints, starts: Ints, width: int) -> Ints:
    """For each row the row after the last one of its segment whose metric is at most its own plus the width."""
    out = np.empty(metric.size, np.int64)
    for s in range(starts.size - 1):
        at = starts[s]
        for i in range(starts[s], starts[s + 1]):
            while at < starts[s + 1] and metric[at] - metric[i] <= width:
                at += 1
            out[i] = at
    return out


@compiled
def group(codes: Ints, groups: int) -> tuple[Ints, Ints]:
    """The order that sorts rows by code and keeps their order otherwise, and where each code's rows begin."""
    starts = np.zeros(groups + 1, np.int64)
    for i in range(codes.size):
        starts[codes[i] + 1] += 1
    for g in range(groups):
        starts[g + 1] += starts[g]
    place = starts[:-1].copy()
    order = np.empty(codes.size, np.int64)
    for i in range(codes.size):
        order[place[codes[i]]] = i
        place[codes[i]] += 1
    return order, starts


take_over()
