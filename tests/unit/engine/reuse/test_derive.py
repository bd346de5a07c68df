"""Which derivations are made for a workload: few for each query, however many others it relates to."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eventcube.engine.reuse.derive import plan_shared
from eventcube.language.parse import parse
from eventcube.options import options
from eventcube.plan.planned import plan_query
from eventcube.plan.workload import WorkloadPlan

COLUMNS = pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.int64(), "k": pa.int64()})


def planned(*texts: str) -> WorkloadPlan:
    chosen = options(type="type", aggregates="enumerate")
    schema = chosen.schema(COLUMNS)
    plans = {f"q{i}": plan_query(parse(f"PATTERN {text}"), schema, chosen) for i, text in enumerate(texts)}
    return plan_shared(plans, None, "auto")


def test_equal_queries_are_computed_from_the_first_of_them() -> None:
    plan = planned(*(f"SEQ(A a, B b) WITHIN 1 s GROUPBY a.k AGG COUNT(*) AS n HAVING n > {i}" for i in range(40)))
    assert not plan.queries["q0"].derivations
    for name in list(plan.queries)[1:]:
        (derivation,) = plan.queries[name].derivations
        assert (derivation.source, derivation.program) == ("q0", ())


def test_equal_queries_of_other_variables_are_computed_from_the_first_of_them() -> None:
    plan = planned(*(f"SEQ(A a{i}, !C c{i}, B b{i}, a{i}.k = b{i}.k) WITHIN 1 s" for i in range(20)))
    assert [len(query.derivations) for query in plan.queries.values()] == [0] + [1] * 19


def test_a_limited_query_is_computed_neither_from_nor_for_others() -> None:
    plan = planned("SEQ(A a, B b) WITHIN 1 s LIMIT 3", "SEQ(A a, B b) WITHIN 1 s", "SEQ(A a, B b) WITHIN 1 s")
    assert [len(query.derivations) for query in plan.queries.values()] == [0, 0, 1]


@pytest.mark.parametrize("varied", ["SEQ(A a, B b, C c) WITHIN {} s", "SEQ(A a, B b, a.x > {}, b.x > {}) WITHIN 1 s"])
def test_the_nearest_sources_are_enough(varied: str) -> None:
    plan = planned(*(varied.format(i + 1, i + 1) for i in range(60)))
    assert max(len(query.derivations) for query in plan.queries.values()) <= 24
