"""Compiled loops over kept results and the intervals they are asked for.

Results are sorted by the place of their last event; those with one last event are a run, in which the place of the
first event falls. So the results of a run that lie inside an interval are its beginning.
"""

from __future__ import annotations

import numpy as np

from eventcube.engine.kernels import Ints, compiled


@compiled
def _until(firsts: Ints, start: int, end: int, low: int) -> int:
    """The first place of a run, from start to end, whose result begins before `low`."""
    while start < end:
        middle = (start + end) >> 1
        if firsts[middle] >= low:
            start = middle + 1
        else:
            end = middle
    return start


@compiled
def pairs_of(
    run_lo: Ints, run_hi: Ints, starts: Ints, firsts: Ints, low: Ints, at: Ints, parent: Ints, place: Ints
) -> int:
    """Write the pairs (asking row, result inside its interval), as many as there is room for; gives how many.

    `at` holds where to go on: row, run, result (-1: from the beginning). It is moved on.
    """
    row, run, result = at[0], at[1], at[2]
    filled: int = 0
    while row < low.size:
        if run < 0:
            run = run_lo[row]
        while run < run_hi[row]:
            start = starts[run]
            end = _until(firsts, start, starts[run + 1], low[row])
            if result > start:
                start = result
            take = min(end - start, parent.size - filled)
            for k in range(take):
                parent[filled + k] = row
                place[filled + k] = start + k
            filled += take
            if start + take < end:
                at[0], at[1], at[2] = row, run, start + take
                return filled
            result = -1
            run += 1
        run = -1
        row += 1
    at[0], at[1], at[2] = row, -1, -1
    return filled


@compiled
def combined(table: Ints, rows: Ints, parent: Ints, place: Ints, shift: int) -> Ints:
    """The table's rows side by side with results: the columns of `table`, then those of `rows`, less the shift."""
    columns, more = table.shape[0], rows.shape[0]
    out = np.empty((columns + more, parent.size), np.int64)
    for c in range(columns):
        for k in range(parent.size):
            out[c, k] = table[c, parent[k]]
    for c in range(more):
        for k in range(parent.size):
            row = rows[c, place[k]]
            out[columns + c, k] = row - shift if row >= 0 else row
    return out


@compiled
def counts_of(run_lo: Ints, run_hi: Ints, starts: Ints, firsts: Ints, low: Ints) -> Ints:
    """For each asking row how many results lie inside its interval."""
    out = np.zeros(low.size, np.int64)
    for row in range(low.size):
        for run in range(run_lo[row], run_hi[row]):
            out[row] += _until(firsts, starts[run], starts[run + 1], low[row]) - starts[run]
    return out


@compiled
def swept_counts(order: Ints, low: Ints, high: Ints, lasts: Ints, firsts: Ints) -> Ints:
    """The same for intervals in ascending order of their ends, all results gone through once (a Fenwick tree)."""
    out = np.zeros(low.size, np.int64)
    if not lasts.size:
        return out
    base = firsts.min()
    tree = np.zeros(firsts.max() - base + 2, np.int64)
    at = 0
    for k in range(order.size):
        row = order[k]
        while at < lasts.size and lasts[at] < high[row]:
            i = firsts[at] - base + 1
            while i < tree.size:
                tree[i] += 1
                i += i & -i
            at += 1
        below = 0
        i = min(max(low[row] - base, 0), tree.size - 1)
        while i > 0:
            below += tree[i]
            i -= i & -i
        out[row] = at - below
    return out


@compiled
def covered(place: Ints, ends: Ints, given: int, size: int) -> tuple[Ints, Ints]:
    """For each interval, in order, the one of those before it that begins no later and reaches furthest.

    `place` are the ranks of the beginnings; `ends` ascends from group to group more than within one. The first `given`
    intervals are there already. Gives its number, -1 for none, and its end; one that reaches far enough is not kept.
    """
    tree = np.full(size + 1, -1, np.int64)
    who = np.full(place.size, -1, np.int64)
    reach = np.full(place.size, -1, np.int64)
    for k in range(place.size):
        best = np.int64(-1)
        if k >= given:
            i = place[k] + 1
            while i > 0:
                if tree[i] >= 0 and (best < 0 or ends[tree[i]] > ends[best]):
                    best = tree[i]
                i -= i & -i
            who[k] = best
            if best >= 0:
                reach[k] = ends[best]
                if ends[best] >= ends[k]:
                    continue
        i = place[k] + 1
        while i <= size:
            if tree[i] < 0 or ends[k] > ends[tree[i]]:
                tree[i] = k
            i += i & -i
    return who, reach


@compiled
def chains(holder: Ints, low: Ints, refers: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Each row with the record it looks into and those that refers to, as far as they reach past its beginning.

    `refers` is the record that a record refers to, -1 for none; one that is referred to ends earlier.
    """
    size = 0
    for row in range(low.size):
        record = holder[row]
        while record >= 0 and ends[record] > low[row]:
            size += 1
            record = refers[record]
    of, records = np.empty(size, np.int64), np.empty(size, np.int64)
    at = 0
    for row in range(low.size):
        record = holder[row]
        while record >= 0 and ends[record] > low[row]:
            of[at] = row
            records[at] = record
            at += 1
            record = refers[record]
    return of, records
