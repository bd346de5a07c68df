"""What queries of a workload cost by themselves and from each other, over the events of one evaluation.

The costs are those of Liu et al. 2011 (E-Cube), eq. 4 to 11, for steps over sets of partial matches: C_compute(q) =
what its program costs; C_compute(q|p) from general to specific = what the steps cost that complete |R_p| matches of the
source; from specific to general = what it costs to drop twins, and the deltas.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import takewhile

from eventcube.optimizer.chase import Chase
from eventcube.optimizer.cost import CALL, DIFFERENCE, KEEP_LATEST, NARROW, RANGE
from eventcube.optimizer.program import NOTHING, NOTHING_NARROWED, Partial, ProgramEstimate, found_once
from eventcube.optimizer.reuse_plan import Once, Own, Steps, Way
from eventcube.optimizer.stack_statistics import StackSlots, StackStatistics
from eventcube.optimizer.workings import Workings
from eventcube.plan.step_tree import Branch, shareable, step_tree
from eventcube.plan.steps import Bind, FilterByState, Narrow, Program, Step, Term
from eventcube.plan.workload import Arrangement, Delta, Derivation, StackKey, WorkloadQuery

# The programs of a query, by number.
_BACKWARD, _FROM_START, _ALL = range(3)


class ReuseCosts:
    """What queries that can be computed from each other cost so, and by themselves, over one evaluation's events."""

    def __init__(self, queries: Mapping[str, WorkloadQuery], workings: Workings) -> None:
        self._derivations = [d for query in queries.values() for d in query.derivations]
        wanted = {name for d in self._derivations for name in (d.source, d.target)}
        self._queries, self._workings = {n: query for n, query in queries.items() if n in wanted}, workings
        self._statistics = StackStatistics(self._queries, workings.events)
        self._materializes = {name: workings.materializes(name) for name in self._queries}
        self._known: dict[str, ProgramEstimate] = {}
        self._results: dict[tuple[str, bool], Partial] = {}
        # Numbers for groups and for what must be found once, below those of shared steps: they are compared faster.
        self._numbers: dict[Hashable, Once] = {}
        self._shared = shared_steps(self._queries, self._materializes)
        self._own = {name: self._own_costs(name, query) for name, query in self._queries.items()}

    @property
    def alone(self) -> float:
        """What all of them cost by themselves."""
        return Chase(self._own, ()).cost({})

    def chase(self, *, every: bool = False) -> Chase:
        """All costs, without ways that cannot cost less than the query by itself, unless `every` one is asked for."""
        derivations = self._derivations
        if not every:
            derivations = [d for d in derivations if self._at_least(d) < self._own[d.target].alone.cost]
        return Chase(self._own, [self._way(derivation) for derivation in derivations])

    def _estimate(self, name: str, stacks: tuple[StackKey, ...] | None = None) -> ProgramEstimate:
        """The estimate of a query as it is asked, or of the same with other stacks."""
        if stacks is not None or name not in self._known:
            query, cost = self._queries[name], self._workings.strategy_cost(name)
            slots = StackSlots(self._statistics, query, partial(self._workings.events, name, stacks), stacks)
            estimate = ProgramEstimate(query.plan, slots, cost, materialize=self._materializes[name])
            if stacks is not None:
                return estimate
            self._known[name] = estimate
        return self._known[name]

    def _number(self, key: Hashable) -> Once:
        return self._numbers.setdefault(key, Once(-1 - len(self._numbers)))

    def _own_costs(self, name: str, query: WorkloadQuery) -> Own:
        def steps(program: Program, number: int) -> tuple[Steps, float]:
            return self._steps(name, program, query.stacks, self._shared.get((name, number), ()))

        def all_matches() -> Steps:
            assert query.unrestricted is not None
            if self._workings.keeps_matches(name):
                # Only those that are due are found, and those of earlier batches are gone through.
                found, made = alone, making
            else:
                found, made = steps(query.unrestricted, _ALL)
            # Of all matches, those that are due are reported.
            matches = self._matches_of(name, due=False)
            return found + Steps(made + self._estimate(name).filtered(matches.rows))

        alone, making = steps(query.plan.program, _BACKWARD)
        everything = None if query.unrestricted is None else cache(all_matches)
        if query.from_start is None:
            return Own(alone, making, everything)
        group = self._number((query.arrangement, *(query.stacks[slot] for slot in query.plan.positive[:2])))
        return Own(alone, making, everything, steps(query.from_start, _FROM_START)[0], group)

    def _steps(
        self,
        name: str,
        program: Program,
        stacks: tuple[StackKey, ...],
        shared: Iterable[Hashable] = (),
        before: Partial = NOTHING,
        narrowed: Mapping[int, float] = NOTHING_NARROWED,
    ) -> tuple[Steps, float]:
        """What a program costs for some partial matches, as it is asked, and what it costs more to make matches.

        That includes windows and links. The first steps are those of `shared`, which others may have, too.
        """
        query = self._queries[name]
        estimate = self._estimate(name, None if stacks is query.stacks else stacks)
        estimated = [*estimate.steps(program, before, narrowed)]
        costs, made = [cost for cost, _ in estimated], [before, *(at for _, at in estimated)]
        finds = self._found(query.arrangement, program, stacks, [at.rows for at in made])
        found = {self._number(find): cost for find, cost in finds}
        common = (*zip(shared, costs, strict=False), *found.items())
        making = estimate.making(program, *made[-2:]) if program else 0.0
        if program is query.plan.program:
            self._results[name, True] = made[-1]
        return Steps(sum(costs) + sum(found.values()), common), making

    def _found(
        self, arrangement: Arrangement, program: Program, stacks: Sequence[StackKey], partial: Sequence[float]
    ) -> Iterator[tuple[Hashable, float]]:
        """What must be found once for all events, because of the steps: windows, and links into stacks."""
        order = arrangement.sort_key
        for found, cost in found_once(program, partial, self._workings.size):
            if isinstance(found, Term):
                yield (order, arrangement.positions, arrangement.width, found), cost
            else:
                yield (order, stacks[found]), cost

    def _matches(self, derivation: Derivation) -> Partial:
        """The matches of all sources, those due or all."""
        found = [self._matches_of(source, due=derivation.same_trigger) for source in derivation.sources]
        return found[0]._replace(rows=sum(one.rows for one in found), tables=sum(one.tables for one in found))

    def _matches_of(self, name: str, *, due: bool) -> Partial:
        """The matches of a query, those due or all."""
        if (name, due) not in self._results:
            query = self._queries[name]
            program = query.plan.program if due or query.unrestricted is None else query.unrestricted
            self._results[name, due] = self._estimate(name).results(program)
        return self._results[name, due]

    def _at_least(self, derivation: Derivation) -> float:
        """What a derivation costs at least: each match of the source goes through its first step."""
        if derivation.source_steps:
            return self._matches(derivation).rows * KEEP_LATEST
        match derivation.program[:1]:
            case (Bind(),):
                return self._matches(derivation).rows * RANGE
            case (Narrow(),):
                return self._matches(derivation).rows * NARROW
        return 0.0

    def _way(self, derivation: Derivation) -> Way:
        """What a derivation costs."""
        target, query = derivation.target, self._queries[derivation.target]
        matches = self._matches(derivation)
        begin, narrowed = matches._replace(bound=len(derivation.slots)), self._narrowed(derivation)

        def steps(program: Program) -> tuple[Steps, float]:
            return self._steps(target, program, query.stacks, _narrowing(derivation, program), begin, narrowed)

        def all_steps() -> Steps:
            return sum((self._delta(target, query, d, due=False)[0] for d in derivation.deltas), own + twins)

        own, making = steps(derivation.program if derivation.same_trigger else derivation.due_program)
        twins = Steps((matches.rows * KEEP_LATEST + matches.tables * CALL) * len(derivation.source_steps))
        found = twins
        for delta in derivation.deltas:
            due, more = self._delta(target, query, delta, due=True)
            found, making = found + due, making + more
        at_once = not (self._materializes[target] or derivation.program or derivation.source_steps)
        filtered = cache(lambda: steps(derivation.due_program)[0] + found) if derivation.same_trigger else None
        return Way(derivation, own + found, at_once, making, filtered, cache(all_steps) if derivation.deltas else None)

    def _delta(self, name: str, query: WorkloadQuery, delta: Delta, *, due: bool) -> tuple[Steps, float]:
        """What it costs to find the matches of a delta, those due or all, and how much more to make those due."""
        program = delta.program if due else delta.unrestricted
        if any(isinstance(step, Bind) and not self._statistics.count(delta.stacks[step.slot]) for step in program):
            # It has no match, and is not run.
            return Steps(0.0), 0.0
        differences = {
            (query.arrangement.sort_key, stack, "difference"): DIFFERENCE * self._statistics.count(stack[0])
            for stack in delta.stacks
            if not isinstance(stack, int)
        }
        prepared = Steps(sum(differences.values()), tuple(differences.items()))
        common: Iterator[int] = iter(())
        if program is query.plan.program:
            # The first steps are those of the query, as long as they are over the same stacks.
            alike = takewhile(lambda step: _have_same_stacks(step, delta.stacks, query.stacks), program)
            common = (number for number, _ in zip(self._shared.get((name, _BACKWARD), ()), alike, strict=False))
        found, making = self._steps(name, program, delta.stacks, common)
        return (found + prepared, making) if due else (found + prepared + Steps(making), 0.0)

    def _narrowed(self, derivation: Derivation) -> dict[int, float]:
        """For each slot with fewer events in the target than in the source, the share that is left."""
        source, target = self._queries[derivation.source].stacks, self._queries[derivation.target].stacks
        count = self._statistics.count
        return {
            own: count(target[own]) / max(1.0, count(source[slot]))
            for slot, own in derivation.slots
            if source[slot] != target[own]
        }


