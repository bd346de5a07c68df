"""The compiled loops that put events in order: by time, by key, by type; and the windows that follow from the order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from eventcube.engine.compiled import compiled
from eventcube.engine.kernels import Array, Ints

Bytes = npt.NDArray[np.uint8]
Counts = npt.NDArray[np.int32]


@compiled
def window_starts(metric: Ints, starts: Ints, width: int) -> Ints:
    """For each row the first row of its segment whose metric is at least its own less the width.

    `starts` holds the first row of each segment and, last, the number of rows; the metric ascends in a segment.
    """
    out = np.empty(metric.size, np.int64)
    for s in range(starts.size - 1):
        at = i = starts[s]
        while i < starts[s + 1]:
            # Either the row or its start moves on, without a branch that would be mispredicted half of the time.
            out[i] = at
            behind = metric[i] - metric[at] > width
            at += behind
            i += not behind
    return out


@compiled
def window_ends(metric: Ints, starts: Ints, width: int) -> Ints:
    """For each row the row after the last one of its segment whose metric is at most its own plus the width."""
    out = np.empty(metric.size, np.int64)
    for s in range(starts.size - 1):
        at = i = starts[s]
        end = starts[s + 1]
        while at < end:
            out[i] = at
            inside = metric[at] - metric[i] <= width
            at += inside
            i += not inside
        out[i:end] = end
    return out


def group_by_code(codes: Ints, groups: int) -> tuple[Ints, Ints]:
    """Group rows by codes from 0 to before `groups`; see `group`."""
    # Counters of half the size fit into a cache twice as often.
    small = max(codes.size, groups) < 2**31
    return group(codes, np.zeros(groups, np.int32 if small else np.int64))


@compiled
def group(codes: Ints, counts: Array) -> tuple[Ints, Ints]:
    """The order that sorts rows by code and keeps their order otherwise, and where the rows of each code begin.

    Codes that no row has are left out; last comes the number of rows. `counts` has a zero for each code.
    """
    for i in range(codes.size):
        counts[codes[i]] += 1
    starts = np.empty(min(counts.size, codes.size) + 1, np.int64)
    used = at = 0
    for code in range(counts.size):
        count = counts[code]
        starts[used] = counts[code] = at
        used += count > 0
        at += count
    starts[used] = at
    order = np.empty(codes.size, np.int64)
    for i in range(codes.size):
        code = codes[i]
        order[counts[code]] = i
        counts[code] += 1
    return order, starts[: used + 1]


@compiled
def ties(rank: Ints, starts: Ints) -> tuple[Ints, Ints]:
    """For each row the first row of its segment with equal rank, and the row after the last.

    Both are empty if no two ranks of a segment are equal. Ranks ascend in a segment.
    """
    some = False
    for s in range(starts.size - 1):
        for i in range(starts[s] + 1, starts[s + 1]):
            some |= rank[i] == rank[i - 1]
    size = rank.size if some else 0
    begins, ends = np.empty(size, np.int64), np.empty(size, np.int64)
    if some:
        for s in range(starts.size - 1):
            i = starts[s]
            while i < starts[s + 1]:
                end = i + 1
                while end < starts[s + 1] and rank[end] == rank[i]:
                    end += 1
                begins[i:end], ends[i:end] = i, end
                i = end
    return begins, ends


@compiled
def stack_types(codes: Array, types: int, take_any: bool) -> tuple[Ints, Ints, Ints]:
    """The rows whose code is not -1 (or all), then their places by code, and where each code's places begin.

    A place is a position among the rows that are returned; codes are from -1 to before `types`.
    """
    # No branch depends on a code: types come in no order that a branch predictor could learn.
    size = 0
    for i in range(codes.size):
        size += take_any | (codes[i] >= 0)
    # One place more, for rows after the last one that is taken.
    index = np.empty(size + 1, np.int64)
    written = 0
    for i in range(codes.size):
        index[written] = i
        written += take_any | (codes[i] >= 0)
    index = index[:size]
    counts = np.zeros(types + 1, np.int64)
    for k in range(size):
        counts[codes[index[k]] + 1] += 1
    starts = np.zeros(types + 1, np.int64)
    for t in range(types):
        starts[t + 1] = starts[t] + counts[t + 1]
    order = np.empty(starts[types] + 1, np.int64)
    at = np.append(starts[:-1], starts[types])
    for k in range(size):
        code = codes[index[k]]
        order[at[code]] = k
        at[code] += code >= 0
    return index, order[:-1], starts


@compiled
def stacks_in_order(stacked: Ints, starts: Ints, ranks: Ints, size: int) -> tuple[Ints, Bytes, Counts]:
    """The events of several stacks in order: their rows, the number of the stack of each, how many there are by row.

    The stacks lie one after the other in `stacked`, each ascending, from `starts` on. `ranks` has the first row of
    equal rank for each of `size` rows; it is empty if no two are equal. Of such events, those of earlier stacks come
    first. How many events there are up to a row is only told for the last row of equal rank.
    """
    at = np.zeros(size + 1, np.int32)
    for i in range(stacked.size):
        at[(ranks[stacked[i]] if ranks.size else stacked[i]) + 1] += 1
    for row in range(size):
        at[row + 1] += at[row]
    rows, codes = np.empty(stacked.size, np.int64), np.empty(stacked.size, np.uint8)
    for code in range(starts.size - 1):
        for i in range(starts[code], starts[code + 1]):
            rank = ranks[stacked[i]] if ranks.size else stacked[i]
            place = at[rank]
            rows[place], codes[place] = stacked[i], code
            at[rank] = place + 1
    return rows, codes, at


@compiled
def time_span(ts: Ints) -> tuple[int, int, bool]:
    """The earliest and the latest of some times, and whether they ascend."""
    low = high = before = ts[0]
    ascends = True
    for i in range(ts.size):
        low, high = min(low, ts[i]), max(high, ts[i])
        ascends &= before <= ts[i]
        before = ts[i]
    return low, high, ascends


@compiled
def time_order(ts: Ints) -> Ints:
    """The order that sorts times, and keeps the order of equal ones: a radix sort over the bits that differ."""
    low, high = ts[0], ts[0]
    for i in range(ts.size):
        low, high = min(low, ts[i]), max(high, ts[i])
    # As unsigned numbers, so that times that are far apart do not overflow.
    base, span = np.uint64(low), np.uint64(high) - np.uint64(low)
    order, other = np.arange(ts.size), np.empty(ts.size, np.int64)
    digit, mask = np.uint64(11), np.uint64((1 << 11) - 1)
    shift = np.uint64(0)
    while shift < np.uint64(64) and span >> shift > np.uint64(0):
        starts = np.zeros((1 << 11) + 1, np.int64)
        for i in range(ts.size):
            starts[np.int64(((np.uint64(ts[i]) - base) >> shift) & mask) + 1] += 1
        for d in range(1 << 11):
            starts[d + 1] += starts[d]
        for i in range(ts.size):
            row = order[i]
            place = np.int64(((np.uint64(ts[row]) - base) >> shift) & mask)
            other[starts[place]] = row
            starts[place] += 1
        order, other = other, order
        shift += digit
    return order
