"""Chase: which queries of a workload are computed from which others, so that all of them together cost least.

Liu et al. 2011 (E-Cube), section 4: queries are the nodes of a graph with a virtual ground, from which each can be
computed by itself; the cheapest plan is a minimum spanning arborescence. Here a source whose matches are otherwise only
counted, or only found where they are due, must make them for those computed from it: that costs once, however many
these are. It is divided among them, and the shares are corrected until the plan stays the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eventcube.optimizer.arborescence import minimum_arborescence
from eventcube.plan.routes import leads_back, unrestricted
from eventcube.plan.workload import Derivation

# How often shares are corrected, at most.
_ROUNDS = 6
# For so few ways × queries, ways of single queries are exchanged, each time for a gain of at least this share.
_EXCHANGES, _GAIN = 20_000, 1e-6


@dataclass(frozen=True, slots=True)
class Way:
    """A derivation with what it costs, beside its source; `counts`: the number of the source's matches is enough."""

    derivation: Derivation
    cost: float
    counts: bool


@dataclass(frozen=True, slots=True)
class Own:
    """What a query costs by itself, and what it costs more to make its matches, those that are due or all of them."""

    alone: float
    making_due: float
    making_all: float


Plan = Mapping[str, Way]


class Chase:
    """The queries of a workload with their costs."""

    def __init__(self, own: Mapping[str, Own], ways: Sequence[Way]) -> None:
        self.own, self.ways = own, ways
        self._names = list(own)

    def cost(self, plan: Plan) -> float:
        """What all queries cost together."""
        total = sum(plan[name].cost if name in plan else own.alone for name, own in self.own.items())
        return total + sum(self._making(plan).values())

    def _making(self, plan: Plan) -> dict[str, float]:
        """What it costs each source more that it feeds others."""
        all_of = unrestricted(_derivations(plan))
        making: dict[str, float] = {}
        for way in plan.values():
            source = way.derivation.source
            own = self.own[source]
            needed = own.making_all if source in all_of else 0.0 if way.counts else own.making_due
            making[source] = max(needed, making.get(source, 0.0))
        return making

    def cheapest(self) -> dict[str, Way]:
        """The plan that costs least, as far as it is found."""
        best: dict[str, Way] = {}
        best_cost = self.cost(best)
        # At first, as many as can gain from a source are taken to share its cost.
        sharers = Counter(w.derivation.source for w in self.ways if w.cost < self.own[w.derivation.target].alone)
        for _ in range(_ROUNDS):
            plan = self._arborescence(sharers)
            cost = self.cost(plan)
            if cost < best_cost:
                best, best_cost = plan, cost
            children = Counter(way.derivation.source for way in plan.values())
            if children == sharers:
                break
            sharers = children
        best = self._without_losses(best)
        if len(self.ways) * len(self.own) > _EXCHANGES:
            return best
        return min(map(self._improved, (best, *self._by_one_source())), key=self.cost)

    def _by_one_source(self) -> Iterator[dict[str, Way]]:
        """For each source the plan in which all that gain from it are computed from it."""
        for source in dict.fromkeys(way.derivation.source for way in self.ways):
            ways = (way for way in self.ways if way.derivation.source == source)
            yield {w.derivation.target: w for w in ways if w.cost < self.own[w.derivation.target].alone}

    def _arborescence(self, sharers: Mapping[str, int]) -> dict[str, Way]:
        """The cheapest plan if sources divide what their matches cost among so many."""
        number = {name: i for i, name in enumerate(self._names, 1)}
        edges = [(0, number[name], own.alone) for name, own in self.own.items()]
        first = len(edges)
        for way in self.ways:
            source, target = way.derivation.source, way.derivation.target
            own = self.own[source]
            making = 0.0 if way.counts else own.making_due if way.derivation.same_trigger else own.making_all
            edges.append((number[source], number[target], way.cost + making / max(1, sharers.get(source, 0))))
        entering = minimum_arborescence(len(self._names) + 1, edges)
        chosen = (self.ways[edge - first] for edge in entering[1:] if edge >= first)
        return {way.derivation.target: way for way in chosen}

    def _improved(self, plan: dict[str, Way]) -> dict[str, Way]:
        """The plan after exchanging the ways of single queries, for as long as one makes it cheaper."""
        options: dict[str, list[Way | None]] = {name: [None] for name in self.own}
        for way in self.ways:
            options[way.derivation.target].append(way)
        cost, improves = self.cost(plan), True
        while improves:
            improves = False
            for target, option in ((t, option) for t, ways in options.items() for option in ways):
                if option is plan.get(target) or (option and leads_back(option.derivation, _derivations(plan))):
                    continue
                exchanged = {t: w for t, w in plan.items() if t != target} | ({target: option} if option else {})
                exchanged_cost = self.cost(exchanged)
                if exchanged_cost < cost * (1 - _GAIN):
                    plan, cost, improves = exchanged, exchanged_cost, True
        return plan

    def _without_losses(self, plan: dict[str, Way]) -> dict[str, Way]:
        """The plan without sources that cost more than they save."""
        gains = {source: -cost for source, cost in self._making(plan).items()}
        for target, way in plan.items():
            gains[way.derivation.source] += self.own[target].alone - way.cost
        return {target: way for target, way in plan.items() if gains[way.derivation.source] > 0}


def _derivations(plan: Plan) -> dict[str, Derivation]:
    return {target: way.derivation for target, way in plan.items()}
