"""Random workloads are what they are meant to be: valid, with matches, and of queries that share steps."""

from __future__ import annotations

from collections import Counter
from random import Random

from eventcube.language.parse import parse
from tests.differential.shrink import shrink
from tests.differential.workload import draw_workload, measure
from tests.oracle.brute import positive_variables
from tests.oracle.generate import Workload


def test_most_workloads_match_and_share_steps() -> None:
    seen: Counter[str] = Counter()
    for seed in range(50):
        rows, counted = measure(draw_workload(Random(seed)), Random(~seed))
        seen.update({"matched": bool(rows), **{name: bool(n) for name, n in counted.items()}})
    assert seen["matched"] >= 0.8 * 50
    # Some share nothing on purpose.
    assert seen["trees"] >= 0.35 * 50, "trees with common steps ran"
    assert seen["chunks"] >= 0.3 * 50, "events flowed through them"
    assert seen["from start"] >= 0.05 * 50, "queries were bound from their first components on"


def test_texts_of_queries_can_be_read() -> None:
    for seed in range(100):
        for query in draw_workload(Random(seed)).queries:
            assert positive_variables(parse(query.text).pattern) == positive_variables(query.pattern)


def test_a_failing_workload_is_made_small() -> None:
    def fails(case: Workload) -> bool:
        negated = [q for q in case.queries if "!" in q.text]
        return len(negated) > 1 and any(e.type == "B" for e in case.events)

    case = next(c for c in (draw_workload(Random(seed)) for seed in range(100)) if fails(c))
    small = shrink(case, fails)
    assert len(small.queries) == 2
    assert len(small.events) == 1
    assert all(len(query.text) < 40 for query in small.queries)
