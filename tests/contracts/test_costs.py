"""What the optimizer promises: every strategy is considered, choices are shown as they are made, and all is counted."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest
from tests.contracts.test_strategies import EVERY, NESTED, trades

import eventcube as ec
from eventcube.engine.views import strategy
from eventcube.engine.views.auto import answering
from eventcube.engine.views.iterative import Iterative
from eventcube.language.parse import parse
from eventcube.match import run
from eventcube.optimizer import choose
from eventcube.optimizer.cost import Load, PartProfile
from eventcube.options import options
from eventcube.plan.equal_parts import parts_with_strategies
from eventcube.plan.planned import plan_query
from eventcube.plan.steps import Part

POSITIVE = "SEQ(A a, SEQ(B b, C c), D d, E e) WITHIN 60 ms"
NEGATED = "SEQ(A a, !SEQ(B b, C c), D d) WITHIN 60 ms"
RARE = "SEQ(A a, SEQ(B b, C c), D d) WITHIN 400 ms"


def parts(query: str) -> list[Part]:
    events, chosen = trades(1), options(type="type")
    plan = plan_query(parse(f"PATTERN {query}"), chosen.schema(events.schema), chosen)
    return list(parts_with_strategies(plan.physical.program))


def load(part: Part, outer_rows: float, events: float, *, materialize: bool) -> Load:
    profile = PartProfile.of(part)
    size = len(profile.slots)
    partial = tuple(events**k for k in range(1, size + 1))
    return Load(profile, outer_rows, materialize, partial=partial, extended=partial[1:], windowed=partial[1:], ends=1.0)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("query", NESTED)
def test_every_strategy_states_a_finite_cost_of_what_it_can_answer(name: str, query: str) -> None:
    for part in parts(query):
        costs = []
        for outer_rows, events in ((0.0, 0.0), (1.0, 3.0), (1e6, 3.0), (1e6, 1e3)):
            for materialize in (False, True):
                cost = strategy.strategies()[name].cost(load(part, outer_rows, events, materialize=materialize))
                costs.append(cost)
        assert all(cost is None for cost in costs) or all(cost is not None and 0 <= cost < math.inf for cost in costs)
        competes = name in answering(part) or name in ("auto", "object")
        assert competes == (costs[0] is not None)
        assert competes or name == "rewrite"


@pytest.fixture
def added() -> Iterator[Callable[[str, type[strategy.Strategy]], None]]:
    """Registers strategies for the time of a test."""
    before = strategy.strategies()

    def add(name: str, made: type[strategy.Strategy]) -> None:
        strategy.register(name)(made)

    yield add
    for name in set(strategy._registered) - set(before):
        del strategy._registered[name]


@pytest.mark.parametrize("query", [POSITIVE, NEGATED])
def test_a_new_strategy_is_chosen_if_it_costs_least_with_no_other_change(
    query: str, added: Callable[[str, type[strategy.Strategy]], None]
) -> None:
    class Toy(Iterative):
        made = 0

        def __init__(self, part: Part) -> None:
            super().__init__(part)
            Toy.made += 1

        @classmethod
        def cost(cls, load: Load) -> float | None:
            return 0.0

    added("toy", Toy)
    events = trades(300)
    expected = ec.match(events, f"PATTERN {query}", type="type", strategy="iterative")
    assert Toy.made == 0
    assert ec.match(events, f"PATTERN {query}", type="type").equals(expected)
    assert Toy.made == 1
    shown = ec.explain(f"PATTERN {query}", events, type="type")
    assert re.search(r"\(b, c\): decided for toy \(\d+ calls?\); estimated toy 0, ", shown)


def test_a_strategy_that_does_not_compete_is_never_chosen(
    added: Callable[[str, type[strategy.Strategy]], None],
) -> None:
    class Shy(Iterative):
        @classmethod
        def cost(cls, load: Load) -> float | None:
            return None

    added("shy", Shy)
    assert all("shy" not in answering(part) for part in parts(POSITIVE))
    assert "shy" not in ec.explain(f"PATTERN {POSITIVE}", trades(300), type="type")


def rare(count: int) -> pa.Table:
    types = np.random.default_rng(3).choice(list("ABCD"), count, p=[0.495, 0.005, 0.005, 0.495])
    return pa.table({"ts": np.arange(count) * 1000, "type": types})


def chosen(text: str) -> list[str]:
    """What was chosen, line by line, without costs."""
    return re.findall(r"^ +(.+: decided for [^;]+);", text, re.MULTILINE)


@pytest.mark.parametrize("end", ["", " AGG COUNT(*)", " LIMIT 3", " LIMIT 100000"])
@pytest.mark.parametrize(
    ("query", "events"),
    [(POSITIVE, trades(3000)), (NEGATED, trades(3000)), (RARE, rare(20_000))],
    ids=["positive", "negated", "rare"],
)
def test_explain_shows_the_choices_that_are_made(query: str, events: pa.Table, end: str) -> None:
    text = f"PATTERN {query}{end}"
    runtime = ec.Runtime(text, type="type", schema=events.schema, aggregates="enumerate")
    for _ in run(runtime, events):
        pass
    shown = ec.explain(text, events, type="type", aggregates="enumerate")
    assert f"over the first {events.num_rows:,} events" in shown
    assert chosen(shown) == chosen(runtime.report())
    assert chosen(shown)


@pytest.mark.parametrize("end", ["", " AGG COUNT(*)", " LIMIT 2000000"])
def test_rare_inner_events_are_bound_first_whatever_becomes_of_matches(end: str) -> None:
    shown = ec.explain(f"PATTERN {RARE}{end}", rare(20_000), type="type", aggregates="enumerate")
    assert re.search(
        r"program: decided for flat \(\d+ calls?\)(, nested \(\d+ calls?\))?; estimated flat [\d,]+, nested", shown
    )


def test_a_limit_gives_the_same_matches_by_either_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "HOLD_PAIRS", 0)
    results = []
    for program in ("nested", "flat"):
        monkeypatch.setattr(choose, "cheapest", lambda expected, _, p=program: p if p in expected else min(expected))
        results.append(ec.match(rare(20_000), f"PATTERN {RARE} LIMIT 50", type="type"))
        assert f"program: decided for {program}" in ec.explain(f"PATTERN {RARE} LIMIT 50", rare(20_000), type="type")
    assert results[0].num_rows == 50
    assert results[0].equals(results[1])


def test_the_same_events_are_explained_the_same() -> None:
    assert len({str(ec.explain(f"PATTERN {POSITIVE}", trades(2000), type="type")) for _ in range(3)}) == 1


def test_explaining_a_query_with_very_many_matches_runs_it_over_few_events() -> None:
    query = "PATTERN SEQ(A a, SEQ(B b, C c), D d, E e, A f, B g) WITHIN 1 day"
    shown = ec.explain(query, trades(20_000), type="type")
    found = re.search(r"over the first ([\d,]+) events", shown)
    assert found is not None
    assert int(found[1].replace(",", "")) < 2_000


def test_without_events_the_alternatives_are_listed() -> None:
    shown = ec.explain(f"PATTERN {NEGATED}", trades(1).schema, type="type")
    assert shown.endswith(
        "choices     by cost; ec.explain over events in this process, or analyze, estimates it\n"
        "  (b, c): aggressive, balanced, iterative, passive, rewrite, semantic"
    )
    assert "choices" not in ec.explain(f"PATTERN {NEGATED}", trades(10), type="type", strategy="balanced")
