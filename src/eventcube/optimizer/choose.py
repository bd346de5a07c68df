"""The one place that decides: the cheapest alternative, for how long, and what becomes of it in words.

All of it follows from counts, never from time, so that the same run always decides the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import ClassVar, Protocol

from eventcube.optimizer.cost import Cost, Load
from eventcube.optimizer.program import ProgramEstimate, StrategyCost, due_events
from eventcube.optimizer.statistics import Events
from eventcube.plan.physical import PhysicalQuery
from eventcube.plan.steps import Program

# Switch to another program only if it is at least 5 % cheaper.
SWITCH = 1.05
# Calls for which a choice is held, if each costs no more than to decide does, else fewer; to decide for a part.
HOLD_CALLS, DECISION_COST = 15, 12_000.0
# Pairs of a due event and another for which the program is decided. Fewer are not worth an estimate.
HOLD_PAIRS = 1 << 22

# How a join looks at its candidates.
SCAN, INDEX = "scan", "index"


@dataclass(frozen=True, slots=True)
class Costs:
    """What each alternative is expected to cost; those of `at_least` cost more than the cheapest, however much."""

    expected: Mapping[str, float]
    at_least: frozenset[str] = frozenset()


def cheapest(expected: Mapping[str, float], current: str | None) -> str:
    """The cheapest alternative, or the current one if none is so much cheaper that to switch pays."""
    best = _ascending(expected)[0]
    stays = current is not None and current in expected and expected[current] <= SWITCH * expected[best]
    return current if stays and current is not None else best


class Loads(Protocol):
    """What is asked of a part, more exactly the longer it takes to find out."""

    def greatest(self) -> Load:
        """No less than is asked for, from totals alone."""

    def sampled(self) -> Load:
        """What is asked for, as if views had all of it."""

    def complete(self, name: str) -> Load:
        """What is asked for, with what the strategy of that name does not have yet."""


def weigh(strategies: Mapping[str, Cost], least: Mapping[str, float], loads: Loads) -> Costs:
    """What the strategies would cost, as exactly as the choice between them needs it.

    `least` is what each costs however little is asked; it has those that compete for the part.
    """
    order = _ascending(least)
    runner_up = least[order[1]] if len(order) > 1 else inf
    cost = strategies[order[0]](loads.greatest())
    if cost is not None and cost < runner_up:
        return Costs({**least, order[0]: cost}, frozenset(order[1:]))
    floors = costs_of({name: strategies[name] for name in order}, loads.sampled())
    exact: dict[str, float] = {}
    for name in _ascending(floors):
        if exact and floors[name] > min(exact.values()):
            break
        exact.update(costs_of({name: strategies[name]}, loads.complete(name)))
    return Costs({**floors, **exact}, frozenset(floors) - frozenset(exact))


def costs_of(strategies: Mapping[str, Cost], load: Load) -> dict[str, float]:
    """What a load would cost by each of the strategies that compete for it."""
    costs = {name: cost(load) for name, cost in strategies.items()}
    return {name: cost for name, cost in costs.items() if cost is not None}


def _ascending(costs: Mapping[str, float]) -> list[str]:
    return sorted(costs, key=lambda name: (costs[name], name))


class Choice:
    """One choice, made again from time to time: what was expected of each alternative and how often each was taken."""

    # Whether to switch has to pay. A view that is begun pays later, so strategies switch for less.
    inert: ClassVar[bool] = False

    def __init__(self, chosen: str | None = None) -> None:
        self.chosen = chosen
        self._costs = Costs({})
        # Calls under the costs at hand, and what earlier ones come to.
        self._calls = 0
        self._taken: dict[str, int] = {}
        self._expected: dict[str, float] = {}
        self._at_least: set[str] = set()

    def decide(self, costs: Costs) -> None:
        """Choose by these costs from now on."""
        self._add_up()
        exact = {name: cost for name, cost in costs.expected.items() if name not in costs.at_least}
        self._costs, self.chosen = costs, cheapest(exact, self.chosen if self.inert else None)

    def take(self) -> str:
        """The chosen alternative, which is taken once more."""
        assert self.chosen is not None
        self._calls += 1
        return self.chosen

    def _add_up(self) -> None:
        if not self._calls or self.chosen is None:
            return
        for name, cost in self._costs.expected.items():
            self._expected[name] = self._expected.get(name, 0.0) + self._calls * cost
        self._at_least |= self._costs.at_least
        self._taken[self.chosen] = self._taken.get(self.chosen, 0) + self._calls
        self._calls = 0

    @property
    def taken(self) -> dict[str, int]:
        """How often each alternative was taken."""
        self._add_up()
        return dict(self._taken)

    @property
    def expected(self) -> dict[str, float]:
        """What was expected of each alternative over all calls that were weighed, the cheapest first."""
        self._add_up()
        return {name: self._expected[name] for name in _ascending(self._expected)}

    def summary(self) -> str:
        """What was decided, how often, and what was expected of each alternative, in words."""
        taken = ", ".join(f"{name} ({times:,} call{'s' * (times > 1)})" for name, times in sorted(self.taken.items()))
        shown = [f"{name} {'over ' if name in self._at_least else ''}{c:,.0f}" for name, c in self.expected.items()]
        expected = f"estimated {', '.join(shown)}" if shown else "too little to do to weigh others"
        return f"decided for {taken}; {expected}"


class HeldChoice(Choice):
    """A choice that holds for some calls of about the same size, such as a number of outer rows or of due events."""

    def __init__(self, chosen: str | None = None, deciding: float = DECISION_COST) -> None:
        super().__init__(chosen)
        # What it costs to decide.
        self.deciding = deciding
        self._size = self._calls_left = 0

    def holds_for(self, size: int) -> bool:
        """Whether it need not be chosen again."""
        if not self._calls_left or not self._size <= 2 * size <= 4 * self._size:
            return False
        self._calls_left -= 1
        return True

    def settle(self, chosen: str) -> None:
        """Choose without weighing, for one call: there is too little to do."""
        self._add_up()
        self._costs, self.chosen, self._calls_left = Costs({}), chosen, 0

    def decide_for(self, size: int, costs: Costs) -> None:
        """Choose by these costs for some calls."""
        self.decide(costs)
        assert self.chosen is not None
        self._size = size
        self._calls_left = int(HOLD_CALLS * min(1.0, self.deciding / max(1.0, costs.expected[self.chosen])))


class IndexChoice(Choice):
    """The choice of how a join with inequalities looks at its candidates: one by one, or by a min-max index."""

    def __init__(self, conditions: str) -> None:
        super().__init__(SCAN)
        self.conditions = conditions

    def weigh(self, scan: float, index: float) -> None:
        """Choose by what both ways should cost."""
        self.decide(Costs({SCAN: scan, INDEX: index}))

    def takes_index(self) -> bool:
        """Whether the index is chosen, which is taken once more."""
        return self.take() == INDEX


class ProgramChoice(Choice):
    """The choice between the programs of a plan: the first, until there is so much to do that to weigh them pays."""

    inert = True

    def __init__(self, plan: PhysicalQuery, strategy_cost: StrategyCost) -> None:
        self._programs = {alternative.name: alternative.program for alternative in plan.alternatives}
        super().__init__(next(iter(self._programs)))
        self._plan, self._strategy_cost = plan, strategy_cost
        self._pairs = 0

    @property
    def is_open(self) -> bool:
        """Whether there is anything to choose."""
        return len(self._programs) > 1

    def program(self, events: Events, *, materialize: bool) -> Program:
        """The program to run; `materialize`: matches are made, not only counted."""
        if not self.is_open:
            return self._plan.program
        self._pairs += due_events(self._plan, events) * events.size
        if self._pairs > HOLD_PAIRS:
            self._pairs = 0
            self.decide(self.estimate(events, materialize=materialize))
        return self._programs[self.take()]

    def estimate(self, events: Events, *, materialize: bool) -> Costs:
        """What each program would cost over the events."""
        estimate = ProgramEstimate.of_events(self._plan, events, self._strategy_cost, materialize=materialize)
        return Costs({name: estimate.cost(program) for name, program in self._programs.items()})
