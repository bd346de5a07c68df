"""Chase: which queries of a workload are computed from which others, so that all of them together cost least.

Liu et al. 2011 (E-Cube), section 4: queries are the nodes of a graph with a virtual ground, from which each can be
computed by itself; the cheapest plan is a minimum spanning arborescence. Where costs depend on the whole plan here,
they are divided among those that gain, and the shares are corrected until the plan stays the same. Then ways of single
queries are exchanged for as long as that makes it cheaper, in each set of related queries by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf

from eventcube.optimizer.arborescence import minimum_arborescence
from eventcube.optimizer.exchange import Exchange, related
from eventcube.optimizer.reuse_plan import Account, Own, Plan, PlanCosts, Steps, Way

# How often shares are corrected, at most.
_ROUNDS = 6
# To add up the cost of one query in one plan takes about so much itself; no more than this part of the whole cost is
# spent on trying plans, so many times at most, and at least.
_TRY, _SPENT, _TRIES, _FEWEST = 1_000.0, 0.05, 20_000, 2_000


class Chase:
    """The queries of a workload with their costs."""

    def __init__(self, own: Mapping[str, Own], ways: Sequence[Way]) -> None:
        self.own, self.ways = own, ways
        self._costs = PlanCosts(own)

    def cost(self, plan: Plan) -> float:
        """What all queries cost together."""
        return self._costs.cost(plan, Account())

    def cheapest(self, starts: Iterable[dict[str, Way]] = ()) -> dict[str, Way]:
        """The plan that costs least, as far as it is found; never more than one of these."""
        # A way that costs more than the query by itself can only lose.
        ways = [way for way in self.ways if way.steps.cost < self.own[way.target].alone.cost]
        best = min(({}, *starts, *self._by_arborescence(ways)), key=self.cost)
        tries = max(_FEWEST, min(_TRIES, int(_SPENT * self.cost(best) / _TRY)))
        sets = list(related(self.own, ways))
        for own, within in sets:
            others = {name: costs for name, costs in self.own.items() if name not in own}
            kept = {target: way for target, way in best.items() if target in others}
            account = Account()
            PlanCosts(others).cost(kept, account)
            part = {target: way for target, way in best.items() if target in own}
            best = kept | Exchange(own, within, account.paid).cheapest(part, tries // (len(sets) * len(own)))
        return best

    def _by_arborescence(self, ways: Sequence[Way]) -> Iterator[dict[str, Way]]:
        """Plans of least cost, if what sources cost more is divided among those that are computed from them."""
        if not ways:
            return
        # If as many as can gain share it, and steps are shared by all; and as if it cost nothing.
        # Each query has one source in them: the unions of several are tried when ways are exchanged.
        ways = [way for way in ways if len(way.sources) == 1]
        sharers: Mapping[str, float] = Counter(way.derivation.source for way in ways)
        yield self._arborescence(ways, dict.fromkeys(sharers, inf), self._shares(self.own))
        roots: Iterable[str] = self.own
        for _ in range(_ROUNDS):
            plan = self._arborescence(ways, sharers, self._shares(roots))
            yield plan
            children = Counter(way.derivation.source for way in plan.values())
            if children == sharers:
                return
            sharers, roots = children, [name for name in self.own if name not in plan]

    def _shares(self, roots: Iterable[str]) -> dict[str, float]:
        """What each query costs by itself if these are, and each pays its share of steps that are equal."""
        users = Counter(step for name in roots for steps in self.own[name].both for step, _ in steps.shared)

        def share(steps: Steps) -> float:
            return steps.cost - sum(cost * (1 - 1 / max(1, users[step])) for step, cost in steps.shared)

        return {name: min(map(share, own.both)) for name, own in self.own.items()}

    def _arborescence(
        self, ways: Sequence[Way], sharers: Mapping[str, float], alone: Mapping[str, float]
    ) -> dict[str, Way]:
        """The cheapest plan if sources divide what their matches cost among so many."""
        number = {name: i for i, name in enumerate(self.own, 1)}
        edges = [(0, number[name], alone[name]) for name in self.own]
        first = len(edges)
        for way in ways:
            source = way.derivation.source
            own = self.own[source]
            more = 0.0 if way.counts else own.making if way.derivation.same_trigger else own.all_more
            cost = way.steps.cost + more / max(1.0, sharers.get(source, 0.0))
            edges.append((number[source], number[way.target], cost))
        entering = minimum_arborescence(len(number) + 1, edges)
        chosen = (ways[edge - first] for edge in entering[1:] if edge >= first)
        return {way.target: way for way in chosen}
