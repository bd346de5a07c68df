"""Random changes of the queries of a runtime are what they are meant to be: many, and many answered from the past."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from tests.differential.changed import draw_drilled, measure
from tests.differential.workload import draw_workload
from tests.oracle.generate import Workload


def _counted(draw: Callable[[Random], Workload], cases: int) -> Counter[str]:
    """In how many cases there was a match, a query was added, and so on."""
    seen: Counter[str] = Counter()
    for seed in range(cases):
        rows, counted = measure(draw(Random(seed)), Random(~seed))
        seen.update({"matched": bool(rows), **{name: bool(n) for name, n in counted.items()}})
    return seen


def test_queries_come_and_go() -> None:
    seen = _counted(draw_workload, 100)
    assert seen["matched"] >= 0.6 * 100
    assert seen["added"] >= 0.3 * 100
    assert seen["removed"] >= 0.1 * 100
    assert seen["restored"] >= 0.05 * 100


def test_drill_downs_are_answered_from_kept_matches() -> None:
    seen = _counted(draw_drilled, 200)
    assert seen["answered"] >= 0.15 * 200
    assert seen["answered with matches"] >= 0.02 * 200
