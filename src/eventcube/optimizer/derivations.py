"""Which queries are computed from the matches of others: by a fixed plan, or by costs that are weighed now and then.

Liu et al. 2011 (E-Cube), sections 4 to 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from eventcube.optimizer.choose import HOLD_PAIRS, SWITCH
from eventcube.optimizer.rates import Rates
from eventcube.optimizer.reuse_costs import ReuseCosts
from eventcube.optimizer.workings import Workings
from eventcube.options import BOTTOM_UP, INDEPENDENT, TOP_DOWN
from eventcube.plan.routes import leads_back
from eventcube.plan.workload import Derivation, WorkloadPlan, WorkloadQuery

# What it takes to weigh one query, or one derivation: no more is spent on it than on the queries.
DECISION = 50_000.0


class DerivationChoice:
    """The derivations in use."""

    def __init__(self, sharing: str, queries: Mapping[str, WorkloadQuery]) -> None:
        self.queries = queries
        self._fixed = sharing in (TOP_DOWN, BOTTOM_UP, INDEPENDENT)
        self.chosen: dict[str, Derivation] = {}
        if sharing in (TOP_DOWN, BOTTOM_UP):
            self.chosen = fixed_plan(queries, downward=sharing == TOP_DOWN)
        # Those that were decided for last: for a few events at the end, nothing is decided.
        self._told = self.chosen
        self._derivable = any(query.derivations for query in queries.values())
        # What the plan in use, and all queries by themselves, were expected to cost when that was decided;
        self.expected: tuple[float, float] | None = None
        # and what each query was that is computed from another, so and by itself.
        self._costs: dict[str, tuple[float, float]] = {}
        self._decided = False
        self._rates = Rates()
        self._pairs = self._due = 0
        # What was done since the last decision, what each due event costs, and after how much to decide again.
        self._work = self._per_due = 0.0
        self._enough = DECISION * sum(1 + len(query.derivations) for query in queries.values())

    def fix(self, chosen: Mapping[str, Derivation]) -> None:
        """Use these derivations from now on, whatever others cost."""
        self._fixed, self.chosen = True, dict(chosen)
        self._told = self.chosen

    def derivations(self, names: Sequence[str], workings: Workings) -> dict[str, Derivation]:
        """How some queries, and those that they are computed from, are computed; those by themselves are left out."""
        if not self._derivable:
            return {}
        if not self._fixed:
            self._weigh(names, workings)
        return with_sources(names, self.chosen)

    def _weigh(self, names: Sequence[str], workings: Workings) -> None:
        """Choose again, if so much was done since the last time that it pays, and events have changed."""
        due = workings.due
        known = None
        if not self._per_due:
            self._pairs += len(names) * due * workings.size
            if self._pairs <= HOLD_PAIRS:
                return
            known = ReuseCosts(self.queries, workings)
            self._per_due = known.alone / max(1, due)
        self._work += due * self._per_due
        if self._work > self._enough:
            self._work, self._due = 0.0, due
            self._rates.note(self._current_rates(workings), workings.size)
            if self._rates.have_changed:
                self._rates.decide()
                self._choose(known or ReuseCosts(self.queries, workings))
        elif 4 * due < self._due and self.chosen:
            # For so few events, what was chosen for many need not hold, and to weigh it again does not pay.
            self.chosen, self._rates, self._due, self._decided = {}, Rates(), 0, False

    def _current_rates(self, workings: Workings) -> dict[int, float]:
        """The share of each stack in all events."""
        rates: dict[int, float] = {}
        for name, query in self.queries.items():
            events = None
            for slot, stack in enumerate(query.stacks):
                if stack not in rates:
                    events = events or workings.events(name)
                    rates[stack] = len(events.rows(slot)) / max(1, events.size)
        return rates

    def _choose(self, costs: ReuseCosts) -> None:
        """Take the cheapest plan, if it is so much cheaper than the one in use that to switch pays (gamma)."""
        chase = costs.chase()
        known = {id(way.derivation): way for way in chase.ways}
        plans = (self.chosen, *(fixed_plan(self.queries, downward=downward) for downward in (True, False)))
        current, *fixed = ({t: known[id(d)] for t, d in plan.items() if id(d) in known} for plan in plans)
        best = chase.cheapest((current, *fixed))
        alone, now, then = chase.cost({}), chase.cost(current), chase.cost(best)
        if then * (SWITCH if self._decided else 1.0) < now:
            current, now = best, then
        self.chosen = self._told = {target: way.derivation for target, way in current.items()}
        self.expected, self._decided = (now, alone), True
        self._costs = {target: (way.steps.cost, chase.own[target].alone.cost) for target, way in current.items()}

    def summary(self, measured: Mapping[str, str]) -> Iterator[str]:
        """What is computed from what, in words, with what was measured of each query, if that is known."""
        yield from (
            f"{name}: computed from the events{work}" for name, work in measured.items() if name not in self._told
        )
        for target, derivation in self._told.items():
            derived, alone = self._costs.get(target, (None, None))
            estimated = "" if derived is None else f"; estimated {derived:,.0f}, {alone:,.0f} by itself"
            work = measured.get(target, "")
            sources = ", ".join(derivation.sources)
            yield f"{target}: computed from {sources} ({derivation.case}){estimated}{work}"
        if self.expected is not None and self._told:
            now, each = self.expected
            yield f"all queries: estimated {now:,.0f}, {each:,.0f} each by itself"


def fixed_lines(workload: WorkloadPlan) -> Iterator[str]:
    """What is computed from what, in words, if a fixed plan says so whatever the events are."""
    for names in workload.alike:
        yield from DerivationChoice(workload.sharing, {name: workload.queries[name] for name in names}).summary({})


def with_sources(names: Iterable[str], plan: Mapping[str, Derivation]) -> dict[str, Derivation]:
    """The derivations of some queries, and of those that they are computed from."""
    found: dict[str, Derivation] = {}
    todo = list(names)
    while todo:
        name = todo.pop()
        if name in plan and name not in found:
            found[name] = plan[name]
            todo += found[name].sources
    return found


def fixed_plan(queries: Mapping[str, WorkloadQuery], *, downward: bool) -> dict[str, Derivation]:
    """Every query that can be is computed from another: the nearest coarser one, or the nearest finer one."""
    plan: dict[str, Derivation] = {}
    for name, query in queries.items():
        ways = [d for d in query.derivations if d.downward is downward]
        for way in sorted(ways, key=lambda d: _distance(d, queries[d.source])):
            if not leads_back(way, plan):
                plan[name] = way
                break
    return plan


def _distance(derivation: Derivation, source: WorkloadQuery) -> tuple[int, int, int, int, str]:
    """How far a query is from its source: the nearest has most in common, and leaves the fewest steps and events."""
    steps = len(derivation.program) + len(derivation.deltas)
    return -len(derivation.slots), steps, len(source.stacks), -len(derivation.united), derivation.source
