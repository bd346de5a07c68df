"""Chase against all plans there are, for up to seven queries."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from eventcube.optimizer.chase import Chase
from eventcube.optimizer.reuse_plan import Own, Steps, Way
from eventcube.plan.workload import Derivation, United

NAMES = [f"q{i}" for i in range(7)]


def way(source: str, target: str, cost: float, *others: str, same_trigger: bool = False, counts: bool = False) -> Way:
    united = tuple(United(other, ()) for other in others)
    derivation = Derivation("case", source, target, (), (), (), (), same_trigger, united=united)
    return Way(derivation, Steps(cost), counts)


def own(alone: float, making_due: float = 0.0, making_all: float = 0.0) -> Own:
    return Own(Steps(alone), making_due, lambda: Steps(alone + making_all))


def draw(seed: int) -> Chase:
    """Random costs of random ways, some of which lead around in circles."""
    rng = Random(seed)
    names = NAMES[: rng.randint(2, 7)]
    costs = {name: own(rng.uniform(5, 20), rng.uniform(0, 4), rng.uniform(0, 8)) for name in names}
    pairs = [pair for pair in itertools.permutations(names, 2) if rng.random() < 0.3]
    ways = [
        way(source, target, rng.uniform(0, 15), same_trigger=rng.random() < 0.5, counts=rng.random() < 0.2)
        for source, target in pairs
    ]
    # The coarser queries come first.
    for target, source, other in itertools.combinations(names, 3):
        if rng.random() < 0.2:
            ways.append(way(source, target, rng.uniform(0, 15), other, same_trigger=True, counts=rng.random() < 0.5))
    return Chase(costs, ways)


def is_plan(plan: dict[str, Way]) -> bool:
    """Whether no query is computed from itself, over whatever others."""
    left = dict(plan)
    while done := [name for name, way in left.items() if left.keys().isdisjoint(way.sources)]:
        for name in done:
            del left[name]
    return not left


def least(chase: Chase) -> float:
    """The cost of the cheapest plan, by trying all."""
    options = [[None, *(w for w in chase.ways if w.derivation.target == name)] for name in chase.own]
    plans = ({w.derivation.target: w for w in chosen if w is not None} for chosen in itertools.product(*options))
    return min(chase.cost(plan) for plan in plans if is_plan(plan))


@pytest.mark.parametrize("seed", range(60))
def test_it_is_close_to_the_cheapest_of_all_plans(seed: int) -> None:
    chase = draw(seed)
    found = chase.cheapest()
    assert is_plan(found)
    assert chase.cost(found) <= chase.cost({}) + 1e-9
    assert chase.cost(found) <= 1.15 * least(chase)


def test_it_is_mostly_the_cheapest_one() -> None:
    cases = [draw(seed) for seed in range(200)]
    exact = [chase.cost(chase.cheapest()) <= least(chase) + 1e-9 for chase in cases]
    assert sum(exact) >= 170


def test_what_a_source_costs_more_is_paid_once() -> None:
    costs = {"p": own(10, 0, 9), **{f"c{i}": own(10) for i in range(4)}}
    ways = [way("p", f"c{i}", 5) for i in range(4)]
    chase = Chase(costs, ways)
    assert chase.cost(chase.cheapest()) == 10 + 9 + 4 * 5
    assert Chase({"p": costs["p"], "c0": costs["c0"]}, ways[:1]).cheapest() == {}


def test_a_union_is_taken_though_its_sources_could_be_computed_from_its_target() -> None:
    costs = {"p": own(10, 2, 2), "a": own(9), "b": own(9), "c": own(9)}
    ways = [*(way("p", name, 7) for name in "abc"), way("a", "p", 0, "b", "c", same_trigger=True, counts=True)]
    chase = Chase(costs, ways)
    found = chase.cheapest()
    assert {target: way.sources for target, way in found.items()} == {"p": ("a", "b", "c")}
    assert chase.cost(found) == 27


def test_the_number_of_matches_alone_costs_nothing_more() -> None:
    chase = Chase({"p": own(10, 8, 9), "c": own(10)}, [way("p", "c", 3, same_trigger=True, counts=True)])
    assert chase.cost(chase.cheapest()) == 13
