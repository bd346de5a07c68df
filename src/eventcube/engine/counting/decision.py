"""Whether the aggregates of a query are counted by stages or computed from its matches, decided over its events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from math import prod

from eventcube.engine.counting.counts import Found
from eventcube.engine.counting.splits import sampled_groups
from eventcube.engine.execute import Execution
from eventcube.engine.output import Output
from eventcube.engine.rows import Rows
from eventcube.engine.sampling import StoredEvents
from eventcube.optimizer.aggregates import (
    COUNTING,
    MAKING,
    NOT_SPLIT,
    AggregateChoice,
    Budget,
    making_cost,
    together_cost,
    walking_cost,
    walks_of,
)
from eventcube.optimizer.choose import Costs
from eventcube.optimizer.program import StrategyCost
from eventcube.plan.counting import MOST_SPLITS, Counting
from eventcube.plan.workload import WorkloadQuery


class Decision:
    """What was decided for one evaluation of a query, or of several whose matches can be counted together.

    With a `budget` matches are made. `count` counts those of several queries; it gives nothing for one by itself.
    """

    def __init__(
        self, choice: AggregateChoice, budget: Budget | None = None, count: Callable[[], Mapping[str, Found]] = dict
    ) -> None:
        self.budget = budget
        self._choice, self._count = choice, count

    @cached_property
    def counted(self) -> Mapping[str, Found]:
        """How many matches each query has, for each event that ends some, if they are counted together."""
        return self._count()

    def give_up(self) -> None:
        """Make no more matches: the budget is spent."""
        self.budget = None
        self._choice.give_up()


class CountableQuery:
    """A query that can be counted by stages: what both ways to its aggregates cost, and the choice between them."""

    def __init__(self, query: WorkloadQuery, strategy_cost: StrategyCost) -> None:
        self.plan, self._stacks, self._strategy_cost = query.plan, query.stacks, strategy_cost
        assert isinstance(query.plan.sink.counting, Counting)
        self.counting = query.plan.sink.counting
        self._walks = {c: walks_of(self.counting, query.plan.sink.results, counted=c) for c in (False, True)}
        self.choice = AggregateChoice()

    def decide(self, rows: Rows, due: int, execution: Callable[[], Execution]) -> Decision:
        """How to find the aggregates of so many due events; `execution` is one over all events."""
        if not self.plan.sink.by_cost:
            return Decision(self.choice)
        budget = self.choice.budget(self.counting_cost(rows), due, lambda: self.costs(rows, execution()))
        return Decision(self.choice, budget)

    def costs(self, rows: Rows, execution: Execution) -> Costs:
        """What both ways should cost; too many groups to be counted one by one rule out that."""
        groups = sampled_groups(self.counting, Output(self.plan, execution))
        costs = {MAKING: self.making_cost(execution)}
        if groups and not execution.store.cuts:
            costs[COUNTING] = together_cost(
                self.counting, self.plan.sink.results, self._sizes(rows), prod(groups.values())
            )
        elif prod(groups.values()) <= MOST_SPLITS and not self.counting.optional & groups.keys():
            costs[COUNTING] = self.counting_cost(rows, groups)
        return Costs(costs)

    def counting_cost(self, rows: Rows, groups: Mapping[int, int] = NOT_SPLIT, *, counted: bool = False) -> float:
        """What it costs to count by stages, if there are so many groups for each slot by which matches are split.

        `counted`: beside a walk that tells how many matches there are.
        """
        return walking_cost(self.counting.stages, self._sizes(rows), self._walks[counted], groups)

    def _sizes(self, rows: Rows) -> dict[int, int]:
        """How many events each slot has."""
        return {slot: len(rows.stacks[self._stacks[slot]]) for slot in self.counting.stages.slots}

    def making_cost(self, execution: Execution) -> float:
        """What it should cost to make all matches."""
        return making_cost(self.plan, StoredEvents(execution), self._strategy_cost)
