"""Plans made cheaper by exchanging the ways of single queries, in each set of related queries by itself."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from eventcube.optimizer.reuse_plan import Account, Own, Plan, PlanCosts, Way

# Up to so many related queries, exchanges begin with so many plans of one source, too.
_FEW, _STARTS = 12, 4
# An exchange gains at least this share.
_GAIN = 1e-6


def related(own: Mapping[str, Own], ways: Sequence[Way]) -> Iterator[tuple[dict[str, Own], list[Way]]]:
    """The queries that can be computed from others of the same set only, set by set, and how."""
    leader = {name: name for way in ways for name in (way.source, way.target)}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for way in ways:
        leader[find(way.source)] = find(way.target)
    names: dict[str, dict[str, Own]] = {}
    for name, costs in own.items():
        if name in leader:
            names.setdefault(find(name), {})[name] = costs
    within: dict[str, list[Way]] = {}
    for way in ways:
        within.setdefault(find(way.target), []).append(way)
    for first, queries in names.items():
        yield queries, within[first]


class Exchange:
    """Related queries and their ways; others have paid for what they need, too."""

    def __init__(self, own: Mapping[str, Own], ways: Sequence[Way], paid: AbstractSet[Hashable]) -> None:
        self._own, self._ways, self._paid = own, ways, paid
        self._costs = PlanCosts(own)
        # The costs of plans that were tried, by their ways, which live as long as this.
        self._tried: dict[frozenset[int], float] = {}

    def _cost(self, plan: Plan) -> float:
        key = frozenset(map(id, plan.values()))
        if key not in self._tried:
            self._tried[key] = self._costs.cost(plan, Account(self._paid))
        return self._tried[key]

    def cheapest(self, plan: dict[str, Way], tries: int) -> dict[str, Way]:
        """The cheapest plan that exchanges lead to, after about so many tries."""
        starts = [self._without_losses(plan, tries)]
        if len(self._own) <= _FEW:
            starts += sorted(self._by_one_source(), key=self._cost)[:_STARTS]
        return min((self._improved(start, tries) for start in starts), key=self._cost)

    def _without_losses(self, plan: dict[str, Way], tries: int) -> dict[str, Way]:
        """The plan without sources that cost more than they save, one by one if they are few."""
        sources = dict.fromkeys(way.source for way in plan.values())
        for source in sources if len(sources) <= tries else ():
            plan = min(plan, {t: w for t, w in plan.items() if w.source != source}, key=self._cost)
        return plan

    def _by_one_source(self) -> Iterator[dict[str, Way]]:
        """For each source the plan in which all that gain from it are computed from it."""
        for source in dict.fromkeys(way.source for way in self._ways):
            yield {way.target: way for way in self._ways if way.source == source}

    def _improved(self, plan: dict[str, Way], tries: int) -> dict[str, Way]:
        """The plan after exchanging the ways of single queries, for as long as one makes it cheaper."""
        options: dict[str, list[Way | None]] = {}
        for way in self._ways:
            options.setdefault(way.target, [None]).append(way)
        cost, improves, most = self._cost(plan), True, len(self._tried) + tries
        while improves:
            improves = False
            for target, option in ((t, option) for t, ways in options.items() for option in ways):
                if len(self._tried) >= most:
                    break
                if option is plan.get(target) or (option and _leads_back(option, plan)):
                    continue
                exchanged = dict(plan)
                if option is None:
                    del exchanged[target]
                else:
                    exchanged[target] = option
                exchanged_cost = self._cost(exchanged)
                if exchanged_cost < cost * (1 - _GAIN):
                    plan, cost, improves = exchanged, exchanged_cost, True
        return plan


def _leads_back(way: Way, plan: Plan) -> bool:
    """Whether the source is itself computed from the target."""
    source = way.source
    while source != way.target and source in plan:
        source = plan[source].source
    return source == way.target
