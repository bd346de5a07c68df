"""The compiled loops that count matches stage by stage, without making them (plan/stages.py).

An event changes how many partial matches are in each stage: a small triangular matrix. The events of a window are the
product of their matrices, and a sliding window keeps the product as two stacks: of the events before `middle` the
product from each one on, of which the first row is enough; of those that follow one product, which grows. When the
window has passed the middle, all is moved into the first stack. So an event costs a few additions, however long the
window is, and nothing is ever subtracted.

An entry of a product is how many partial matches there are, as a whole number modulo 2**64 and as a float that tells
whether the whole number fits; with a sum over them or the least value of them there is one loop for each:

========  ==================================================
COUNT     number
WHOLE     number, and the sum of a whole number, kept likewise
FLOAT     number, and the sum of a float
LEAST     whether there is any, and the least value
========  ==================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eventcube.engine.compiled import compiled
from eventcube.engine.kernels import Array, Bools, Ints
from eventcube.engine.lanes import LANES, add_lanes, add_products, copy_lanes, either_lanes, least_lanes
from eventcube.engine.order_kernels import Bytes, Counts

# Rows of a product, one after the other, each of so many lanes: the numbers `n` whole and `f` float, and the sums or
# least values `s` and, of whole sums, `g` float. What a kind of loop does not use is empty.
Product = tuple[Array, Array, Array, Array]
# From which stage steps lead to which one, the same for a barrier; the steps of each code begin at the last array.
Steps = tuple[Ints, Ints, Ints]

COUNT, WHOLE, FLOAT, LEAST = range(4)


# Parts of the loops. `kind` is a constant there, so that nothing of the other kinds is left. What is done for each
# event is a straight line, and arrays are named once for a loop: Numba counts references to what is named in it.


@compiled
def _entries(kind: int, like: Product, size: int) -> Product:
    """Room for entries."""
    n, f, s, g = like
    return (
        np.empty(size, n.dtype),
        np.empty(size if kind != LEAST else 0, f.dtype),
        np.empty(size if kind != COUNT else 0, s.dtype),
        np.empty(size if kind == WHOLE else 0, g.dtype),
    )


@compiled
def _clear(kind: int, to: Product, at: int, size: int, identity: Any) -> None:
    """No partial matches in some entries."""
    n, f, s, g = to
    for t in range(at, at + size):
        n[t] = 0
        if kind != LEAST:
            f[t] = 0.0
        if kind != COUNT:
            s[t] = identity
        if kind == WHOLE:
            g[t] = 0.0


@compiled
def _set_one(kind: int, to: Product, at: int) -> None:
    """The one partial match in which nothing is bound."""
    to[0][at] = 1
    if kind != LEAST:
        to[1][at] = 1.0


@compiled
def _product_of_none(kind: int, like: Product, stages: int, lanes: int, identity: Any) -> Product:
    """The product of no events, and a row after those of the stages: it takes what ends matches, or has nothing."""
    product = _entries(kind, like, (stages + 1) * lanes)
    _clear(kind, product, 0, (stages + 1) * lanes, identity)
    for stage in range(stages):
        _set_one(kind, product, stage * lanes + stage)
    return product


@compiled
def _copy_lanes(kind: int, product: Product, at: int, to: Product, to_at: int) -> None:
    """Copy some lanes of a row."""
    copy_lanes(to[0], to_at, product[0], at)
    if kind != LEAST:
        copy_lanes(to[1], to_at, product[1], at)
    if kind != COUNT:
        copy_lanes(to[2], to_at, product[2], at)
    if kind == WHOLE:
        copy_lanes(to[3], to_at, product[3], at)


@compiled
def _add_lanes(kind: int, product: Product, to: int, at: int, weight: Any) -> None:
    """Add some lanes of a row to those of another, for an event with a weight."""
    if kind == LEAST:
        least_lanes(product[2], to, product[2], at, weight, product[0])
        either_lanes(product[0], to, product[0], at)
        return
    if kind == WHOLE:
        add_lanes(product[2], to, product[2], at)
        add_products(product[2], to, product[0], at, weight)
        add_lanes(product[3], to, product[3], at)
        add_products(product[3], to, product[1], at, float(weight))
    if kind == FLOAT:
        add_lanes(product[2], to, product[2], at)
        add_products(product[2], to, product[1], at, weight)
    add_lanes(product[0], to, product[0], at)
    add_lanes(product[1], to, product[1], at)


@compiled
def _multiply(kind: int, one: Product, i: int, other: Product, j: int, to: Product, at: int) -> None:
    """Add the product of two entries to a third one."""
    n, f, s, g = to
    if kind == LEAST:
        if one[0][i] != 0 and other[0][j] != 0:
            n[at] = 1
            s[at] = min(s[at], min(one[2][i], other[2][j]))
    elif one[1][i] != 0 and other[1][j] != 0:
        if kind == WHOLE:
            s[at] += one[0][i] * other[2][j] + one[2][i] * other[0][j]
            g[at] += one[1][i] * other[3][j] + one[3][i] * other[1][j]
        elif kind == FLOAT:
            s[at] += one[1][i] * other[2][j] + one[2][i] * other[1][j]
        n[at] += one[0][i] * other[0][j]
        f[at] += one[1][i] * other[1][j]


@compiled
def _take_tied(kind: int, part: Product, alike: Ints, weights: Array, steps: Steps, stages: int, identity: Any) -> None:
    """The first row of the product of events of equal rank, as a column: so many of each code, with these weights."""
    sources, targets, steps_at = steps
    n, f, s, g = part
    _clear(kind, part, 0, stages, identity)
    _set_one(kind, part, 0)
    for k in range(alike.size):
        for o in range(steps_at[k], steps_at[k + 1]):
            source, target, many, weight = sources[o], targets[o], alike[k], weights[k]
            if many == 0 or target == stages:
                continue
            if target == source:
                _clear(kind, part, source, 1, identity)
            elif kind == LEAST:
                if n[source] != 0:
                    n[target] = 1
                    s[target] = min(s[target], min(s[source], weight))
            else:
                if kind == WHOLE:
                    s[target] += many * s[source] + weight * n[source]
                    g[target] += many * g[source] + weight * f[source]
                if kind == FLOAT and f[source] != 0:
                    s[target] += many * s[source] + weight * f[source]
                n[target] += many * n[source]
                f[target] += many * f[source]


@compiled
def _turn(
    kind: int,
    codes: Bytes,
    by_row: Ints,
    ranks: Ints,
    front: int,
    end: int,
    steps: Steps,
    stages: int,
    opens: Bools,
    weights: Array,
    identity: Any,
    none: Product,
    earlier: Product,
    first_rows: Product,
    room: int,
    row_of: Counts,
) -> None:
    """The first row of the product from each event to before `end`, back to the front; `row_of` tells where it is."""
    sources, targets, steps_at = steps
    lanes = (stages + LANES - 1) // LANES * LANES
    cuts = by_row.size > 0
    if cuts:
        alike, alike_weights = np.zeros(opens.size, np.int64), np.full(opens.size, identity)
        part = _entries(kind, earlier, stages)
    for lane in range(0, (stages + 1) * lanes, LANES):
        _copy_lanes(kind, none, lane, earlier, lane)
    row = room - 1
    for lane in range(0, lanes, LANES):
        _copy_lanes(kind, earlier, lane, first_rows, row * lanes + lane)
    high = end
    while high > front:
        low = high - 1
        # Of events of equal rank all are taken, also those before the front.
        while cuts and low > 0 and ranks[low - 1] == ranks[low]:
            low -= 1
        tied = high > low + 1
        if tied:
            alike[:] = 0
            alike_weights[:] = identity
            for j in range(high - 1, low - 1, -1):
                k = codes[by_row[j]]
                weight = weights[by_row[j]] if kind != COUNT else identity
                alike[k] += 1
                alike_weights[k] = min(alike_weights[k], weight) if kind == LEAST else alike_weights[k] + weight
                _take_tied(kind, part, alike, alike_weights, steps, stages, identity)
                row -= 1
                row_of[j] = row
                _clear(kind, first_rows, row * lanes, lanes, identity)
                for u in range(stages):
                    for t in range(u + 1):
                        _multiply(kind, part, t, earlier, t * lanes + u, first_rows, row * lanes + u)
        for j in range(high - 1, low - 1, -1):
            k = codes[j]
            weight = weights[j] if kind != COUNT else identity
            for o in range(steps_at[k], steps_at[k + 1]):
                source, target = sources[o] * lanes, targets[o] * lanes
                if target == source:
                    _clear(kind, earlier, source, lanes, identity)
                else:
                    for lane in range(0, lanes, LANES):
                        _add_lanes(kind, earlier, source + lane, target + lane, weight)
            if not tied:
                if opens[k]:
                    row -= 1
                    for lane in range(0, lanes, LANES):
                        _copy_lanes(kind, earlier, lane, first_rows, row * lanes + lane)
                row_of[j] = row
        high = low


def _loop(kind: int, name: str) -> Any:
    """The loop for one kind of entries."""

    def slide(
        codes: Bytes,
        by_row: Ints,
        ranks: Ints,
        metric: Ints,
        width: int,
        segments: Ints,
        steps: Steps,
        stages: int,
        weights: Array,
        identity: Any,
        out_event: Ints,
        out_step: Ints,
        out: Product,
    ) -> int:
        """Count the matches that end with each event; returns how many numbers were written.

        The events are in an order in which what must be strictly later comes first; `codes` tell which steps each does,
        `metric` is what the window of a `width` is measured in. `segments`: where events of another key begin, and the
        end. A window of events can begin between events of equal rank: `ranks` tells these then, and the metric is in
        order of rows, the i-th of which is that of event `by_row[i]`. Partial matches are in one of `stages`; a step to
        the stage after them ends a match. Every event has a weight, which is the identity for none. Of each result the
        event, the step and the entry are written.
        """
        sources, targets, steps_at = steps
        size, cuts = codes.size, by_row.size > 0
        lanes = (stages + LANES - 1) // LANES * LANES
        # What an event of each code does: change the first row of a product, end matches, or be one by itself.
        opens, ends = np.zeros(steps_at.size - 1, np.bool_), np.zeros(steps_at.size - 1, np.bool_)
        ends_alone = np.zeros(steps_at.size - 1, np.bool_)
        for code in range(steps_at.size - 1):
            for o in range(steps_at[code], steps_at[code + 1]):
                ends[code] |= targets[o] == stages
                ends_alone[code] |= targets[o] == stages and sources[o] == 0
                opens[code] |= targets[o] != stages and sources[o] == 0
        # When the latest partial match in each stage has begun, or later: none ends if that is before the window.
        latest = np.full(stages + 1, -1)
        # The product of the later events has a row for each stage that they lead to; that of the earlier ones, a row
        # for each that they come from, of which the first is kept. Memory is only taken for as many of these as a
        # window has, as they are written from the end on.
        room = 1
        for i in range(size):
            room += cuts or opens[codes[i]]
        none, later, earlier = (
            _product_of_none(kind, out, stages, lanes, identity),
            _product_of_none(kind, out, stages, lanes, identity),
            _product_of_none(kind, out, stages, lanes, identity),
        )
        first_rows, row_of = _entries(kind, out, room * lanes), np.empty(size, np.int32)
        later_n, later_f, later_s, later_g = later
        first_n, first_f, first_s, first_g = first_rows
        out_n, out_f, out_s, out_g = out
        segment = front = middle = written = p = 0
        while p < size:
            q = p + 1
            while cuts and q < size and ranks[q] == ranks[p]:
                q += 1
            for i in range(p, q):
                e = by_row[i] if cuts else i
                if not ends[codes[e]]:
                    continue
                while segments[segment + 1] <= i:
                    segment += 1
                front = max(front, segments[segment])
                while metric[i] - metric[front] > width:
                    front += 1
                # Where a window can begin between events of equal rank, these are taken when all of them were asked.
                end = p if cuts else i
                begun = -1
                for o in range(steps_at[codes[e]], steps_at[codes[e] + 1]):
                    if targets[o] == stages:
                        begun = max(begun, latest[sources[o]])
                if begun < front and not ends_alone[codes[e]]:
                    continue
                if middle <= front and front < end:
                    # All of the window is of the earlier events now.
                    middle = end
                    for lane in range(0, (stages + 1) * lanes, LANES):
                        _copy_lanes(kind, none, lane, later, lane)
                    _turn(
                        kind, codes, by_row, ranks, front, end, steps, stages, opens, weights, identity,
                        none, earlier, first_rows, room, row_of,
                    )  # fmt: skip
                for o in range(steps_at[codes[e]], steps_at[codes[e] + 1]):
                    source = sources[o]
                    if targets[o] != stages or (front >= end and source != 0):
                        continue
                    n, f, s, g = np.int64(0), 0.0, identity, 0.0
                    if front >= end:
                        n, f = np.int64(1), 1.0
                    else:
                        for t in range(source + 1):
                            x, y = row_of[front] * lanes + t, source * lanes + t
                            if kind == LEAST:
                                if first_n[x] != 0 and later_n[y] != 0:
                                    n, f, s = np.int64(1), 1.0, min(s, min(first_s[x], later_s[y]))
                            # Far too many partial matches are infinitely many as a float, not to be multiplied by 0.
                            elif first_f[x] != 0 and later_f[y] != 0:
                                n += first_n[x] * later_n[y]
                                f += first_f[x] * later_f[y]
                                if kind == WHOLE:
                                    s += first_n[x] * later_s[y] + first_s[x] * later_n[y]
                                    g += first_f[x] * later_g[y] + first_g[x] * later_f[y]
                                if kind == FLOAT:
                                    s += first_f[x] * later_s[y] + first_s[x] * later_f[y]
                    if f != 0:
                        out_event[written], out_step[written], out_f[written] = e, o, f
                        if kind != LEAST:
                            out_n[written] = n
                        if kind != COUNT:
                            out_s[written] = s
                        if kind == WHOLE:
                            out_g[written] = g
                        written += 1
            for e in range(p, q):
                weight = weights[e] if kind != COUNT else identity
                latest[0] = q - 1
                for o in range(steps_at[codes[e]], steps_at[codes[e] + 1]):
                    source, target = sources[o], targets[o]
                    if target == source:
                        latest[source] = -1
                        _clear(kind, later, source * lanes, lanes, identity)
                    else:
                        latest[target] = max(latest[target], latest[source])
                        for lane in range(0, lanes, LANES):
                            _add_lanes(kind, later, target * lanes + lane, source * lanes + lane, weight)
            p = q
        return written

    slide.__name__ = slide.__qualname__ = name
    return compiled(slide)


# Numbers of matches, sums and least values of an argument over them, by the events that end matches.
slide_counts, slide_whole_sums, slide_float_sums, slide_least = (
    _loop(COUNT, "slide_counts"),
    _loop(WHOLE, "slide_whole_sums"),
    _loop(FLOAT, "slide_float_sums"),
    _loop(LEAST, "slide_least"),
)
SLIDES = {COUNT: slide_counts, WHOLE: slide_whole_sums, FLOAT: slide_float_sums, LEAST: slide_least}
