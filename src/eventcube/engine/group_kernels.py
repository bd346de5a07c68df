"""The compiled loops that count matches of many groups in one walk over the events (engine/counting/grouped.py).

They do what those of stage_kernels do, with two differences. An entry of a product is a row of numbers, one for each
combination of groups, and an event takes part in some of the combinations: those with its own group. What events end is
added up for each group of such events, as there would be too much of it otherwise.

Windows must not begin between events of equal rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eventcube.engine.compiled import compiled, inlined
from eventcube.engine.kernels import Array, Bools, Ints
from eventcube.engine.order_kernels import Bytes
from eventcube.engine.stage_kernels import Steps

# What an entry of a product holds beside the number of partial matches.
COUNT, SUM, LEAST = range(3)

# Parts of the loops. `kind` is a constant there, so that nothing of the other kinds is left.


@inlined
def _clear(kind: int, n: Array, s: Array, first: int, end: int, identity: Any) -> None:
    """No partial matches in some rows."""
    n[first:end] = 0
    if kind != COUNT:
        s[first:end] = identity


@inlined
def _be_one(kind: int, n: Array, s: Array, stages: int, identity: Any) -> None:
    """The product of no events."""
    _clear(kind, n, s, 0, stages * stages, identity)
    for stage in range(stages):
        n[stage * stages + stage] = 1


@inlined
def _add(kind: int, n: Array, s: Array, to: int, at: int, j: int, weight: Any) -> None:
    """Add an entry to another, for an event with a weight."""
    if kind == COUNT:
        n[to, j] += n[at, j]
    elif kind == SUM:
        # A weight can be infinite, and is then not to be multiplied by 0.
        s[to, j] += s[at, j] + (weight * n[at, j] if n[at, j] != 0 else s.dtype.type(0))
        n[to, j] += n[at, j]
    elif n[at, j] != 0:
        n[to, j] = 1
        s[to, j] = min(s[to, j], min(s[at, j], weight))


@inlined
def _take(
    kind: int, n: Array, s: Array, to: int, at: int, rows: int, step: int, lanes: Ints, weight: Any, identity: Any
) -> None:
    """Take an event to all rows of a stage: every `step`-th from `to` on; a barrier clears them."""
    for row in range(rows):
        i, k = to + row * step, at + row * step
        if i == k:
            _clear(kind, n, s, i, i + 1, identity)
        elif lanes.size:
            for j in lanes:
                _add(kind, n, s, i, k, j, weight)
        else:
            for j in range(n.shape[1]):
                _add(kind, n, s, i, k, j, weight)


def _loop(kind: int, name: str) -> Any:
    """The loop for one kind of entries."""

    def walk(
        codes: Bytes,
        sets: Ints,
        homes: Ints,
        metric: Ints,
        width: int,
        segments: Ints,
        steps: Steps,
        stages: int,
        ends: Bools,
        keeps: Bools,
        sets_at: Ints,
        members: Ints,
        weights: Array,
        at_ends: bool,
        identity: Any,
        out_n: Array,
        out_s: Array,
    ) -> None:
        """Add up the matches that events end: in the row `homes` of an event, a number for each combination.

        The events are in an order in which what must be strictly later comes first. `codes` tell which steps each does,
        `sets` in which combinations: an empty one stands for all. `metric` is what the window of a `width` is measured
        in, and `segments` has the first event of each key, and the end. Partial matches are in one of `stages`; a step
        to the stage after them ends a match: `ends` tells which codes have such steps, and `keeps` from which events on
        the first row of the product is asked for. Every event has a weight, which is the identity for none; with
        `at_ends` only the matches that it ends have it.
        """
        sources, targets, steps_at = steps
        lanes = out_n.shape[1]
        valued = lanes if kind != COUNT else 0
        # The rows of the product of the later events are those of a stage by where they come from, of the earlier ones
        # those of a stage by where they get to. Of these the first stage is kept for events that are asked for.
        later_n, later_s = (
            np.empty((stages * stages, lanes), out_n.dtype),
            np.empty((stages * stages, valued), out_s.dtype),
        )
        early_n, early_s = (
            np.empty((stages * stages, lanes), out_n.dtype),
            np.empty((stages * stages, valued), out_s.dtype),
        )
        room = 1
        first_n, first_s = np.empty((stages, lanes), out_n.dtype), np.empty((stages, valued), out_s.dtype)
        first_of = np.empty(1, np.int64)
        total, value = np.empty(lanes, out_n.dtype), np.empty(valued, out_s.dtype)
        _be_one(kind, later_n, later_s, stages, identity)
        segment = front = middle = at = 0
        for e in range(codes.size):
            code, inside = codes[e], identity
            if kind != COUNT and not at_ends:
                inside = weights[e]
            own = members[sets_at[sets[e]] : sets_at[sets[e] + 1]]
            if ends[code]:
                while segments[segment + 1] <= e:
                    segment += 1
                front = max(front, segments[segment])
                while metric[e] - metric[front] > width:
                    front += 1
                if middle <= front and front < e:
                    # All of the window is of the earlier events now.
                    needed = 1
                    for j in range(front, e):
                        needed += keeps[j]
                    if needed > room:
                        room = 2 * needed
                        first_n = np.empty((room * stages, lanes), out_n.dtype)
                        first_s = np.empty((room * stages, valued), out_s.dtype)
                        first_of = np.empty(room, np.int64)
                    _be_one(kind, later_n, later_s, stages, identity)
                    _be_one(kind, early_n, early_s, stages, identity)
                    at = room
                    for j in range(e, front - 1, -1):
                        if j < e:
                            k, weight = codes[j], identity
                            if kind != COUNT and not at_ends:
                                weight = weights[j]
                            taken = members[sets_at[sets[j]] : sets_at[sets[j] + 1]]
                            for o in range(steps_at[k], steps_at[k + 1]):
                                if targets[o] != stages:
                                    _take(
                                        kind, early_n, early_s, sources[o] * stages, targets[o] * stages, stages, 1,
                                        taken, weight, identity,
                                    )  # fmt: skip
                            if not keeps[j]:
                                continue
                        at -= 1
                        first_of[at] = j
                        first_n[at * stages : (at + 1) * stages] = early_n[:stages]
                        if kind != COUNT:
                            first_s[at * stages : (at + 1) * stages] = early_s[:stages]
                    middle = e
                if front < e:
                    while first_of[at] < front:
                        at += 1
                for o in range(steps_at[code], steps_at[code + 1]):
                    if targets[o] != stages or (front == e and sources[o] != 0):
                        continue
                    total[:] = 0
                    if kind != COUNT:
                        value[:] = identity
                    if front == e:
                        total[:] = 1
                    else:
                        for t in range(sources[o] + 1):
                            x, y = at * stages + t, sources[o] * stages + t
                            for j in range(lanes):
                                a, b = first_n[x, j], later_n[y, j]
                                some = a != 0 and b != 0
                                if kind == LEAST:
                                    if some:
                                        total[j] = 1
                                        value[j] = min(value[j], min(first_s[x, j], later_s[y, j]))
                                else:
                                    # Far too many matches are infinitely many as a float.
                                    total[j] += a * b if some else out_n.dtype.type(0)
                                    if kind == SUM:
                                        more = a * later_s[y, j] + first_s[x, j] * b
                                        value[j] += more if some else identity
                    home, weight = homes[e], identity
                    if kind != COUNT:
                        weight = weights[e]
                    for i in range(own.size if own.size else lanes):
                        j = own[i] if own.size else i
                        if kind == LEAST:
                            if total[j] != 0:
                                out_n[home, j] = 1
                                out_s[home, j] = min(out_s[home, j], min(value[j], weight))
                        else:
                            out_n[home, j] += total[j]
                            if kind == SUM and total[j] != 0:
                                out_s[home, j] += value[j] + weight * total[j]
            for o in range(steps_at[code], steps_at[code + 1]):
                if targets[o] != stages:
                    _take(
                        kind, later_n, later_s, targets[o] * stages, sources[o] * stages, sources[o] + 1, 1, own,
                        inside, identity,
                    )  # fmt: skip

    walk.__name__ = walk.__qualname__ = name
    return compiled(walk)


walk_counts, walk_sums, walk_least = (
    _loop(COUNT, "walk_counts"),
    _loop(SUM, "walk_sums"),
    _loop(LEAST, "walk_least"),
)
WALKS = {COUNT: walk_counts, SUM: walk_sums, LEAST: walk_least}


@compiled
def kept_rows(codes: Bytes, metric: Ints, width: int, segments: Ints, opens: Bools, ends: Bools) -> tuple[Bools, int]:
    """The events from which on a walk asks for the first row of the product; and of how many at a time, at most.

    They are the first ones of windows that end with events which end matches, or the next ones that change that row.
    """
    keeps, fronts = np.zeros(codes.size, np.bool_), np.zeros(codes.size, np.int64)
    segment = front = opened = 0
    for e in range(codes.size):
        if ends[codes[e]]:
            while segments[segment + 1] <= e:
                segment += 1
            front = max(front, segments[segment])
            while metric[e] - metric[front] > width:
                front += 1
            fronts[e] = front
            opened = max(opened, front)
            while opened < e and not opens[codes[opened]]:
                opened += 1
            if opened < e:
                keeps[opened] = True
    middle = most = 0
    for e in range(codes.size):
        if ends[codes[e]] and middle <= fronts[e] and fronts[e] < e:
            middle, kept = e, 1
            for j in range(fronts[e], e):
                kept += keeps[j]
            most = max(most, kept)
    return keeps, most
