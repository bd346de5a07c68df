"""Sets of ordered values as unions of intervals, as comparisons with constants define them.

A set is a tuple of disjoint intervals in order, each from one cut to another. A cut is just before or just after a
value, or at one of the two ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

# Below all values (-1), above them (1) or at a value (0); the value; whether the cut is after it.
Cut = tuple[int, Any, bool]
Values = tuple[tuple[Cut, Cut], ...]

_LOWEST: Cut = (-1, 0, False)
_HIGHEST: Cut = (1, 0, False)
ALL_VALUES: Values = ((_LOWEST, _HIGHEST),)
NO_VALUES: Values = ()


def satisfying(op: str, value: Any) -> Values:
    """The values x for which `x op value` holds.

    >>> intersect(satisfying(">", 5), satisfying("<", 3))
    ()
    """
    before, after = (0, value, False), (0, value, True)
    match op:
        case "=":
            return ((before, after),)
        case "!=":
            return ((_LOWEST, before), (after, _HIGHEST))
        case "<":
            return ((_LOWEST, before),)
        case "<=":
            return ((_LOWEST, after),)
        case ">":
            return ((after, _HIGHEST),)
        case _:
            return ((before, _HIGHEST),)


def intersect(one: Values, other: Values) -> Values:
    """The values in both sets."""
    found, i, j = [], 0, 0
    while i < len(one) and j < len(other):
        start, end = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if start < end:
            found.append((start, end))
        # The interval that ends first meets no later one.
        i, j = (i + 1, j) if one[i][1] < other[j][1] else (i, j + 1)
    return tuple(found)


def complement(values: Values) -> Values:
    """The values that are not in the set."""
    starts = [_LOWEST, *(end for _, end in values)]
    ends = [*(start for start, _ in values), _HIGHEST]
    return tuple((a, b) for a, b in zip(starts, ends, strict=True) if a < b)


def union(sets: Iterable[Values]) -> Values:
    """The values in at least one of the sets."""
    found: list[tuple[Cut, Cut]] = []
    for start, end in sorted(interval for values in sets for interval in values):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return tuple(found)


def intersect_all(sets: Iterable[Values]) -> Values:
    """The values in all of the sets."""
    return complement(union(map(complement, sets)))
