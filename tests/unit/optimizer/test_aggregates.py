from __future__ import annotations

import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.language.parse import parse
from eventcube.optimizer import aggregates
from eventcube.optimizer.aggregates import (
    COUNTING,
    MAKING,
    WEIGHING,
    AggregateChoice,
    Budget,
    OverBudgetError,
    Walks,
    walking_cost,
    walks_of,
)
from eventcube.optimizer.choose import HOLD_CALLS, Costs
from eventcube.options import options
from eventcube.plan.counting import Counting
from eventcube.plan.planned import plan_query

EVENTS = pa.table(
    {
        "ts": pa.array(range(600), pa.timestamp("us")),
        "kind": ["A", "B", "C"] * 200,
        "x": range(600),
        "y": [0.5 * i for i in range(600)],
    }
)
# How often the events are walked through for each list of aggregates of SEQ(A a, B b, C c).
WALKS = {
    "COUNT(*)": 1,
    "COUNT(*), SUM(c.x)": 1,
    "COUNT(*), SUM(b.x)": 1,
    "SUM(b.x), AVG(b.x), SUM(a.x)": 1,
    "SUM(a.x), AVG(b.x), SUM(c.x)": 2,
    "MIN(b.x)": 2,
    "MIN(b.x), MAX(b.x), MAX(c.y)": 3,
    "AVG(c.ts - a.ts)": 2,
    "AVG(b.ts - a.ts), SUM(b.y)": 2,
    "COUNT(b.x)": 1,
}


def planned(text: str) -> tuple[Counting, Walks, Walks]:
    """How a query is counted, and the walks that it should take, alone and beside one that tells the matches."""
    chosen = options(type="kind")
    sink = plan_query(parse(text), chosen.schema(EVENTS.schema), chosen).physical.sink
    assert isinstance(sink.counting, Counting)
    return sink.counting, walks_of(sink.counting, sink.results), walks_of(sink.counting, sink.results, counted=True)


@pytest.mark.parametrize("aggregates", WALKS)
def test_walks_are_as_many_as_are_taken(aggregates: str) -> None:
    text = f"PATTERN SEQ(A a, B b, C c) AGG {aggregates}"
    _, alone, beside = planned(text)
    assert sum(alone) == WALKS[aggregates]
    assert beside == Walks(0, alone.weighed)
    runtime = ec.Runtime(text, type="kind", aggregates="count", advise=False)
    for _ in runtime.push(EVENTS):
        pass
    # The last event is held back, as others may have its time.
    assert runtime.counters["events_counted"] == sum(alone) * (EVENTS.num_rows - 1)


def test_counting_costs_more_with_more_events_stages_walks_and_groups() -> None:
    parts = [f"{kind} v{i}" for i, kind in enumerate("ABCABCABCABC")]
    short, long = (planned(f"PATTERN SEQ({', '.join(parts[:n])}) AGG COUNT(*)")[0].stages for n in (3, len(parts)))
    few, many = {0: 10, 1: 10, 2: 10}, {0: 20, 1: 20, 2: 20}
    alike = {slot: 60 // len(parts) for slot in range(len(parts))}
    costs = [
        walking_cost(short, few, Walks(0, 0)),
        walking_cost(short, few, Walks(1, 0)),
        walking_cost(short, many, Walks(1, 0)),
        walking_cost(long, alike, Walks(1, 0)),
        walking_cost(long, alike, Walks(1, 1)),
        walking_cost(long, alike, Walks(1, 1), {1: 3}),
    ]
    assert costs == sorted(set(costs))
    assert costs[0] == 0


def test_a_budget_is_spent() -> None:
    budget = Budget(2.0)
    budget.spend(2.0)
    with pytest.raises(OverBudgetError):
        budget.spend(0.1)


def test_what_may_be_spent_follows_from_what_counting_costs() -> None:
    choice, asked = AggregateChoice(), 0

    def weigh() -> Costs:
        nonlocal asked
        asked += 1
        return Costs({COUNTING: 3 * WEIGHING, MAKING: WEIGHING})

    assert choice.budget(WEIGHING, 10, weigh) is None
    assert asked == 0
    for _ in range(1 + HOLD_CALLS):
        budget = choice.budget(2 * WEIGHING, 10, weigh)
        assert budget is not None
        assert budget.left == aggregates.MOST * 3 * WEIGHING
    assert asked == 1
    assert choice.taken == {COUNTING: 1, MAKING: 1 + HOLD_CALLS}


def test_what_cannot_be_counted_is_made_whatever_it_costs() -> None:
    budget = AggregateChoice().budget(3 * WEIGHING, 10, lambda: Costs({MAKING: 1e300}))
    assert budget is not None
    budget.spend(1e308)


def test_giving_up_holds_for_some_calls() -> None:
    choice = AggregateChoice()
    cheap = Costs({COUNTING: 3 * WEIGHING, MAKING: WEIGHING})
    assert choice.budget(3 * WEIGHING, 10, lambda: cheap) is not None
    choice.give_up()
    assert [choice.budget(3 * WEIGHING, 10, lambda: cheap) for _ in range(HOLD_CALLS)] == [None] * HOLD_CALLS
    assert choice.budget(3 * WEIGHING, 10, lambda: cheap) is not None
    assert choice.taken == {COUNTING: 1 + HOLD_CALLS, MAKING: 1}
    assert choice.summary().endswith("; gave up making them 1 time, as they were more than estimated")
