"""The compiled loops that count matches stage by stage, without making them (plan/stages.py).

An event changes how many partial matches are in each stage: a small triangular matrix. The events of a window are the
product of their matrices, and a sliding window keeps the product as two stacks: of what is before `middle` the product
from each event on, of which the first row is enough; of what follows one product, which grows. When the window has
passed the middle, all is moved into the first stack. So an event costs a few additions, however long the window is, and
nothing is ever subtracted.

Numbers are whole (modulo 2**64) or floats. Beside the number of partial matches an entry can have a sum over them, or
the least value of them: there is one loop for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from eventcube.engine.compiled import compiled, inlined
from eventcube.engine.kernels import Array, Bools, Ints

Bytes = npt.NDArray[np.int8]

# What an entry of a product holds beside the number of partial matches.
COUNT, SUM, LEAST = range(3)


@compiled
def in_order(stacked: Ints, starts: Ints, ranks: Ints, size: int) -> tuple[Ints, Bytes]:
    """The events of several stacks in order: their rows, and the number of the stack of each.

    The stacks lie one after the other in `stacked`, each ascending, from `starts` on. `ranks` has the first row of
    equal rank for each of `size` rows; it is empty if no two are equal. Of such events, those of earlier stacks come
    first.
    """
    at = np.zeros(size + 1, np.int32)
    for i in range(stacked.size):
        at[(ranks[stacked[i]] if ranks.size else stacked[i]) + 1] += 1
    for row in range(size):
        at[row + 1] += at[row]
    rows, codes = np.empty(stacked.size, np.int64), np.empty(stacked.size, np.int8)
    for code in range(starts.size - 1):
        for i in range(starts[code], starts[code + 1]):
            rank = ranks[stacked[i]] if ranks.size else stacked[i]
            place = at[rank]
            rows[place], codes[place] = stacked[i], code
            at[rank] = place + 1
    return rows, codes


# Parts of the loops. `kind` is a constant there, so that nothing of the other kinds is left.


@inlined
def _reset(kind: int, c: Array, s: Array, identity: Any) -> None:
    """The product of no events."""
    for stage in range(c.shape[0]):
        for t in range(c.shape[1]):
            c[stage, t] = 0
            if kind != COUNT:
                s[stage, t] = identity
        c[stage, stage] = 1


@inlined
def _take(
    kind: int, c: Array, s: Array, target: int, source: int, count: Any, put: bool, weight: Any, identity: Any
) -> None:
    """Add a row of a product to another, for `count` events; `put`: they have a weight. A barrier clears its row."""
    if target == source:
        for t in range(c.shape[1]):
            c[source, t] = 0
            if kind != COUNT:
                s[source, t] = identity
    elif kind == COUNT:
        for t in range(c.shape[1]):
            c[target, t] += count * c[source, t]
    elif kind == SUM:
        for t in range(c.shape[1]):
            n = c[source, t]
            s[target, t] += count * s[source, t]
            # A weight can be infinite, and is then not to be multiplied by 0.
            if put and n != 0:
                s[target, t] += weight * n
            c[target, t] += count * n
    else:
        for t in range(c.shape[1]):
            if c[source, t] != 0:
                c[target, t] = 1
                s[target, t] = min(s[target, t], min(s[source, t], weight) if put else s[source, t])


def _loop(kind: int, name: str) -> Any:
    """The loop for one kind of entries."""

    def slide(
        rows: Ints,
        codes: Bytes,
        ranks: Ints,
        bounds: Ints,
        cuts: bool,
        due: Bools,
        sources: Ints,
        targets: Ints,
        only_due: Bools,
        steps_at: Ints,
        final: int,
        weighted: Bools,
        weights: Array,
        identity: Any,
        out_place: Ints,
        out_step: Ints,
        out_count: Array,
        out_value: Array,
    ) -> int:
        """Count the matches that end with each event; returns how many numbers were written.

        `rows` are events in order, `codes` their stacks, `ranks` the first rows of equal rank, `bounds` the first rows
        of the windows that end with them. `cuts`: a window can begin between events of equal rank. `due` is empty if
        all events are due. Steps of a stack, from `steps_at` on, lead from a stage to another, a barrier to the same.
        """
        # The products have a row for each stage that partial matches are in: that of the later events lists where they
        # come from, that of the earlier ones where they get to.
        stages, stacks = final, steps_at.size - 1
        width = stages if kind != COUNT else 0
        one: Any = np.int64(1)
        c, s = np.zeros((stages, stages), out_count.dtype), np.zeros((stages, width), out_value.dtype)
        square_c, square_s = np.zeros((stages, stages), out_count.dtype), np.zeros((stages, width), out_value.dtype)
        _reset(kind, c, s, identity)
        # Of the earlier events: the rows from which on the first row of the product is another, and that row.
        room = 1 << 10
        before = np.empty(room, np.int64)
        before_c, before_s = np.empty((room, stages), out_count.dtype), np.empty((room, width), out_value.dtype)
        at = 0
        # Partial matches by stage, of a part of a group of equal rank, and how many events of each stack it has.
        row_c, row_s = np.zeros((stages, 1), out_count.dtype), np.zeros((stages, min(1, width)), out_value.dtype)
        counts, due_counts, no_order = np.zeros(stacks, np.int64), np.zeros(stacks, np.int64), np.zeros(0, np.int64)
        group_weights = np.zeros(stacks, out_value.dtype)
        zero = c[0, 0] * 0
        # What an event of each stack does: change the first row, end a match, end one if it is due.
        opens, ends = np.zeros(stacks, np.bool_), np.zeros(stacks, np.bool_)
        ends_if_due = np.zeros(stacks, np.bool_)
        for stack in range(stacks):
            for o in range(steps_at[stack], steps_at[stack + 1]):
                if targets[o] == final:
                    ends[stack] |= not only_due[o]
                    ends_if_due[stack] |= only_due[o]
                elif sources[o] == 0:
                    opens[stack] = True
        some_due = due.size > 0
        phases = 2 if cuts else 1
        front: Any = 0
        middle = written = p = 0
        while p < rows.size:
            q = p + 1
            while q < rows.size and ranks[q] == ranks[p]:
                q += 1
            asks = False
            for i in range(p, q):
                asks |= ends[codes[i]] or (ends_if_due[codes[i]] and (not some_due or due[i]))
            # With windows that begin within groups of equal rank, events of a group are asked in order, and then taken.
            for phase in range(phases):
                order = np.argsort(rows[p:q]) if asks and phases == 2 and phase == 0 else no_order
                for i in range(q - p):
                    e: Any = p + (order[i] if order.size else i)
                    code = np.int64(codes[e])
                    is_due = not some_due or due[e]
                    asked = asks and phase == 0 and (ends[code] or (ends_if_due[code] and is_due))
                    if asked if cuts else (asks and i == 0):
                        bound = bounds[e]
                        if cuts:
                            # A group is behind if the next one begins no later than the window.
                            following = front
                            while front < p:
                                while following < p and ranks[following] == ranks[front]:
                                    following += 1
                                if ranks[following] > bound:
                                    break
                                front = following
                        else:
                            while front < p and ranks[front] < bound:
                                front += 1
                        if middle <= front and not (cuts and front == p):
                            # All of the window is of the earlier events now.
                            if p - front >= room:
                                room = 2 * (p - front) + 1
                                before = np.empty(room, np.int64)
                                before_c = np.empty((room, stages), out_count.dtype)
                                before_s = np.empty((room, width), out_value.dtype)
                            _reset(kind, c, s, identity)
                            _reset(kind, square_c, square_s, identity)
                            at = room - 1
                            before[at] = ranks[p]
                            for t in range(stages):
                                before_c[at, t] = square_c[0, t]
                                if kind != COUNT:
                                    before_s[at, t] = square_s[0, t]
                            end = p
                            while end > front:
                                b = end - 1
                                while b > front and ranks[b - 1] == ranks[b]:
                                    b -= 1
                                if cuts and end > b + 1:
                                    # The product from each row of the group on.
                                    counts[:] = 0
                                    due_counts[:] = 0
                                    group_weights[:] = identity
                                    by_row = np.argsort(rows[b:end])
                                    j = end - b - 1
                                    while j >= 0:
                                        row = rows[b + by_row[j]]
                                        while j >= 0 and rows[b + by_row[j]] == row:
                                            place = b + by_row[j]
                                            counts[codes[place]] += 1
                                            due_counts[codes[place]] += not some_due or due[place]
                                            if kind == SUM and weighted[codes[place]]:
                                                group_weights[codes[place]] += weights[place]
                                            elif kind == LEAST and weighted[codes[place]]:
                                                least = min(group_weights[codes[place]], weights[place])
                                                group_weights[codes[place]] = least
                                            j -= 1
                                        for t in range(stages):
                                            row_c[t, 0] = 0
                                            if kind != COUNT:
                                                row_s[t, 0] = identity
                                        row_c[0, 0] = 1
                                        for stack in range(stacks):
                                            for o in range(steps_at[stack], steps_at[stack + 1]):
                                                count = due_counts[stack] if only_due[o] else counts[stack]
                                                if count and targets[o] != final:
                                                    _take(
                                                        kind, row_c, row_s, targets[o], sources[o], count,
                                                        weighted[stack], group_weights[stack], identity,
                                                    )  # fmt: skip
                                        at -= 1
                                        before[at] = row
                                        for u in range(stages):
                                            before_c[at, u] = 0
                                            if kind != COUNT:
                                                before_s[at, u] = identity
                                            for t in range(stages):
                                                n, m = row_c[t, 0], square_c[t, u]
                                                if kind == LEAST:
                                                    if n != 0 and m != 0:
                                                        least = min(row_s[t, 0], square_s[t, u])
                                                        before_c[at, u] = 1
                                                        before_s[at, u] = min(before_s[at, u], least)
                                                    continue
                                                before_c[at, u] += n * m
                                                if kind == SUM and n != 0:
                                                    before_s[at, u] += n * square_s[t, u]
                                                if kind == SUM and m != 0:
                                                    before_s[at, u] += row_s[t, 0] * m
                                opened = False
                                is_tied = end > b + 1
                                while end > b:
                                    end -= 1
                                    k = np.int64(codes[end])
                                    opened |= opens[k]
                                    put = weighted[k]
                                    weight = identity
                                    if kind != COUNT and put:
                                        weight = weights[end]
                                    was_due = not some_due or due[end]
                                    for o in range(steps_at[k], steps_at[k + 1]):
                                        if targets[o] != final and (was_due or not only_due[o]):
                                            _take(
                                                kind, square_c, square_s, sources[o], targets[o], one, put, weight,
                                                identity,
                                            )  # fmt: skip
                                if opened and not (cuts and is_tied):
                                    at -= 1
                                    before[at] = ranks[b]
                                    for t in range(stages):
                                        before_c[at, t] = square_c[0, t]
                                        if kind != COUNT:
                                            before_s[at, t] = square_s[0, t]
                            middle = p
                        if front < p:
                            while before[at] < bound:
                                at += 1
                    if asked:
                        for o in range(steps_at[code], steps_at[code + 1]):
                            if targets[o] != final or (only_due[o] and not is_due):
                                continue
                            stage = sources[o]
                            total, value = zero, identity
                            if cuts and front == p:
                                total += stage == 0
                            elif kind == LEAST:
                                for t in range(stages):
                                    if before_c[at, t] != 0 and c[stage, t] != 0:
                                        total = c[stage, t]
                                        value = min(value, min(before_s[at, t], s[stage, t]))
                            else:
                                for t in range(stages):
                                    n, m = before_c[at, t], c[stage, t]
                                    total += n * m
                                    if kind == SUM and n != 0:
                                        value += n * s[stage, t]
                                    if kind == SUM and m != 0:
                                        value += before_s[at, t] * m
                            out_place[written] = e
                            out_step[written] = o
                            out_count[written] = total
                            if kind != COUNT:
                                out_value[written] = value
                            written += 1
                    if phase == phases - 1:
                        put = weighted[code]
                        weight = identity
                        if kind != COUNT and put:
                            weight = weights[e]
                        for o in range(steps_at[code], steps_at[code + 1]):
                            if targets[o] != final and (is_due or not only_due[o]):
                                _take(kind, c, s, targets[o], sources[o], one, put, weight, identity)
            p = q
        return written

    slide.__name__ = slide.__qualname__ = name
    return compiled(slide)


# Number of matches, sums of an argument over them, least values of one, by the events that end matches.
slide_counts, slide_sums, slide_least = (
    _loop(COUNT, "slide_counts"),
    _loop(SUM, "slide_sums"),
    _loop(LEAST, "slide_least"),
)
SLIDES = {COUNT: slide_counts, SUM: slide_sums, LEAST: slide_least}
