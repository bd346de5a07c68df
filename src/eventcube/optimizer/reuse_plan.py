"""Plans in which queries of a workload are computed from others, and what such a plan costs.

Two costs depend on the whole plan. A source whose matches are otherwise only counted, or only found where they are due,
must make them for those computed from it: that costs once, however many these are. And what several have in common is
done once: equal leading steps, links between stacks, the windows of events.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from eventcube.plan.workload import Derivation


class Once(int):
    """The number of what is found once for all events, whoever needs it: the windows of events, and links."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Steps:
    """What some steps cost; `shared` is what others may need, too, each with its cost."""

    cost: float
    shared: tuple[tuple[Hashable, float], ...] = ()

    def __add__(self, other: Steps) -> Steps:
        """The steps of both; what they share costs once."""
        own = dict(self.shared)
        more = tuple(item for item in other.shared if item[0] not in own)
        twice = sum(cost for step, cost in other.shared if step in own)
        return Steps(self.cost + other.cost - twice, self.shared + more)


# Steps that few plans need are estimated when they are asked for.
OnDemand = Callable[[], Steps]


@dataclass(frozen=True, slots=True)
class Own:
    """What a query costs by itself.

    `alone` is bound back from its last event, `from_start` from its first components on, which pays only for several
    of a `group`. Its matches are made, not counted, for `making` more, and `all_matches` finds all of them, due or not.
    """

    alone: Steps
    making: float = 0.0
    all_matches: OnDemand | None = None
    from_start: Steps | None = None
    group: Hashable = None

    @property
    def both(self) -> tuple[Steps, ...]:
        """The steps by which it can be bound."""
        return (self.alone,) if self.from_start is None else (self.alone, self.from_start)

    @property
    def all_more(self) -> float:
        """What it costs more to find all matches; it can be less."""
        return self.making if self.all_matches is None else self.all_matches().cost - self.alone.cost


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
    due_steps: OnDemand | None = None
    all_steps: OnDemand | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        """The queries whose matches are used."""
        return self.derivation.sources

    @property
    def target(self) -> str:
        """The query that is computed."""
        return self.derivation.target

    def steps_for(self, made: AbstractSet[str], all_of: AbstractSet[str]) -> Steps:
        """The steps if the matches of some queries are made, and all of some are found."""
        if self.target in all_of and self.all_steps is not None:
            return self.all_steps()
        filtered = self.target not in all_of and not all_of.isdisjoint(self.sources)
        steps = self.due_steps() if filtered and self.due_steps is not None else self.steps
        return Steps(steps.cost + self.making, steps.shared) if self.target in made else steps


# How queries are computed from others, by name; those by themselves are left out.
Plan = Mapping[str, Way]


class Account:
    """What steps cost together: what several have in common costs once, and nothing if it is paid already."""

    def __init__(self, paid: Iterable[Hashable] = ()) -> None:
        self.paid = set(paid)

    def take(self, steps: Steps) -> float:
        """Take more steps; gives what they cost."""
        total, paid = steps.cost, self.paid
        for step, cost in steps.shared:
            if step in paid:
                total -= cost
            else:
                paid.add(step)
        return total


class PlanCosts:
    """What some queries cost together by plans, in which no others are computed from these, nor these from others."""

    def __init__(self, own: Mapping[str, Own]) -> None:
        self._own = own
        # How queries of groups are bound, by their names.
        self._bound: dict[tuple[str, ...], list[Steps]] = {}

    def cost(self, plan: Plan, account: Account) -> float:
        """What they cost by a plan."""
        made, all_of = _needs(plan)
        total = 0.0
        groups: dict[Hashable, list[str]] = {}
        for name, costs in self._own.items():
            way = plan.get(name)
            if way is not None:
                total += account.take(way.steps_for(made, all_of))
            elif name in all_of and costs.all_matches is not None:
                total += account.take(costs.all_matches())
            else:
                total += costs.making if name in made else 0.0
                groups.setdefault(costs.group if costs.from_start is not None else name, []).append(name)
        for names in groups.values():
            members = tuple(names)
            if members not in self._bound:
                self._bound[members] = _bound([self._own[name] for name in members])
            total += sum(map(account.take, self._bound[members]))
        return total


def _bound(members: Sequence[Own]) -> list[Steps]:
    """How queries of a group are bound: back from their last events or, if several are, from their first components on.

    Only their steps have a part in that, as when they run: windows and links are there for other groups, too.
    """
    backward = [own.alone for own in members]
    forward = [own.from_start for own in members if own.from_start is not None]
    once = {step for steps in (*backward, *forward) for step, _ in steps.shared if isinstance(step, Once)}
    if len(forward) < 2 or sum(map(Account(once).take, backward)) <= sum(map(Account(once).take, forward)):
        return backward
    return forward


def _needs(plan: Plan) -> tuple[set[str], set[str]]:
    """The sources whose matches must be made, and those of which all are needed, not only those that are due."""
    made: set[str] = set()
    all_of: set[str] = set()
    for way in plan.values():
        if not way.counts:
            made.update(way.sources)
        if not way.derivation.same_trigger:
            all_of.update(way.sources)
    # A query whose matches are all those of its source needs them made, too.
    _follow(made, {target: way for target, way in plan.items() if way.counts})
    _follow(all_of, plan)
    return made, all_of


def _follow(names: set[str], plan: Plan) -> None:
    """Add the queries that some queries are computed from."""
    todo = [name for name in names if name in plan]
    while todo:
        for source in plan[todo.pop()].sources:
            if source not in names:
                names.add(source)
                todo += [source] if source in plan else []
