"""The few loops that are compiled: searching, expanding, testing, grouping.

Written once for 64-bit rows and values, compiled by Numba at the first use on a machine and cached on disk; none is
compiled for a query. Everything else in the engine is NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_F = TypeVar("_F", bound=Callable[..., Any])

LT, LE, GT, GE, EQ, NE = range(6)
OPERATORS = {"<": LT, "<=": LE, ">": GT, ">=": GE, "=": EQ, "!=": NE}


def _compiled(function: _F) -> _F:
    return cast(_F, numba.njit(cache=True, nogil=True)(function))


@_compiled
def _holds(op, x, y):  # type: ignore[no-untyped-def]
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


@_compiled
def _meets(ints_new, ints_bound, int_ops, floats_new, floats_bound, float_ops, j, i):  # type: ignore[no-untyped-def]
    for c in range(int_ops.size):
        if not _holds(int_ops[c], ints_new[c, j], ints_bound[c, i]):
            return False
    for c in range(float_ops.size):
        x, y = floats_new[c, j], floats_bound[c, i]
        # NaN stands for null, and a comparison with null does not hold; != would.
        if x != x or y != y or not _holds(float_ops[c], x, y):
            return False
    return True


@_compiled
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
        while low < high:
            middle = (low + high) >> 1
            if keys[middle] < value:
                low = middle + 1
            else:
                high = middle
        at = low
        out[i] = at
    return out


@_compiled
def expand(lo, hi, stack, tests, start, offset, capacity):  # type: ignore[no-untyped-def]
    """Pairs (row of the table, event) with the event in stack[lo:hi] of that row and all tests met.

    Begins at row `start`, candidate `offset`; stops when `capacity` pairs are found or all is done. Gives the pairs,
    where to go on, and how many candidates were looked at.
    """
    ints_new, ints_bound, int_ops, floats_new, floats_bound, float_ops = tests
    free = int_ops.size == 0 and float_ops.size == 0
    total = 0
    for i in range(start, lo.size):
        total += max(hi[i] - lo[i], 0)
        if total - offset > capacity:
            break
    room = min(capacity, max(total - offset, 0))
    parent = np.empty(room, np.int64)
    row = np.empty(room, np.int64)
    found = 0
    looked = 0
    i = start
    while i < lo.size:
        j = lo[i] + offset
        end = hi[i]
        if free:
            end = min(end, j + capacity - found)
            looked += max(end - j, 0)
            while j < end:
                parent[found] = i
                row[found] = stack[j]
                found += 1
                j += 1
        else:
            while j < end and found < capacity:
                looked += 1
                if _meets(ints_new, ints_bound, int_ops, floats_new, floats_bound, float_ops, j, i):
                    if found == room:
                        break
                    parent[found] = i
                    row[found] = stack[j]
                    found += 1
                j += 1
        if j < hi[i]:
            return parent[:found], row[:found], i, j - lo[i], looked
        offset = 0
        i += 1
    return parent[:found], row[:found], i, 0, looked


@_compiled
def exists(lo, hi, tests):  # type: ignore[no-untyped-def]
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


@_compiled
def count(lo, hi, tests):  # type: ignore[no-untyped-def]
    """How many pairs `expand` would find in all."""
    ints_new, ints_bound, int_ops, floats_new, floats_bound, float_ops = tests
    found = 0
    for i in range(lo.size):
        for j in range(lo[i], hi[i]):
            if _meets(ints_new, ints_bound, int_ops, floats_new, floats_bound, float_ops, j, i):
                found += 1
    return found


@_compiled
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


@_compiled
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


@_compiled
def _hash(data, start, end):  # type: ignore[no-untyped-def]
    value = np.uint64(1469598103934665603)
    for i in range(start, end):
        value = (value ^ np.uint64(data[i])) * np.uint64(1099511628211)
    return value ^ (value >> np.uint64(29))


@_compiled
def name_table(offsets, data, size):  # type: ignore[no-untyped-def]
    """A hash table of so many places (a power of two, more than twice the names) that holds the number of each name."""
    table = np.full(size, -1, np.int64)
    mask = np.uint64(size - 1)
    for i in range(offsets.size - 1):
        at = _hash(data, offsets[i], offsets[i + 1]) & mask
        while table[at] >= 0:
            at = (at + np.uint64(1)) & mask
        table[at] = i
    return table


@_compiled
def names_to_codes(offsets, data, table, name_offsets, names):  # type: ignore[no-untyped-def]
    """For each text the number of the name it is, or -1."""
    out = np.empty(offsets.size - 1, np.int32)
    mask = np.uint64(table.size - 1)
    for i in range(out.size):
        start, end = offsets[i], offsets[i + 1]
        at = _hash(data, start, end) & mask
        found = -1
        while table[at] >= 0:
            name = table[at]
            begin = name_offsets[name]
            if name_offsets[name + 1] - begin == end - start:
                same = True
                for k in range(end - start):
                    if data[start + k] != names[begin + k]:
                        same = False
                        break
                if same:
                    found = name
                    break
            at = (at + np.uint64(1)) & mask
        out[i] = found
    return out


@_compiled
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
