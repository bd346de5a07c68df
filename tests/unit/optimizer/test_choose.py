from __future__ import annotations

from dataclasses import replace

import pytest

from eventcube.optimizer import choose
from eventcube.optimizer.choose import Choice, Costs, HeldChoice, cheapest, weigh
from eventcube.optimizer.cost import Load, PartProfile

PART = PartProfile(False, (1, 2), (2,), True, 2, False)
LOAD = Load(PART, 10.0, True, partial=(4.0, 8.0), extended=(4.0,), windowed=(9.0,), missing=4.0)


class Loads:
    """Loads of which it is noted what was asked for."""

    def __init__(self, *missing: float) -> None:
        self.asked: list[str] = []
        self.missing = dict(zip(("a", "b", "c"), missing, strict=False))

    def greatest(self) -> Load:
        self.asked.append("greatest")
        return replace(LOAD, outer_rows=100.0, missing=1_000.0)

    def sampled(self) -> Load:
        self.asked.append("sampled")
        return replace(LOAD, missing=0.0)

    def complete(self, name: str) -> Load:
        self.asked.append(name)
        return replace(LOAD, missing=self.missing[name])


def test_the_cheapest_wins_and_a_switch_must_pay() -> None:
    assert cheapest({"a": 2.0, "b": 1.0}, None) == "b"
    assert cheapest({"a": 2.0, "b": 1.0}, "gone") == "b"
    assert cheapest({"a": 104.0, "b": 100.0}, "a") == "a"
    assert cheapest({"a": 106.0, "b": 100.0}, "a") == "b"
    assert cheapest({"b": 1.0, "a": 1.0}, None) == "a"


def test_nothing_is_sampled_if_totals_decide() -> None:
    loads = Loads()
    strategies = {"a": lambda load: 5.0 + load.outer_rows, "b": lambda load: 200.0 + load.missing}
    costs = weigh(strategies, {"a": 5.0, "b": 200.0}, loads)
    assert loads.asked == ["greatest"]
    assert costs == Costs({"a": 105.0, "b": 200.0}, frozenset({"b"}))


def test_what_views_lack_is_counted_only_where_they_could_win() -> None:
    loads = Loads(0.0, 70.0, 900.0)
    strategies = {
        "a": lambda load: 100.0 + load.outer_rows,
        "b": lambda load: 20.0 + load.missing,
        "c": lambda load: 120.0 + load.missing,
    }
    costs = weigh(strategies, {"a": 100.0, "b": 20.0, "c": 120.0}, loads)
    assert costs.expected["b"] == 90.0
    assert cheapest({n: c for n, c in costs.expected.items() if n not in costs.at_least}, None) == "b"
    assert "c" in costs.at_least
    assert "c" not in loads.asked


def test_a_strategy_that_does_not_compete_is_left_out() -> None:
    strategies = {"a": lambda load: load.outer_rows, "b": lambda load: None}
    least = choose.costs_of(strategies, LOAD)
    assert least == {"a": 10.0}
    assert weigh(strategies, least, Loads()).expected == {"a": 100.0}


def test_a_decision_holds_for_some_calls_with_about_as_many_outer_rows() -> None:
    choice = HeldChoice()
    assert not choice.holds_for(10)
    choice.decide_for(10, Costs({"a": 1.0}))
    assert not choice.holds_for(100)
    assert [choice.holds_for(n) for n in (10, 5, 20)] == [True] * 3
    choice.decide_for(10, Costs({"a": 10 * choose.DECISION_COST}))
    assert [choice.holds_for(10) for _ in range(3)] == [True, False, False]


def test_what_was_expected_and_taken_adds_up_over_calls() -> None:
    choice = Choice()
    choice.decide(Costs({"a": 10.0, "b": 20.0}, frozenset({"b"})))
    assert [choice.take() for _ in range(3)] == ["a"] * 3
    choice.decide(Costs({"a": 50.0, "b": 20.0}))
    assert choice.take() == "b"
    assert choice.taken == {"a": 3, "b": 1}
    assert choice.expected == {"a": 80.0, "b": 80.0}
    assert choice.summary() == "decided for a (3 calls), b (1 call); estimated a 80, b over 80"


@pytest.mark.parametrize("name", ["outer_rows", "missing"])
def test_costs_grow_with_what_is_asked(name: str) -> None:
    more = replace(LOAD, **{name: 1_000.0})
    assert more.recompute_cost() >= LOAD.recompute_cost()
    assert more.look_up_cost() >= LOAD.look_up_cost()
    assert more.update_cost() >= LOAD.update_cost()