def _have_same_stacks(step: Step, one: Sequence[StackKey], other: Sequence[StackKey]) -> bool:
    """Whether a step binds an event of the same stack in two ways to see the events."""
    if not isinstance(step, Bind):
        return False
    return all(one[slot] == other[slot] for slot in (step.slot, *(fence.slot for fence in step.fences)))


def _narrowing(derivation: Derivation, program: Program) -> Iterator[Hashable]:
    """The first steps of a derivation that others from the same source may have: by state, and by narrower types."""
    slots = {own: slot for slot, own in derivation.slots}
    path: tuple[object, ...] = (derivation.source,)
    for step in program:
        match step:
            case FilterByState():
                path = (*path, "due")
            case Narrow(slot, stack):
                path = (*path, slots[slot], stack)
            case _:
                return
        yield path


def shared_steps(
    queries: Mapping[str, WorkloadQuery], materializes: Mapping[str, bool]
) -> dict[tuple[str, int], list[int]]:
    """For each program of a query the numbers of its first steps that other programs have, too."""
    # Programs that begin with the same stack: no others can have steps in common.
    alike: dict[Hashable, list[tuple[str, int, Program]]] = {}
    for name, query in queries.items():
        programs = [(_BACKWARD, query.plan.program), (_FROM_START, query.from_start), (_ALL, query.unrestricted)]
        for number, program in programs:
            if program is not None and isinstance(program[0], Bind):
                key = query.arrangement, program[0].states, query.stacks[program[0].slot]
                alike.setdefault(key, []).append((name, number, program))
    shared: dict[tuple[str, int], list[int]] = {}
    steps = 0
    for group in alike.values():
        if len({name for name, _, _ in group}) == 1:
            continue
        branches = (
            Branch(name, p, queries[name].stacks, shareable(p, counted=not materializes[name]), delta=number)
            for name, number, p in group
        )
        for node in step_tree(branches, runs=False).walk():
            steps += 1
            for leaf in node.all_leaves():
                shared.setdefault((leaf.query, leaf.delta), []).append(steps)
    return shared
