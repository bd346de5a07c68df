"""What queries of a workload cost by themselves and from each other, over the events of one evaluation.

The costs are those of Liu et al. 2011 (E-Cube), eq. 4 to 11, for steps over sets of partial matches: C_compute(q) =
what its program costs; C_compute(q|p) from general to specific = what the steps cost that complete |R_p| matches of the
source; from specific to general = what it costs to drop twins, and the deltas.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Protocol

from eventcube.optimizer.chase import Chase, Own, Steps, Way
from eventcube.optimizer.cost import BY_STATE, KEEP_LATEST
from eventcube.optimizer.program import ProgramEstimate, StrategyCost
from eventcube.optimizer.statistics import Events
from eventcube.plan.step_tree import Branch, shareable, step_tree
from eventcube.plan.steps import Narrow, Program
from eventcube.plan.workload import Arrangement, Derivation, StackKey, WorkloadQuery

# The programs of a query, by number.
_BACKWARD, _FROM_START, _ALL = range(3)


class Workings(Protocol):
    """What the optimizer may ask of the engine about one evaluation."""

    @property
    def size(self) -> int:
        """How many events there are."""

    @property
    def due(self) -> int:
        """How many of them are due."""

    def events(self, name: str, stacks: tuple[StackKey, ...] | None = None) -> Events:
        """The events as a query sees them, or as it does with other stacks."""

    def materializes(self, name: str) -> bool:
        """Whether the matches of a query are made, not only counted."""

    def strategy_cost(self, name: str) -> StrategyCost:
        """What strategies for the nested parts of a query cost."""


def costs(names: Sequence[str], queries: Mapping[str, WorkloadQuery], workings: Workings) -> Chase:
    """What queries cost by themselves and from each other; sources that have nothing due count, too."""
    ways = [d for name in names for d in queries[name].derivations]
    wanted = {*names, *(d.source for d in ways)}
    estimates = _Estimates({name: query for name, query in queries.items() if name in wanted}, workings)
    return Chase(estimates.all_own(), [estimates.way(derivation) for derivation in ways])


class _Estimates:
    """Costs of programs and derivations over the events of one evaluation."""

    def __init__(self, queries: Mapping[str, WorkloadQuery], workings: Workings) -> None:
        self._queries, self._workings = queries, workings
        self._known: dict[tuple[str, bool], ProgramEstimate] = {}
        self._results: dict[tuple[str, bool], float] = {}

    def _of(self, name: str, *, made: bool | None = None) -> ProgramEstimate:
        """The estimate of a query whose matches are made, or counted, or as it is asked."""
        materialize = self._workings.materializes(name) if made is None else made
        if (name, materialize) not in self._known:
            plan, cost = self._queries[name].plan, self._workings.strategy_cost(name)
            estimate = ProgramEstimate(plan, self._workings.events(name), cost, materialize=materialize)
            self._known[name, materialize] = estimate
        return self._known[name, materialize]

    def all_own(self) -> dict[str, Own]:
        """What each query costs by itself."""
        shared = shared_steps(self._queries, self._workings)
        return {name: self._own(name, query, shared) for name, query in self._queries.items()}

    def _own(self, name: str, query: WorkloadQuery, shared: Mapping[tuple[str, int], Sequence[int]]) -> Own:
        as_asked, made = self._of(name), self._of(name, made=True)

        def steps(estimate: ProgramEstimate, program: Program, number: int) -> Steps:
            costs = estimate.step_costs(program)
            return Steps(sum(costs), tuple(zip(shared.get((name, number), ()), costs, strict=False)))

        alone = steps(as_asked, query.plan.program, _BACKWARD)
        making = made.cost(query.plan.program) - alone.cost
        all_matches = None if query.unrestricted is None else steps(made, query.unrestricted, _ALL)
        if query.from_start is None:
            return Own(alone, making, all_matches)
        group = query.arrangement, tuple(query.stacks[slot] for slot in query.plan.positive[:2])
        return Own(alone, making, all_matches, steps(as_asked, query.from_start, _FROM_START), group)

    def _matches(self, name: str, *, due: bool) -> float:
        """How many matches a query has, due or all."""
        if (name, due) not in self._results:
            query, estimate = self._queries[name], self._of(name, made=True)
            program = query.plan.program if due or query.unrestricted is None else query.unrestricted
            self._results[name, due] = estimate.results(program)
        return self._results[name, due]

    def way(self, derivation: Derivation) -> Way:
        """What a derivation costs."""
        target = derivation.target
        matches = self._matches(derivation.source, due=derivation.same_trigger)
        at_once = not derivation.program and not derivation.source_steps
        program = derivation.program if derivation.same_trigger else derivation.due_program
        bound, narrowed = len(derivation.slots), self._narrowed(derivation)
        taken = matches * KEEP_LATEST * len(derivation.source_steps)
        costs = [step for step, _ in self._of(target).steps(program, matches, bound, narrowed)]
        making = 0.0
        if program and not self._workings.materializes(target):
            making = sum(step for step, _ in self._of(target, made=True).steps(program, matches, bound, narrowed))
            making -= sum(costs)
        deltas = [self._delta(derivation, number) for number in range(len(derivation.deltas))]
        total = taken + sum(costs) + sum(cost for cost, _ in deltas)
        return Way(
            derivation,
            Steps(total, tuple(zip(_narrowing(derivation, program), costs, strict=False))),
            at_once and not self._workings.materializes(target),
            making + sum(more for _, more in deltas),
            matches * BY_STATE if derivation.same_trigger else 0.0,
        )

    def _delta(self, derivation: Derivation, number: int) -> tuple[float, float]:
        """What a delta costs as it is asked, and what it costs more to make its matches."""
        name, delta = derivation.target, derivation.deltas[number]
        plan, strategy_cost = self._queries[name].plan, self._workings.strategy_cost(name)
        events = self._workings.events(name, delta.stacks)
        made = ProgramEstimate(plan, events, strategy_cost, materialize=True)
        if self._workings.materializes(name):
            return made.cost(delta.program), 0.0
        counted = ProgramEstimate(plan, events, strategy_cost, materialize=False).cost(delta.program)
        return counted, made.cost(delta.program) - counted

    def _narrowed(self, derivation: Derivation) -> dict[int, float]:
        """For each slot with fewer events in the target than in the source, the share that is left."""
        source, target = self._queries[derivation.source], self._queries[derivation.target]
        ours, theirs = self._workings.events(derivation.target), self._workings.events(derivation.source)
        return {
            own: len(ours.rows(own)) / max(1, len(theirs.rows(slot)))
            for slot, own in derivation.slots
            if source.stacks[slot] != target.stacks[own]
        }


def _narrowing(derivation: Derivation, program: Program) -> Iterator[Hashable]:
    """The first steps of a derivation that others from the same source may have, too: they narrow the same slots."""
    slots = {own: slot for slot, own in derivation.slots}
    path: tuple[object, ...] = (derivation.source,)
    for step in program:
        if not isinstance(step, Narrow):
            return
        path = (*path, slots[step.slot], step.stack)
        yield path


def shared_steps(queries: Mapping[str, WorkloadQuery], workings: Workings) -> dict[tuple[str, int], list[int]]:
    """For each program of a query the numbers of its first steps that other programs have, too."""
    branches: dict[Arrangement, list[Branch]] = {}
    for name, query in queries.items():
        counted = not workings.materializes(name)
        programs = [(_BACKWARD, query.plan.program), (_FROM_START, query.from_start), (_ALL, query.unrestricted)]
        branches.setdefault(query.arrangement, []).extend(
            Branch(name, program, query.stacks, shareable(program, counted=counted), delta=number)
            for number, program in programs
            if program is not None
        )
    shared: dict[tuple[str, int], list[int]] = {}
    steps = 0
    for group in branches.values():
        for node in step_tree(group).walk():
            steps += 1
            for leaf in node.all_leaves():
                shared.setdefault((leaf.query, leaf.delta), []).append(steps)
    return shared
