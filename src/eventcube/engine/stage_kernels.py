"""The compiled loops that count matches stage by stage, without making them (plan/stages.py).

An event changes how many partial matches are in each stage: a small triangular matrix. The events of a window are the
product of their matrices, and a sliding window keeps the product as two stacks: of what is before `middle` the product
from each event on, of which the first row is enough; of what follows one product, which grows. When the window passes
the middle, all is in the first stack again. So an event costs a few additions, however long the window is, and nothing
is ever subtracted.

Numbers are whole (modulo 2**64) or floats. Beside the number of partial matches an entry can have a sum over them, or
the least value of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from eventcube.engine.compiled import compiled
from eventcube.engine.kernels import Array, Bools, Ints

Bytes = npt.NDArray[np.int8]
Words = npt.NDArray[np.uint64]

# What an entry holds beside the number of partial matches.
COUNT, SUM, LEAST = range(3)
# The columns of the table of steps.
BIT, BARRIER, START, END, ONLY_DUE, FINAL, WEIGHTED, MAP = range(8)
# An event of several stacks, and one of none.
SEVERAL, NONE = -2, -1


@compiled
def mark_rows(codes: Bytes, marks: Words, rows: Ints, bit: int) -> bool:
    """Note the stack with this number for its rows; returns whether one is in another stack, too.

    `codes` has the number of a row's only stack, `marks` a bit for each, if it is not empty.
    """
    shared = False
    word = np.uint64(1) << np.uint64(bit)
    for i in range(rows.size):
        row = rows[i]
        if codes[row] == NONE:
            codes[row] = bit
        else:
            codes[row] = SEVERAL
            shared = True
        if marks.size:
            marks[row] |= word
    return shared


@compiled
def _reset(diagonal: Ints, kind: int, identity: Array, c: Array, s: Array) -> None:
    """The product of no events."""
    c[:] = 0
    if kind != COUNT:
        s[:] = identity[0]
    for stage in range(diagonal.size):
        c[diagonal[stage]] = 1


@compiled
def _add(
    kind: int, c: Array, s: Array, to: int, c_from: Array, s_from: Array, at: int, count: int, weight: Array, put: bool
) -> None:
    """Add to an entry what an entry of another stage becomes by a move of `count` events; `put`: they have weights."""
    n = c_from[at]
    if kind == COUNT:
        c[to] += count * n
    elif kind == SUM:
        c[to] += count * n
        s[to] += count * s_from[at]
        if put and n != 0:
            s[to] += weight[0] * n
    elif n != 0:
        c[to] = 1
        least = s_from[at]
        if put:
            least = min(least, weight[0])
        s[to] = min(s[to], least)


@compiled
def _append(
    kind: int, step: Ints, places: Ints, offsets: Ints, lengths: Ints, c: Array, s: Array, count: int, weight: Array,
    identity: Array,
) -> None:  # fmt: skip
    """Multiply the product of the later events by a step, from the right: a column of it changes."""
    if step[BARRIER]:
        begin, size = offsets[step[START]], lengths[step[START]]
        for t in range(begin, begin + size):
            c[t] = 0
            if kind != COUNT:
                s[t] = identity[0]
        return
    begin, to, size = offsets[step[START]], offsets[step[END]], lengths[step[START]]
    put = step[WEIGHTED] != 0
    at = step[MAP]
    for t in range(size):
        _add(kind, c, s, to + places[at + t], c, s, begin + t, count, weight, put)


@compiled
def _prepend(
    kind: int, step: Ints, reach: Ints, c: Array, s: Array, count: int, weight: Array, identity: Array
) -> None:
    """Multiply the product of the earlier events by a step, from the left: a row of it changes."""
    start = step[START]
    if step[BARRIER]:
        for t in range(start, reach[start]):
            c[start, t] = 0
            if kind != COUNT:
                s[start, t] = identity[0]
        return
    end = step[END]
    put = step[WEIGHTED] != 0
    for t in range(end, reach[end]):
        n = c[end, t]
        if kind == COUNT:
            c[start, t] += count * n
        elif kind == SUM:
            c[start, t] += count * n
            s[start, t] += count * s[end, t]
            if put and n != 0:
                s[start, t] += weight[0] * n
        elif n != 0:
            c[start, t] = 1
            least = s[end, t]
            if put:
                least = min(least, weight[0])
            s[start, t] = min(s[start, t], least)


@compiled
def _walk(kind: int, step: Ints, c: Array, s: Array, count: int, weight: Array, identity: Array) -> None:
    """Take partial matches, by their number in each stage, through a step."""
    if step[BARRIER]:
        c[step[START]] = 0
        if kind != COUNT:
            s[step[START]] = identity[0]
    else:
        _add(kind, c, s, step[END], c, s, step[START], count, weight, step[WEIGHTED] != 0)


@compiled
def _times(
    kind: int, fc: Array, fs: Array, c: Array, s: Array, ancestors: Ints, begin: int, size: int, out: Array, out_s: Array
) -> None:
    """The partial matches of a window in one stage: those of the earlier events by those of the later ones."""
    out[0] = 0
    total = out[0]
    if kind == COUNT:
        for t in range(begin, begin + size):
            total += fc[ancestors[t]] * c[t]
    elif kind == SUM:
        out_s[0] = 0
        amount = out_s[0]
        for t in range(begin, begin + size):
            n, m = fc[ancestors[t]], c[t]
            total += n * m
            # A sum can be infinite, and is then not to be multiplied by 0.
            if n != 0:
                amount += n * s[t]
            if m != 0:
                amount += fs[ancestors[t]] * m
        out_s[0] = amount
    else:
        least = out_s[1]
        for t in range(begin, begin + size):
            if fc[ancestors[t]] != 0 and c[t] != 0:
                total += 1
                least = min(least, min(fs[ancestors[t]], s[t]))
        if total > 1:
            out[0] = 1
            total = out[0]
        out_s[0] = least
    out[0] = total


@compiled
def _count_group(
    begin: int, end: int, codes: Bytes, marks: Words, bits: int, counts: Ints
) -> None:
    """How many events of each stack a group of equal rank has."""
    counts[:] = 0
    for r in range(begin, end):
        if codes[r] >= 0:
            counts[codes[r]] += 1
        else:
            for bit in range(bits):
                counts[bit] += np.int64((marks[r] >> np.uint64(bit)) & np.uint64(1))


@compiled
def _weigh_group(
    kind: int, begin: int, end: int, codes: Bytes, marks: Words, weighted: int, weights: Array, identity: Array,
    weight: Array,
) -> None:  # fmt: skip
    """The sum, or the least, of the weights of a group's events of the weighted stack."""
    weight[0] = identity[0]
    if kind == COUNT or weighted < 0:
        return
    for r in range(begin, end):
        has = codes[r] == weighted
        if codes[r] == SEVERAL:
            has = ((marks[r] >> np.uint64(weighted)) & np.uint64(1)) != 0
        if has:
            if kind == SUM:
                weight[0] += weights[r]
            else:
                weight[0] = min(weight[0], weights[r])


