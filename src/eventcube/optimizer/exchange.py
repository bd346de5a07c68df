"""Plans made cheaper by exchanging the ways of single queries, in each set of related queries by itself."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from eventcube.optimizer.reuse_plan import Account, Own, Plan, PlanCosts, Way
from eventcube.plan.routes import leads_back

# Up to so many related queries, exchanges begin with so many simple plans, too.
_FEW, _STARTS = 12, 8
# An exchange gains at least this share.
_GAIN = 1e-6


def related(own: Mapping[str, Own], ways: Sequence[Way]) -> Iterator[tuple[dict[str, Own], list[Way]]]:
    """The queries that can be computed from others of the same set only, set by set, and how."""
    leader = {name: name for way in ways for name in (*way.sources, way.target)}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for way in ways:
        for source in way.sources:
            leader[find(source)] = find(way.target)
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
            starts += sorted(self._simple_plans(), key=self._cost)[:_STARTS]
        return min((self._improved(start, tries) for start in starts), key=self._cost)

    def _without_losses(self, plan: dict[str, Way], tries: int) -> dict[str, Way]:
        """The plan without sources that cost more than they save, one by one if they are few."""
        sources = dict.fromkeys(source for way in plan.values() for source in way.sources)
        for source in sources if len(sources) <= tries else ():
            plan = min(plan, {t: w for t, w in plan.items() if source not in w.sources}, key=self._cost)
        return plan

    def _simple_plans(self) -> Iterator[dict[str, Way]]:
        """Plans with the same sources, one or several, for all that gain from them."""
        for sources in dict.fromkeys(way.sources for way in self._ways):
            yield {way.target: way for way in self._ways if way.sources == sources}

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
                exchanged = _exchanged(plan, target, option)
                if exchanged is None:
                    continue
                exchanged_cost = self._cost(exchanged)
                if exchanged_cost < cost * (1 - _GAIN):
                    plan, cost, improves = exchanged, exchanged_cost, True
        return plan


def _exchanged(plan: Plan, target: str, way: Way | None) -> dict[str, Way] | None:
    """The plan with another way for a query, or with none; None if that changes nothing or leads around in a circle."""
    if way is plan.get(target):
        return None
    others = {name: other for name, other in plan.items() if name != target}
    if way is None:
        return others
    if len(way.sources) > 1 and leads_back(way, others):
        # A union is tried with its sources by themselves: they may all be computed from the target.
        others = {name: other for name, other in others.items() if name not in way.sources}
    return None if leads_back(way, others) else others | {target: way}
