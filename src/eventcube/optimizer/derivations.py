"""Which queries are computed from the matches of others: by a fixed plan, or by costs that are weighed now and then.

Liu et al. 2011 (E-Cube), sections 4 to 6. The costs are the paper's (eq. 4 to 11) for steps over sets of partial
matches: C_compute(q) = what its program costs; C_compute(q|p) from general to specific = what the steps cost that
complete |R_p| matches of the source; from specific to general = what the deltas cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from eventcube.optimizer.chase import Chase, Own, Way
from eventcube.optimizer.choose import HOLD_PAIRS, SWITCH
from eventcube.optimizer.program import ProgramEstimate, StrategyCost
from eventcube.optimizer.statistics import Events
from eventcube.options import BOTTOM_UP, INDEPENDENT, TOP_DOWN
from eventcube.plan.routes import leads_back
from eventcube.plan.workload import Derivation, StackKey, WorkloadQuery

# Weigh plans again only if the rate of some events has changed by so much (the paper's theta).
DRIFT = 0.2


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


class DerivationChoice:
    """The derivations in use."""

    def __init__(self, sharing: str, queries: Mapping[str, WorkloadQuery]) -> None:
        self.queries = queries
        self._fixed = sharing in (TOP_DOWN, BOTTOM_UP, INDEPENDENT)
        self.chosen: dict[str, Derivation] = {}
        if sharing in (TOP_DOWN, BOTTOM_UP):
            self.chosen = fixed_plan(queries, downward=sharing == TOP_DOWN)
        self._derivable = any(query.derivations for query in queries.values())
        # What the plan in use, and all queries by themselves, were expected to cost when that was decided;
        self.expected: tuple[float, float] | None = None
        # and what each query was that is computed from another, so and by itself.
        self._costs: dict[str, tuple[float, float]] = {}
        self._rates: Mapping[int, float] = {}
        self._pairs = self._due = 0

    def derivations(self, names: Sequence[str], workings: Workings) -> dict[str, Derivation]:
        """How some queries, and those that they are computed from, are computed; those by themselves are left out."""
        if not self._derivable:
            return {}
        if not self._fixed:
            self._weigh(names, workings)
        return with_sources(names, self.chosen)

    def _weigh(self, names: Sequence[str], workings: Workings) -> None:
        """Choose again, if so much was done since the last time that it pays, and events have changed."""
        due = len(names) * workings.due
        self._pairs += due * workings.size
        if self._pairs > HOLD_PAIRS:
            self._pairs, self._due = 0, due
            rates = self._current_rates(names, workings)
            if self._have_changed(rates):
                self._rates = rates
                self._choose(names, workings)
        elif 2 * due < self._due and self.chosen:
            # For so few events, what was chosen for many need not hold, and to weigh it again does not pay.
            self.chosen, self._rates, self._due = {}, {}, 0

    def _current_rates(self, names: Sequence[str], workings: Workings) -> dict[int, float]:
        """The share of each stack in all events."""
        rates: dict[int, float] = {}
        for name in names:
            events, stacks = workings.events(name), self.queries[name].stacks
            for slot, stack in enumerate(stacks):
                if stack not in rates:
                    rates[stack] = len(events.rows(slot)) / max(1, events.size)
        return rates

    def _have_changed(self, rates: Mapping[int, float]) -> bool:
        before = self._rates
        return rates.keys() != before.keys() or any(
            abs(rate - before[stack]) > DRIFT * max(rate, before[stack]) for stack, rate in rates.items()
        )

    def _choose(self, names: Sequence[str], workings: Workings) -> None:
        """Take the cheapest plan, if it is so much cheaper than the one in use that to switch pays (gamma)."""
        chase = costs(names, self.queries, workings)
        known = {way.derivation: way for way in chase.ways}
        current = {t: known[d] for t, d in self.chosen.items() if d in known}
        best = chase.cheapest()
        alone, now, then = chase.cost({}), chase.cost(current), chase.cost(best)
        if then * SWITCH < now:
            current, now = best, then
        self.chosen = {target: way.derivation for target, way in current.items()}
        self.expected = now, alone
        self._costs = {target: (way.cost, chase.own[target].alone) for target, way in current.items()}

    def summary(self, measured: Mapping[str, str]) -> Iterator[str]:
        """What is computed from what, in words, with what was measured of each query, if that is known."""
        yield from (
            f"{name}: computed from the events{work}" for name, work in measured.items() if name not in self.chosen
        )
        for target, derivation in self.chosen.items():
            derived, alone = self._costs.get(target, (None, None))
            estimated = "" if derived is None else f"; estimated {derived:,.0f}, {alone:,.0f} by itself"
            work = measured.get(target, "")
            yield f"{target}: computed from {derivation.source} ({derivation.case}){estimated}{work}"
        if self.expected is not None and self.chosen:
            now, each = self.expected
            yield f"all queries: estimated {now:,.0f}, {each:,.0f} each by itself"


def with_sources(names: Iterable[str], plan: Mapping[str, Derivation]) -> dict[str, Derivation]:
    """The derivations of some queries, and of those that they are computed from."""
    found: dict[str, Derivation] = {}
    todo = list(names)
    while todo:
        name = todo.pop()
        if name in plan and name not in found:
            found[name] = plan[name]
            todo.append(found[name].source)
    return found


def fixed_plan(queries: Mapping[str, WorkloadQuery], *, downward: bool) -> dict[str, Derivation]:
    """Every query that can be is computed from another: the nearest coarser one, or the nearest finer one."""
    plan: dict[str, Derivation] = {}
    for name, query in queries.items():
        ways = [d for d in query.derivations if d.downward is downward]
        # The nearest has most in common, and differs least in size.
        for way in sorted(ways, key=lambda d: (-len(d.slots), len(queries[d.source].stacks), d.source)):
            if not leads_back(way, plan):
                plan[name] = way
                break
    return plan


def costs(names: Sequence[str], queries: Mapping[str, WorkloadQuery], workings: Workings) -> Chase:
    """What queries cost by themselves and from each other; sources that have nothing due count, too."""
    estimates = _Estimates(queries, workings)
    wanted = set(names)
    ways = [d for name in names for d in queries[name].derivations]
    wanted |= {d.source for d in ways}
    sharers = Counter(_beginning(queries[name]) for name in wanted if queries[name].from_start is not None)
    own = {name: estimates.own(name, sharers[_beginning(queries[name])]) for name in queries if name in wanted}
    return Chase(own, [estimates.way(derivation) for derivation in ways])


def _beginning(query: WorkloadQuery) -> object:
    return query.arrangement, tuple(query.stacks[slot] for slot in query.plan.positive[:2])


class _Estimates:
    """Costs of programs and derivations over the events of one evaluation."""

    def __init__(self, queries: Mapping[str, WorkloadQuery], workings: Workings) -> None:
        self.queries, self._workings = queries, workings
        self._known: dict[tuple[str, bool], ProgramEstimate] = {}
        self._results: dict[tuple[str, bool], float] = {}

    def _of(self, name: str, *, materialize: bool) -> ProgramEstimate:
        if (name, materialize) not in self._known:
            plan, cost = self.queries[name].plan, self._workings.strategy_cost(name)
            estimate = ProgramEstimate(plan, self._workings.events(name), cost, materialize=materialize)
            self._known[name, materialize] = estimate
        return self._known[name, materialize]

    def own(self, name: str, sharers: int) -> Own:
        """What a query costs; so many share its first two components, if these are bound first."""
        query = self.queries[name]
        as_asked, made = self._of(name, materialize=self._workings.materializes(name)), self._of(name, materialize=True)
        alone = as_asked.cost(query.plan.program)
        if query.from_start is not None and sharers > 1:
            alone = min(alone, _divided(as_asked.step_costs(query.from_start), sharers))
        making_due = making_all = 0.0
        if query.unrestricted is not None:
            making_due = max(0.0, made.cost(query.plan.program) - alone)
            making_all = max(0.0, _divided(made.step_costs(query.unrestricted), max(1, sharers)) - alone)
        return Own(alone, making_due, making_all)

    def _matches(self, name: str, *, due: bool) -> float:
        """How many matches a query has, due or all."""
        if (name, due) not in self._results:
            query, estimate = self.queries[name], self._of(name, materialize=True)
            program = query.plan.program if due or query.unrestricted is None else query.unrestricted
            self._results[name, due] = estimate.results(program)
        return self._results[name, due]

    def way(self, derivation: Derivation) -> Way:
        """What a derivation costs."""
        source, target = self.queries[derivation.source], self.queries[derivation.target]
        matches = self._matches(derivation.source, due=derivation.same_trigger)
        counted = not self._workings.materializes(derivation.target)
        at_once = not derivation.program and not derivation.source_steps
        if at_once and counted:
            cost = 0.0
        else:
            program = derivation.program if derivation.same_trigger else derivation.due_program
            estimate = self._of(derivation.target, materialize=not counted)
            bound, narrowed = len(derivation.slots), self._narrowed(derivation, source, target)
            cost = matches * (1 + len(derivation.source_steps))
            cost += sum(step for step, _ in estimate.steps(program, matches, bound, narrowed))
        for delta in derivation.deltas:
            events = self._workings.events(derivation.target, delta.stacks)
            strategy_cost = self._workings.strategy_cost(derivation.target)
            cost += ProgramEstimate(target.plan, events, strategy_cost, materialize=not counted).cost(delta.program)
        return Way(derivation, cost, at_once and counted)

    def _narrowed(self, derivation: Derivation, source: WorkloadQuery, target: WorkloadQuery) -> dict[int, float]:
        """For each slot with fewer events in the target than in the source, the share that is left."""
        ours, theirs = self._workings.events(derivation.target), self._workings.events(derivation.source)
        return {
            own: len(ours.rows(own)) / max(1, len(theirs.rows(slot)))
            for slot, own in derivation.slots
            if source.stacks[slot] != target.stacks[own]
        }


def _divided(steps: Sequence[float], sharers: int) -> float:
    """What steps cost of which the first two are shared by so many."""
    return sum(steps[:2]) / sharers + sum(steps[2:])