@compiled
def slide(
    kind: int,
    rows: Ints,
    codes: Bytes,
    marks: Words,
    ranks: Ints,
    bounds: Ints,
    due: Bools,
    steps: Ints,
    by_bit: Ints,
    by_bit_at: Ints,
    places: Ints,
    ancestors: Ints,
    offsets: Ints,
    lengths: Ints,
    reach: Ints,
    whole: bool,
    weighted: int,
    weights: Array,
    identity: Array,
    out_row: Ints,
    out_step: Ints,
    out_count: Array,
    out_value: Array,
) -> int:
    """Count the matches that end with each event, or `whole`: with each group of events of equal rank.

    `rows` are events in order, with their stacks (`codes`, `marks`), ranks, and the first row of the window that ends
    there; `due` is empty if all of them are due. `weights` are those of the stack `weighted`. Writes the place, the
    step into the final stage, the number of matches, and their sum or least value; returns how many it wrote.
    """
    stages = offsets.size
    bits = by_bit_at.size - 1
    entries = ancestors.size
    c, s = np.zeros(entries, out_count.dtype), np.zeros(entries if kind != COUNT else 0, out_value.dtype)
    diagonal = offsets + lengths - 1
    _reset(diagonal, kind, identity, c, s)
    # Of the earlier events: the places where the first row changes, and that row from there on.
    before = np.zeros(1, np.int64)
    before_c = np.zeros((1, stages), out_count.dtype)
    before_s = np.zeros((1, stages if kind != COUNT else 0), out_value.dtype)
    at = 0
    square_c = np.zeros((stages, stages), out_count.dtype)
    square_s = np.zeros((stages, stages) if kind != COUNT else (0, 0), out_value.dtype)
    # Partial matches by stage, the final one included.
    row_c, row_s = np.zeros(stages + 1, out_count.dtype), np.zeros(stages + 1, out_value.dtype)
    nothing_c, nothing_s = np.zeros(stages, out_count.dtype), np.full(stages, identity[0], out_value.dtype)
    nothing_c[0] = 1
    value_c, value_s = np.zeros(1, out_count.dtype), np.zeros(2, out_value.dtype)
    value_s[1] = identity[0]
    counts = np.zeros(bits, np.int64)
    weight = np.zeros(1, out_value.dtype)
    # What an event of each stack does: change the first row, end a match.
    opens, ends = np.zeros(bits, np.bool_), np.zeros(bits, np.bool_)
    due_ends = False
    for o in range(steps.shape[0]):
        if steps[o, FINAL]:
            ends[steps[o, BIT]] = True
            due_ends |= steps[o, ONLY_DUE] != 0
        elif steps[o, START] == 0:
            opens[steps[o, BIT]] = True
    front = middle = written = 0
    p = 0
    while p < rows.size:
        q = p + 1
        while q < rows.size and ranks[q] == ranks[p]:
            q += 1
        code = codes[p] if q == p + 1 else SEVERAL
        is_due = due.size == 0 or due[p]
        if code < 0:
            _count_group(p, q, codes, marks, bits, counts)
        _weigh_group(kind, p, q, codes, marks, weighted, weights, identity, weight)
        asks = False
        if is_due or not due_ends:
            if code >= 0:
                asks = ends[code]
            else:
                for bit in range(bits):
                    asks |= ends[bit] and counts[bit] > 0
        r = (q - 1 if whole else p) if asks else q
        while r < q:
            bound = bounds[r]
            while front < r and rows[front] < bound:
                front += 1
            if middle <= front < p:
                # All of the window is of the earlier events now.
                size, b, e = 1, front, front
                while b < p:
                    e = b + 1
                    while e < p and ranks[e] == ranks[b]:
                        e += 1
                    size += e - b if e > b + 1 or codes[b] < 0 else np.int64(opens[codes[b]])
                    b = e
                before = np.empty(size, np.int64)
                before_c = np.zeros((size, stages), out_count.dtype)
                before_s = np.full((size if kind != COUNT else 1, stages if kind != COUNT else 0), identity[0])
                square_c[:] = 0
                square_s[:] = identity[0]
                for stage in range(stages):
                    square_c[stage, stage] = 1
                at = size - 1
                before[at] = p
                before_c[at, 0] = 1
                e = p
                while e > front:
                    b = e - 1
                    while b > front and ranks[b - 1] == ranks[e - 1]:
                        b -= 1
                    open_due = due.size == 0 or due[b]
                    if e == b + 1 and codes[b] >= 0:
                        bit = np.int64(codes[b])
                        _weigh_group(kind, b, e, codes, marks, weighted, weights, identity, weight)
                        for o in range(by_bit_at[bit + 1] - 1, by_bit_at[bit] - 1, -1):
                            step = steps[by_bit[o]]
                            if not step[FINAL] and (open_due or not step[ONLY_DUE]):
                                _prepend(kind, step, reach, square_c, square_s, 1, weight, identity)
                        if opens[bit]:
                            at -= 1
                            before[at] = b
                            before_c[at] = square_c[0]
                            if kind != COUNT:
                                before_s[at] = square_s[0]
                    else:
                        # A window of events can begin within the group: the product from each of its events on.
                        for first in range(e - 1, b - 1, -1):
                            _count_group(first, e, codes, marks, bits, counts)
                            _weigh_group(kind, first, e, codes, marks, weighted, weights, identity, weight)
                            row_c[:] = 0
                            row_s[:] = identity[0]
                            row_c[0] = 1
                            for o in range(steps.shape[0]):
                                step = steps[o]
                                if counts[step[BIT]] and not step[FINAL] and (open_due or not step[ONLY_DUE]):
                                    _walk(kind, step, row_c, row_s, counts[step[BIT]], weight, identity)
                            at -= 1
                            before[at] = first
                            for stage in range(stages):
                                if row_c[stage] != 0 or kind == SUM:
                                    for t in range(stage, reach[stage]):
                                        n, m = row_c[stage], square_c[stage, t]
                                        if kind == COUNT:
                                            before_c[at, t] += n * m
                                        elif kind == SUM:
                                            before_c[at, t] += n * m
                                            if n != 0:
                                                before_s[at, t] += n * square_s[stage, t]
                                            if m != 0:
                                                before_s[at, t] += row_s[stage] * m
                                        elif m != 0:
                                            before_c[at, t] = 1
                                            least = min(row_s[stage], square_s[stage, t])
                                            before_s[at, t] = min(before_s[at, t], least)
                        for o in range(steps.shape[0] - 1, -1, -1):
                            step = steps[o]
                            if counts[step[BIT]] and not step[FINAL] and (open_due or not step[ONLY_DUE]):
                                _prepend(kind, step, reach, square_c, square_s, counts[step[BIT]], weight, identity)
                    e = b
                _reset(diagonal, kind, identity, c, s)
                middle = p
                # They were used for other groups meanwhile.
                if code < 0:
                    _count_group(p, q, codes, marks, bits, counts)
                _weigh_group(kind, p, q, codes, marks, weighted, weights, identity, weight)
            if front < p:
                while before[at] < front:
                    at += 1
                first_c, first_s = before_c[at], before_s[min(at, before_s.shape[0] - 1)]
            else:
                first_c, first_s = nothing_c, nothing_s
            if whole:
                row_s[:] = identity[0]
                row_c[:] = 0
                if front < p:
                    for stage in range(stages):
                        _times(
                            kind, first_c, first_s, c, s, ancestors, offsets[stage], lengths[stage], value_c, value_s
                        )
                        row_c[stage] = value_c[0]
                        if kind != COUNT:
                            row_s[stage] = value_s[0]
                else:
                    row_c[0] = 1
                for o in range(steps.shape[0]):
                    step = steps[o]
                    count = counts[step[BIT]] if code < 0 else np.int64(step[BIT] == code)
                    if count and (is_due or not step[ONLY_DUE]):
                        _walk(kind, step, row_c, row_s, count, weight, identity)
                out_row[written] = r
                out_step[written] = -1
                out_count[written] = row_c[stages]
                if kind != COUNT:
                    out_value[written] = row_s[stages]
                written += 1
            else:
                for o in range(steps.shape[0]):
                    step = steps[o]
                    if not step[FINAL]:
                        continue
                    if codes[r] >= 0:
                        is_of = codes[r] == step[BIT]
                    else:
                        is_of = ((marks[r] >> np.uint64(step[BIT])) & np.uint64(1)) != 0
                    if not is_of:
                        continue
                    stage = step[START]
                    if front < p:
                        _times(
                            kind, first_c, first_s, c, s, ancestors, offsets[stage], lengths[stage], value_c, value_s
                        )
                    else:
                        value_c[0] = nothing_c[stage]
                        value_s[0] = identity[0]
                    out_row[written] = r
                    out_step[written] = o
                    out_count[written] = value_c[0]
                    if kind != COUNT:
                        out_value[written] = value_s[0]
                    written += 1
            r += 1
        if code >= 0:
            for o in range(by_bit_at[code], by_bit_at[code + 1]):
                step = steps[by_bit[o]]
                if not step[FINAL] and (is_due or not step[ONLY_DUE]):
                    _append(kind, step, places, offsets, lengths, c, s, 1, weight, identity)
        else:
            for o in range(steps.shape[0]):
                step = steps[o]
                if counts[step[BIT]] and not step[FINAL] and (is_due or not step[ONLY_DUE]):
                    _append(kind, step, places, offsets, lengths, c, s, counts[step[BIT]], weight, identity)
        p = q
    return written
