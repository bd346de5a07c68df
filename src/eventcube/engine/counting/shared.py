"""How many matches several queries have, counted in one walk where they begin with the same components."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from eventcube.engine.counters import Counters
from eventcube.engine.counting.counts import Found, StageCounts
from eventcube.engine.counting.decision import CountableQuery, Decision
from eventcube.engine.evaluation import Evaluation
from eventcube.engine.query import RunningQuery
from eventcube.engine.store import States
from eventcube.optimizer.aggregates import COUNTING, MAKING, AggregateChoice, Walks, walking_cost
from eventcube.optimizer.choose import Costs
from eventcube.plan.counting import Counting
from eventcube.plan.shared_stages import SharedStages, shared_stages

# Sets of queries asked together whose walks are kept.
_MOST_KNOWN = 64


class SharedCounts:
    """The walks that queries share, for each set of queries that are asked together."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], list[SharedWalk]] = {}

    def decide(
        self, queries: Sequence[RunningQuery], evaluation: Evaluation, states: States, counters: Counters
    ) -> Mapping[str, Decision]:
        """How the matches of queries that share walks are found; the others are left out."""
        decided = [(walk, walk.decide(evaluation, states, counters)) for walk in self._walks(queries)]
        return {name: decision for walk, decision in decided for name in walk.queries}

    def choices(self) -> Iterator[str]:
        """What was decided for the queries of each walk, in words, if it was weighed."""
        for walk in (walk for walks in self._known.values() for walk in walks):
            if walk.choice.expected:
                yield f"aggregates of {', '.join(walk.queries)}, together: {walk.choice.summary()}"

    def _walks(self, queries: Sequence[RunningQuery]) -> list[SharedWalk]:
        key = tuple(query.name for query in queries)
        if key not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = [*_walks_of(queries)]
        return self._known[key]


class SharedWalk:
    """A walk in which the matches of several queries are counted, unless to make those of all should cost less."""

    def __init__(self, counting: Counting, shared: SharedStages, queries: Mapping[str, RunningQuery]) -> None:
        self.queries, self.choice = queries, AggregateChoice(len(queries))
        self._counting, self._shared = counting, shared
        self._countable = {name: query.countable for name, query in queries.items() if query.countable is not None}
        self._by_cost = all(query.plan.sink.by_cost for query in queries.values())

    def decide(self, evaluation: Evaluation, states: States, counters: Counters) -> Decision:
        """How to find the matches of due events."""

        def weigh() -> Costs:
            making, weighed = 0.0, 0
            for name, countable in self._countable.items():
                making += countable.making_cost(self.queries[name].execution(evaluation, states))
                weighed += 1
                if making > least:
                    break
            return Costs({COUNTING: least, MAKING: making}, frozenset({MAKING} if weighed < len(self.queries) else ()))

        budget = None
        if self._by_cost:
            least = self._cost(evaluation)
            budget = self.choice.budget(least, states.count_due(), weigh)
        return Decision(self.choice, budget, lambda: self._count(evaluation, states, counters))

    def _cost(self, evaluation: Evaluation) -> float:
        """What it costs to count the matches of all queries: in one walk, and in those that each takes by itself."""
        rows, stacks = evaluation.rows, self._shared.stacks
        sizes = {slot: len(rows.stacks[stacks[slot]]) for slot in self._counting.stages.slots}
        together = walking_cost(self._counting.stages, sizes, Walks(1, 0))
        return together + sum(query.counting_cost(rows, counted=True) for query in self._countable.values())

    def _count(self, evaluation: Evaluation, states: States, counters: Counters) -> Mapping[str, Found]:
        """The matches of each query."""
        first = next(iter(self.queries.values()))
        store = evaluation.store(first.query.arrangement, self._shared.stacks, states)
        counts = StageCounts(self._counting, store)
        found = counts.count()
        counters.events_counted += counts.walked
        ends = {name: query.counting.anchors for name, query in self._countable.items()}
        return {name: found.of_step(self._shared.ends[name], slot) for name, (slot,) in ends.items()}


def _walks_of(queries: Sequence[RunningQuery]) -> Iterator[SharedWalk]:
    """Which queries share a walk: those that see the events alike, and are counted in the same direction."""
    alike: dict[object, dict[str, tuple[RunningQuery, CountableQuery]]] = {}
    for query in queries:
        if query.countable is not None and not query.countable.counting.split:
            counting = query.countable.counting
            key = query.query.arrangement, counting.forward, counting.due_last
            alike.setdefault(key, {})[query.name] = query, query.countable
    for same in alike.values():
        first = next(iter(same.values()))[1].counting
        for shared in shared_stages({n: (c.counting.stages, q.query.stacks) for n, (q, c) in same.items()}):
            counting = replace(first, stages=shared.stages, anchors=(), keys=(), optional=frozenset())
            yield SharedWalk(counting, shared, {name: same[name][0] for name in shared.ends})
