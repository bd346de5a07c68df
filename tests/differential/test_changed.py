"""Random changes of the queries of a runtime are what they are meant to be: many, and many answered from the past."""

from __future__ import annotations

from collections import Counter
from random import Random

from tests.differential.changed import measure
from tests.differential.workload import draw_workload


def test_queries_come_and_go_and_are_answered_from_kept_matches() -> None:
    seen: Counter[str] = Counter()
    for seed in range(120):
        rows, counted = measure(draw_workload(Random(seed)), Random(~seed))
        seen.update({"matched": bool(rows), **{name: bool(n) for name, n in counted.items()}})
    assert seen["matched"] >= 0.6 * 120
    assert seen["added"] >= 0.3 * 120
    assert seen["removed"] >= 0.1 * 120
    assert seen["restored"] >= 0.05 * 120
    assert seen["answered"] >= 0.05 * 120
    assert seen["answered with matches"] >= 0.02 * 120
