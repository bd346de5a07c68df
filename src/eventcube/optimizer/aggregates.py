"""Whether to count matches by stages or to make them, for aggregates that can be computed both ways.

Counting costs about the same however many matches there are; making them costs what joins cost, and can cost anything,
as a sample may miss where matches are many. So matches are made within a budget, and counted if it does not last.

The costs are in the unit of `optimizer/cost.py`. `eventcube bench aggregate --part choice` measures both ways and the
one that is taken, over large batches and small pushes, and prints the constants below that would fit the times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, inf, prod
from types import MappingProxyType
from typing import NamedTuple

from eventcube.optimizer.choose import HOLD_CALLS, Costs, HeldChoice
from eventcube.optimizer.program import ProgramEstimate, StrategyCost, found_once
from eventcube.optimizer.statistics import Events
from eventcube.plan.counting import Counting
from eventcube.plan.logical import Results
from eventcube.plan.physical import PhysicalQuery
from eventcube.plan.stages import Stages

# One call that counts matches, and each argument of an aggregate that goes with the counts; one call that makes them.
COUNT_CALL, WEIGHT_CALL, MAKE_CALL = 55_000.0, 110_000.0, 48_000.0
# One event by which matches are counted: to put it in order, in each walk so much for each of its steps and so many
# stages, and what an argument adds to that.
IN_LINE, WALK, AT_ONCE, WEIGHT = 4.0, 5.0, 8, 9.0
# One number of a combination of groups that is added up, and what an argument adds to that.
NUMBER, WEIGHED_NUMBER = 0.3, 0.6
# One match that is folded into its group, and each of its values.
FOLD, FOLD_VALUE = 16.0, 8.0
# To weigh both ways.
WEIGHING = 80_000.0
# Matches are made until that has cost so many times what it costs to count them.
MOST = 2.0

_LEAST = ("MIN", "MAX")
# The two ways, by name.
COUNTING, MAKING = "counting by stages", "making matches"
NOT_SPLIT: Mapping[int, int] = MappingProxyType({})


class Walks(NamedTuple):
    """How often events are walked through: to count matches only, and with the argument of an aggregate."""

    plain: int
    weighed: int


def walking_cost(
    stages: Stages, sizes: Mapping[int, int], walks: Walks, groups: Mapping[int, int] = NOT_SPLIT
) -> float:
    """What walks through stages cost, whose slots have events of these numbers.

    `groups` has the number of groups for each slot by which matches are split.
    """
    plain, weighed = walks
    if not plain + weighed:
        return 0.0
    events = {slot: size / groups.get(slot, 1) for slot, size in sizes.items()}
    steps = sum(events[step.slot] for step in stages.steps) * ceil(stages.final / AT_ONCE)
    cost = COUNT_CALL + weighed * WEIGHT_CALL
    cost += sum(events.values()) * (IN_LINE + weighed * WEIGHT) + (plain + weighed) * steps * WALK
    return prod(groups.values()) * cost


def together_cost(counting: Counting, results: Results, sizes: Mapping[int, int], combinations: int) -> float:
    """What it costs to count many combinations of groups together: numbers are added up for each of them."""
    arguments = {
        (a.function if a.function in _LEAST else "", a.argument) for a in results.agg if a.argument is not None
    }
    plain, weighed = walks = Walks(2, len(arguments))
    numbers = sum(sizes[slot] for slot in counting.stages.last_slots) * counting.stages.final * combinations
    added = (plain + weighed) * NUMBER + weighed * WEIGHED_NUMBER
    return walking_cost(counting.stages, sizes, walks) + numbers * added


def walks_of(counting: Counting, results: Results, *, counted: bool = False) -> Walks:
    """The walks that the aggregates of a query take; `counted`: beside one that tells how many matches there are."""
    summed, least = set(), set()
    alone = not counted
    for aggregate in results.agg:
        if aggregate.argument is None or aggregate.function == "COUNT":
            continue
        expression = aggregate.argument.expression
        slots = frozenset(counting.difference(expression) or ()) & counting.inner
        if counting.inside(expression) is None and not slots:
            continue
        if aggregate.function in _LEAST:
            least.add((aggregate.function, expression))
        else:
            summed.add(expression)
            # To add up what is of one event tells how many matches there are.
            alone &= bool(slots)
    return Walks(int(alone), len(summed) + len(least))


def making_cost(plan: PhysicalQuery, events: Events, strategy_cost: StrategyCost) -> float:
    """What it should cost to make the matches, by the cheapest program, and to fold them into groups."""
    only_counted = plan.sink.results.only_counts
    estimate = ProgramEstimate.of_events(plan, events, strategy_cost, materialize=not only_counted)
    costs = []
    for alternative in plan.alternatives:
        steps = [*estimate.steps(alternative.program)]
        partial = [1.0, *(at.rows for _, at in steps)]
        once = dict(found_once(alternative.program, partial, events.size))
        folding = 0.0 if only_counted else partial[-1] * folding_cost(plan.sink.results)
        costs.append(MAKE_CALL + sum(cost for cost, _ in steps) + sum(once.values()) + folding)
    return min(costs)


def folding_cost(results: Results) -> float:
    """What it costs to fold one match into its group."""
    return FOLD + FOLD_VALUE * (len(results.group_by) + sum(a.argument is not None for a in results.agg))


class OverBudgetError(Exception):
    """More was to be spent than there is."""


class Budget:
    """What may be spent on making matches."""

    def __init__(self, left: float) -> None:
        self.left = left

    def spend(self, cost: float) -> None:
        """Take a cost from what is left; raises OverBudgetError if it is more."""
        self.left -= cost
        if self.left < 0:
            raise OverBudgetError


class AggregateChoice(HeldChoice):
    """The choice between both ways, for calls with about as many due events; counting, if there is little to do.

    It can be for several queries together.
    """

    def __init__(self, queries: int = 1) -> None:
        super().__init__(COUNTING, queries * WEIGHING)
        self._least_making = queries * MAKE_CALL
        # What counting costs over what it costs at least, when that was weighed.
        self._ratio = 1.0
        self._given_up = 0

    def budget(self, counting: float, due: int, weigh: Callable[[], Costs]) -> Budget | None:
        """What may be spent on making the matches; None if they are to be counted.

        `counting` is what that costs at least; `weigh` tells more exactly, and leaves out what cannot be done.
        """
        if counting < self._least_making + self.deciding:
            self.settle(COUNTING)
        elif not self.holds_for(due):
            costs = weigh()
            self.decide_for(due, costs)
            self._ratio = costs.expected.get(COUNTING, inf) / counting
        return Budget(MOST * self._ratio * counting) if self.take() == MAKING else None

    def give_up(self) -> None:
        """Count instead, and for some calls to come: there were more matches than expected."""
        self._given_up += 1
        self._calls -= 1
        self._add_up()
        self.chosen, self._calls, self._calls_left = COUNTING, 1, HOLD_CALLS

    def summary(self) -> str:
        """What was decided, how often, what was expected, and how often that was wrong, in words."""
        times = f"{self._given_up:,} time{'s' * (self._given_up > 1)}"
        wrong = f"; gave up making them {times}, as they were more than estimated" if self._given_up else ""
        return f"{super().summary()}{wrong}"
