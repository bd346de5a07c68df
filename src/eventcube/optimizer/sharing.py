"""Which queries to bind from their first components on, because others begin with the same ones.

A program is bound back from the event that makes a match due, which is cheapest for few new events. Queries with the
same first components can instead bind those once for all of them. What is due, and when, stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from eventcube.optimizer.choose import HOLD_PAIRS, SWITCH
from eventcube.optimizer.program import ProgramEstimate, StrategyCost, due_events
from eventcube.optimizer.stack_statistics import StackSlots, StackStatistics
from eventcube.optimizer.statistics import Events
from eventcube.plan.physical import PhysicalQuery
from eventcube.plan.step_tree import Branch, StepTree, shareable, step_tree
from eventcube.plan.steps import Program
from eventcube.plan.workload import Arrangement


@dataclass(frozen=True, slots=True)
class Candidate:
    """A query that can be bound both ways; `materialize`: its matches are made, not only counted."""

    name: str
    plan: PhysicalQuery
    stacks: tuple[int, ...]
    backward: Program
    from_start: Program
    materialize: bool

    @property
    def arrangement(self) -> Arrangement:
        """How the query sees the events; candidates count positions alike, if they do."""
        return Arrangement(self.plan.scan.sort_key, None, self.plan.scan.width, self.plan.forward)

    @property
    def triggers(self) -> tuple[int, ...]:
        """The slots among which is the event that makes a match due."""
        return self.plan.first if self.plan.forward else self.plan.last

    def branch(self, program: Program) -> Branch:
        """A program of the query for a tree."""
        return Branch(self.name, program, self.stacks, shareable(program, counted=not self.materialize))


class SharingChoice:
    """The queries that are bound from the start, decided again from time to time."""

    def __init__(self) -> None:
        self.chosen: frozenset[str] = frozenset()
        # What binding from the start and backward was expected to cost, for each group that was weighed.
        self.expected: dict[tuple[str, ...], tuple[float, float]] = {}
        self._pairs = 0
        self._due = 0

    def summary(self) -> Iterator[str]:
        """What was decided for each group that was weighed, in words."""
        for names, (forward, backward) in self.expected.items():
            way = "from their first components on" if forward * SWITCH < backward else "back from their last events"
            yield (
                f"{', '.join(names)}: bound {way}; "
                f"estimated {forward:,.0f} from the first components on, {backward:,.0f} back from the last events"
            )

    def choose(
        self, candidates: Sequence[Candidate], events: Callable[[str], Events], strategy_cost: StrategyCost
    ) -> frozenset[str]:
        """The names of the queries to bind from the start."""
        due = sum(due_events(c.plan, events(c.name)) for c in candidates)
        self._pairs += due * events(candidates[0].name).size
        if self._pairs > HOLD_PAIRS:
            self._pairs, self._due = 0, due
            self.chosen = self._decide(candidates, events, strategy_cost)
        elif 2 * due < self._due:
            # For so few events, what was chosen for many need not hold, and to weigh it again does not pay.
            self.chosen, self._due = frozenset(), 0
        return self.chosen & {c.name for c in candidates}

    def _decide(
        self, candidates: Sequence[Candidate], events: Callable[[str], Events], strategy_cost: StrategyCost
    ) -> frozenset[str]:
        chosen: set[str] = set()
        by_name = {c.name: c for c in candidates}
        statistics = StackStatistics(by_name, events)
        for names in heads(candidates):
            group = [by_name[name] for name in names]
            estimates = {
                c.name: ProgramEstimate(
                    c.plan,
                    StackSlots(statistics, c, partial(events, c.name)),
                    strategy_cost,
                    materialize=c.materialize,
                )
                for c in group
            }
            forward = _cost(group, {c.name: c.from_start for c in group}, estimates)
            backward = _cost(group, {c.name: c.backward for c in group}, estimates)
            self.expected[names] = forward, backward
            if forward * SWITCH < backward:
                chosen.update(names)
        return frozenset(chosen)


def heads(candidates: Sequence[Candidate]) -> Iterator[tuple[str, ...]]:
    """The groups of queries with the same window that have at least their first two steps from the start in common."""
    for width in dict.fromkeys(c.plan.scan.width for c in candidates):
        tree = step_tree([c.branch(c.from_start) for c in candidates if c.plan.scan.width == width], runs=False)
        for root in tree.nodes:
            for node in root.nodes:
                yield tuple(sorted(leaf.query for leaf in node.all_leaves()))


def _cost(
    group: Sequence[Candidate], programs: Mapping[str, Program], estimates: Mapping[str, ProgramEstimate]
) -> float:
    """What some programs cost together, with equal leading steps counted once."""
    costs = {name: estimates[name].step_costs(program) for name, program in programs.items()}
    tree = step_tree([c.branch(programs[c.name]) for c in group], runs=False)
    return sum(sum(cost) for cost in costs.values()) - _saved(tree, costs)


def _saved(tree: StepTree, costs: Mapping[str, Sequence[float]]) -> float:
    """What is saved by the steps of a tree that several queries share."""
    saved = 0.0
    todo = [(node, 0) for node in tree.nodes]
    while todo:
        node, depth = todo.pop()
        queries = [leaf.query for leaf in node.all_leaves()]
        saved += (len(queries) - 1) * costs[queries[0]][depth]
        todo += [(below, depth + 1) for below in node.nodes]
    return saved
