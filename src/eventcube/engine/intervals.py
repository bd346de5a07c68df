"""Compiled loops over kept results and the intervals of outer rows. Events and intervals are given as addresses.

Results are sorted by their last event; those with one last event are a run, sorted by their first event, latest first.
So the results of a run that lie inside an interval are its beginning.
"""

from __future__ import annotations

import numpy as np

from eventcube.engine.compiled import compiled
from eventcube.engine.kernels import Ints, search
from eventcube.engine.order_kernels import group


@compiled
def _until(firsts: Ints, start: int, end: int, low: int) -> int:
    """The place of the first result of a run, from start to end, that begins before `low`."""
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
    """Write pairs of an interval and a result inside it, as many as there is room for; gives how many.

    `at` holds where to go on: interval, run, result (-1: from the beginning). It is updated.
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
    """For each interval how many results lie inside it."""
    out = np.zeros(low.size, np.int64)
    for row in range(low.size):
        for run in range(run_lo[row], run_hi[row]):
            out[row] += _until(firsts, starts[run], starts[run + 1], low[row]) - starts[run]
    return out


@compiled
def tallies(
    lasts: Ints, begins: Ints, used: Ints, before: int, firsts: Ints, low: Ints, high: Ints, room: int
) -> tuple[Ints, int]:
    """The same straight from the runs, each counted once for all intervals that begin at one address.

    `used` is how much of each run was ever asked for, and is updated; also gives how many results are asked for the
    first time, or -1 if the counts need more room.
    """
    out = np.zeros(low.size, np.int64)
    base = low.min()
    size = low.max() - base + 1
    if size > room:
        return out, -1
    furthest = np.zeros(size, np.int64)
    for row in range(low.size):
        i = low[row] - base
        furthest[i] = max(furthest[i], high[row])
    run_lo, place = np.empty(size, np.int64), np.zeros(size + 1, np.int64)
    for i in range(size):
        run_lo[i] = search(lasts, 0, lasts.size, base + i) if furthest[i] > base + i else 0
        run_hi = search(lasts, run_lo[i], lasts.size, furthest[i]) if furthest[i] > base + i else 0
        place[i + 1] = place[i] + run_hi - run_lo[i]
    if place[size] > room:
        return out, -1
    tally = np.empty(place[size], np.int64)
    fresh: int = 0
    for i in range(size):
        total = 0
        for k in range(place[i], place[i + 1]):
            run = run_lo[i] + k - place[i]
            start = begins[run] - before
            end = begins[run + 1] - before if run + 1 < lasts.size else firsts.size
            found = _until(firsts, start, end, base + i) - start
            total += found
            tally[k] = total
            if found > used[run]:
                fresh += found - used[run]
                used[run] = found
    for row in range(low.size):
        i = low[row] - base
        width = place[i + 1] - place[i]
        runs = search(lasts, run_lo[i], run_lo[i] + width, high[row]) - run_lo[i]
        if runs > 0:
            out[row] = tally[place[i] + runs - 1]
    return out, fresh


@compiled
def block_of(rows: Ints, anchors: Ints, offsets: Ints, since: Ints, seq: Ints, shift: int) -> Ints:
    """Those results that a view does not have, as it keeps them: shifted rows, then the first and the last address.

    The anchor is the last event. An address is a row and the offset of its group; an offset below 0 is no group.
    """
    height = rows.shape[0]
    out = np.empty((height + 2, anchors.size), np.int64)
    size: int = 0
    for k in range(anchors.size):
        first = anchors[k]
        for c in range(height):
            if 0 <= rows[c, k] < first:
                first = rows[c, k]
        if offsets[k] >= 0 and seq[first] < since[anchors[k]]:
            for c in range(height):
                out[c, size] = rows[c, k] + shift if rows[c, k] >= 0 else -1
            out[height, size] = first + offsets[k]
            out[height + 1, size] = anchors[k] + offsets[k]
            size += 1
    return out[:, :size]


@compiled
def run_order(firsts: Ints, lasts: Ints, room: int) -> Ints:
    """The order of results by last event, then by first event, latest first. Empty if that needs more room."""
    latest, earliest = firsts.max(), lasts.min()
    reach, spread = latest - firsts.min() + 1, lasts.max() - earliest + 1
    if max(reach, spread) > room:
        return np.empty(0, np.int64)
    order, _ = group(latest - firsts, np.zeros(reach, np.int64))
    return order if spread == 1 else order[group((lasts - earliest)[order], np.zeros(spread, np.int64))[0]]


@compiled
def first_asked(low: Ints, high: Ints, places: Ints) -> Ints:
    """For each of ascending places the earliest beginning of an interval that holds it; the place after it if none.

    Of the intervals that end after a place the one that begins first decides. All places of another group are larger
    or smaller, so that groups need no treatment of their own.
    """
    out = np.full(places.size, 1 << 62, np.int64)
    for k in range(low.size):
        if low[k] < high[k]:
            i = search(places, 0, places.size, high[k]) - 1
            if i >= 0:
                out[i] = min(out[i], low[k])
    best = np.int64(1 << 62)
    for i in range(places.size - 1, -1, -1):
        best = min(best, out[i])
        out[i] = best if best <= places[i] else places[i] + 1
    return out


@compiled
def unmet(
    low: Ints, high: Ints, places: Ints, rows: Ints, since: Ints, seq: Ints, shift: int, span: int
) -> tuple[Ints, Ints]:
    """The rows of last events inside an interval that reaches back further than is known of them, and its first row.

    `since` is the number of the event from which on all results of a row are known, `seq` the number of each row's
    event. A row is a place less the shift, or modulo `span` where groups have that many places each.
    """
    asked = first_asked(low, high, places)
    found, starts = np.empty(places.size, np.int64), np.empty(places.size, np.int64)
    size: int = 0
    for i in range(places.size):
        if places[i] >= 0 and asked[i] <= places[i]:
            start = asked[i] % span if span else asked[i] - shift
            if seq[start] < since[rows[i]]:
                found[size], starts[size] = rows[i], start
                size += 1
    return found[:size], starts[:size]


@compiled
def swept_counts(order: Ints, low: Ints, high: Ints, lasts: Ints, firsts: Ints) -> Ints:
    """For each interval how many results lie inside it, in one pass over all results (a Fenwick tree).

    `order` sorts the intervals by their ends.
    """
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
    """For each interval, in order, the one before it that begins no later and reaches furthest: its number and its end.

    The number is -1 for none. `place` are the ranks of the beginnings; ends of a later group are larger than all of the
    one before. The first `given` intervals are recorded already; one that another covers whole is not.
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
def past_empty(refers: Ints, held: Ints) -> Ints:
    """For each record the nearest one, of those it refers to in turn, that holds a result; -1 for none.

    `refers` is the record that a record refers to, -1 for none; it comes before it.
    """
    out = np.empty(refers.size, np.int64)
    for record in range(refers.size):
        other = refers[record]
        out[record] = other if other < 0 or held[other] else out[other]
    return out


@compiled
def chain_lengths(holder: Ints, low: Ints, refers: Ints, ends: Ints) -> Ints:
    """How many records `chains` gives for each row."""
    out = np.zeros(low.size, np.int64)
    for row in range(low.size):
        record = holder[row]
        while record >= 0 and ends[record] > low[row]:
            out[row] += 1
            record = refers[record]
    return out


@compiled
def chains(lengths: Ints, holder: Ints, refers: Ints) -> tuple[Ints, Ints]:
    """Each row with the first `lengths` of the record it looks into and those that it refers to in turn."""
    size = lengths.sum()
    of, records = np.empty(size, np.int64), np.empty(size, np.int64)
    at = 0
    for row in range(lengths.size):
        record = holder[row]
        for _ in range(lengths[row]):
            of[at] = row
            records[at] = record
            at += 1
            record = refers[record]
    return of, records
