"""How many matches several queries have, counted in one walk where they begin with the same components."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from eventcube.engine.counters import Counters
from eventcube.engine.counting.counts import Found, StageCounts
from eventcube.engine.evaluation import Evaluation
from eventcube.engine.query import RunningQuery
from eventcube.engine.store import States
from eventcube.plan.counting import Counting
from eventcube.plan.physical import MADE
from eventcube.plan.shared_stages import SharedStages, shared_stages

# Sets of queries asked together whose walks are kept.
_MOST_KNOWN = 64


class SharedCounts:
    """The walks that queries share, for each set of queries that are asked together."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], list[tuple[Counting, list[RunningQuery], SharedStages]]] = {}

    def count(
        self, queries: Sequence[RunningQuery], evaluation: Evaluation, states: States, counters: Counters
    ) -> Mapping[str, Found]:
        """The matches of queries that share walks; the others are left out."""
        found: dict[str, Found] = {}
        for counting, alike, shared in self._walks(queries):
            store = evaluation.store(alike[0].query.arrangement, shared.stacks, states)
            counts = StageCounts(counting, store)
            counted = counts.count()
            counters.events_counted += counts.walked
            for query in alike:
                (slot,) = _counting(query).anchors
                found[query.name] = counted.of_step(shared.ends[query.name], slot)
        return found

    def _walks(self, queries: Sequence[RunningQuery]) -> list[tuple[Counting, list[RunningQuery], SharedStages]]:
        key = tuple(query.name for query in queries)
        if key not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = [*_walks_of(queries)]
        return self._known[key]


def _walks_of(queries: Sequence[RunningQuery]) -> Iterator[tuple[Counting, list[RunningQuery], SharedStages]]:
    """Which queries share a walk: those that see the events alike, and are counted in the same direction."""
    alike: dict[object, list[RunningQuery]] = {}
    for query in queries:
        if query.plan.sink.name in MADE and not _counting(query).split:
            counting = _counting(query)
            alike.setdefault((query.query.arrangement, counting.forward, counting.due_last), []).append(query)
    for same in alike.values():
        by_name = {query.name: query for query in same}
        for shared in shared_stages({q.name: (_counting(q).stages, q.query.stacks) for q in same}):
            counting = replace(_counting(same[0]), stages=shared.stages, anchors=(), keys=(), optional=frozenset())
            yield counting, [by_name[name] for name in shared.ends], shared


def _counting(query: RunningQuery) -> Counting:
    counting = query.plan.sink.counting
    assert isinstance(counting, Counting)
    return counting
