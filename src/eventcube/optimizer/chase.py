"""Chase: which queries of a workload are computed from which others, so that all of them together cost least.

Liu et al. 2011 (E-Cube), section 4: queries are the nodes of a graph with a virtual ground, from which each can be
computed by itself; the cheapest plan is a minimum spanning arborescence. Two costs depend on the whole plan here. A
source whose matches are otherwise only counted, or only found where they are due, must make them for those computed
from it: that costs once, however many these are. And equal leading steps run once, whoever needs them. Both are divided
among those that gain, and the shares are corrected until the plan stays the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from eventcube.optimizer.arborescence import minimum_arborescence
from eventcube.plan.workload import Derivation

# How often shares are corrected, at most.
_ROUNDS = 6
# For so few ways × queries, ways of single queries are exchanged, each time for a gain of at least this share.
_EXCHANGES, _GAIN = 20_000, 1e-6
# Plans from which this begins.
_STARTS = 4


@dataclass(frozen=True, slots=True)
class Steps:
    """What some steps cost; `shared` is what others may need, too, and costs once: equal leading steps, links, windows."""

    cost: float
    shared: tuple[tuple[Hashable, float], ...] = ()

    def __add__(self, other: Steps) -> Steps:
        return Steps(self.cost + other.cost, self.shared + other.shared)


@dataclass(frozen=True, slots=True)
class Own:
    """What a query costs by itself.

    `alone` is bound back from its last event, `from_start` from its first components on, which pays only for several
    of a `group`. Its matches are made, not counted, for `making` more, and `all_matches` finds all of them, due or not.
    """

    alone: Steps
    making: float = 0.0
    all_matches: Steps | None = None
    from_start: Steps | None = None
    group: Hashable = None

    @property
    def all_more(self) -> float:
        """What it costs more to find all matches; it can be less."""
        return self.making if self.all_matches is None else self.all_matches.cost - self.alone.cost


@dataclass(frozen=True, slots=True)
class Way:
    """A derivation with what it costs, beside its source; `counts`: the number of the source's matches is enough.

    The target's matches are made, not counted, for `making` more. With `due_steps`, matches of the source that are not
    due are left out first; `all_steps` find all matches of the target, due or not.
    """

    derivation: Derivation
    steps: Steps
    counts: bool
    making: float = 0.0
    due_steps: Steps | None = None
    all_steps: Steps | None = None

    def steps_for(self, made: AbstractSet[str], all_of: AbstractSet[str]) -> Steps:
        """The steps if the matches of some queries are made, and all of some are found."""
        target, source = self.derivation.target, self.derivation.source
        if target in all_of and self.all_steps is not None:
            return self.all_steps
        filtered = source in all_of and target not in all_of
        steps = self.due_steps if filtered and self.due_steps is not None else self.steps
        return replace(steps, cost=steps.cost + self.making) if target in made else steps


Plan = Mapping[str, Way]


class _Account:
    """What steps cost together: those that several have in common cost once."""

    def __init__(self) -> None:
        self._paid: set[Hashable] = set()

    def take(self, steps: Steps) -> float:
        """Take more steps; gives what they cost."""
        total, paid = steps.cost, self._paid
        for step, cost in steps.shared:
            if step in paid:
                total -= cost
            else:
                paid.add(step)
        return total


class Chase:
    """The queries of a workload with their costs."""

    def __init__(self, own: Mapping[str, Own], ways: Sequence[Way]) -> None:
        self.own, self.ways = own, ways
        self._number = {name: i for i, name in enumerate(own, 1)}
        # What plans cost that were tried, by their ways.
        self._tried: dict[frozenset[int], float] = {}

    def cost(self, plan: Plan) -> float:
        """What all queries cost together."""
        key = frozenset(map(id, plan.values()))
        if key not in self._tried:
            self._tried[key] = self._cost(plan)
        return self._tried[key]

    def _cost(self, plan: Plan) -> float:
        made, all_of = _needs(plan)
        account, total = _Account(), 0.0
        groups: dict[Hashable, list[Own]] = {}
        for name, own in self.own.items():
            way = plan.get(name)
            if way is not None:
                total += account.take(way.steps_for(made, all_of))
            elif name in all_of and own.all_matches is not None:
                total += account.take(own.all_matches)
            else:
                total += own.making if name in made else 0.0
                groups.setdefault(own.group if own.from_start is not None else name, []).append(own)
        for members in groups.values():
            total += sum(map(account.take, _bound(members)))
        return total

    def cheapest(self) -> dict[str, Way]:
        """The plan that costs least, as far as it is found."""
        # A way that costs more than the query by itself can only lose.
        ways = [w for w in self.ways if w.steps.cost < self.own[w.derivation.target].alone.cost]
        best: dict[str, Way] = {}
        best_cost = self.cost(best)
        # At first, as many as can gain from a source are taken to share its cost, and steps are shared by all.
        sharers = Counter(way.derivation.source for way in ways)
        roots: Iterable[str] = self.own
        for _ in range(_ROUNDS if ways else 0):
            plan = self._arborescence(ways, sharers, self._shares(roots))
            cost = self.cost(plan)
            if cost < best_cost:
                best, best_cost = plan, cost
            children = Counter(way.derivation.source for way in plan.values())
            if children == sharers:
                break
            sharers, roots = children, [name for name in self.own if name not in plan]
        best = self._without_losses(best)
        if len(ways) * len(self.own) > _EXCHANGES:
            return best
        starts = [best, *sorted(self._by_one_source(ways), key=self.cost)[:_STARTS]]
        return min((self._improved(start, ways) for start in starts), key=self.cost)

    def _by_one_source(self, ways: Sequence[Way]) -> Iterator[dict[str, Way]]:
        """For each source the plan in which all that gain from it are computed from it."""
        for source in dict.fromkeys(way.derivation.source for way in ways):
            yield {w.derivation.target: w for w in ways if w.derivation.source == source}

    def _shares(self, roots: Iterable[str]) -> dict[str, float]:
        """What each query costs by itself if these are, and each pays its share of steps that are equal."""
        users = Counter(step for name in roots for steps in _both(self.own[name]) for step, _ in steps.shared)

        def share(steps: Steps) -> float:
            return steps.cost - sum(cost * (1 - 1 / max(1, users[step])) for step, cost in steps.shared)

        return {name: min(map(share, _both(own))) for name, own in self.own.items()}

    def _arborescence(
        self, ways: Sequence[Way], sharers: Mapping[str, int], alone: Mapping[str, float]
    ) -> dict[str, Way]:
        """The cheapest plan if sources divide what their matches cost among so many."""
        edges = [(0, number, alone[name]) for name, number in self._number.items()]
        first = len(edges)
        for way in ways:
            source, target = way.derivation.source, way.derivation.target
            own = self.own[source]
            more = 0.0 if way.counts else own.making if way.derivation.same_trigger else own.all_more
            cost = way.steps.cost + more / max(1, sharers.get(source, 0))
            edges.append((self._number[source], self._number[target], cost))
        entering = minimum_arborescence(len(self._number) + 1, edges)
        chosen = (ways[edge - first] for edge in entering[1:] if edge >= first)
        return {way.derivation.target: way for way in chosen}

    def _improved(self, plan: dict[str, Way], ways: Sequence[Way]) -> dict[str, Way]:
        """The plan after exchanging the ways of single queries, for as long as one makes it cheaper."""
        options: dict[str, list[Way | None]] = {}
        for way in ways:
            options.setdefault(way.derivation.target, [None]).append(way)
        cost, improves = self.cost(plan), True
        while improves:
            improves = False
            for target, option in ((t, option) for t, ways in options.items() for option in ways):
                if option is plan.get(target) or (option and _leads_back(option, plan)):
                    continue
                exchanged = dict(plan)
                if option is None:
                    del exchanged[target]
                else:
                    exchanged[target] = option
                exchanged_cost = self.cost(exchanged)
                if exchanged_cost < cost * (1 - _GAIN):
                    plan, cost, improves = exchanged, exchanged_cost, True
        return plan

    def _without_losses(self, plan: dict[str, Way]) -> dict[str, Way]:
        """The plan without sources that cost more than they save."""
        cost = self.cost(plan)
        for source in dict.fromkeys(way.derivation.source for way in plan.values()):
            without = {t: w for t, w in plan.items() if w.derivation.source != source}
            without_cost = self.cost(without)
            if without_cost < cost:
                plan, cost = without, without_cost
        return plan


def _both(own: Own) -> tuple[Steps, ...]:
    return (own.alone,) if own.from_start is None else (own.alone, own.from_start)


def _bound(members: Sequence[Own]) -> list[Steps]:
    """How queries of a group are bound: back from their last events or, if several are, from their first components on.

    What other groups have in common with these has no part in that.
    """
    backward = [own.alone for own in members]
    forward = [own.from_start for own in members if own.from_start is not None]
    if len(forward) < 2 or sum(map(_Account().take, backward)) <= sum(map(_Account().take, forward)):
        return backward
    return forward


def _needs(plan: Plan) -> tuple[set[str], set[str]]:
    """The sources whose matches must be made, and those of which all are needed, not only those that are due."""
    made: set[str] = set()
    all_of: set[str] = set()
    for way in plan.values():
        if not way.counts:
            source: str | None = way.derivation.source
            while source is not None and source not in made:
                made.add(source)
                above = plan.get(source)
                # A query whose matches are all those of its source needs them made, too.
                source = above.derivation.source if above is not None and above.counts else None
        if not way.derivation.same_trigger:
            source = way.derivation.source
            while source is not None and source not in all_of:
                all_of.add(source)
                source = plan[source].derivation.source if source in plan else None
    return made, all_of


def _leads_back(way: Way, plan: Plan) -> bool:
    """Whether the source is itself computed from the target."""
    source, target = way.derivation.source, way.derivation.target
    while source != target and source in plan:
        source = plan[source].derivation.source
    return source == target
