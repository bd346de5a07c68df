"""Queries that sort the events alike: equal leading steps run once, and some are computed from matches of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from eventcube.engine.counters import Counters
from eventcube.engine.counting.shared import SharedCounts
from eventcube.engine.evaluation import Evaluation
from eventcube.engine.execute import Execution
from eventcube.engine.flow import Followers, Label, Matches, Result, Target, run_tree
from eventcube.engine.kept_sources import KeptSources
from eventcube.engine.kernels import Ints
from eventcube.engine.query import RunningQuery, part_choices
from eventcube.engine.sampling import StoredEvents
from eventcube.engine.store import States
from eventcube.engine.table import Table
from eventcube.engine.views.shared import SharedViews
from eventcube.engine.views.strategy import Parts
from eventcube.optimizer.derivations import DerivationChoice, with_sources
from eventcube.optimizer.program import StrategyCost
from eventcube.optimizer.sharing import Candidate, SharingChoice
from eventcube.options import INDEPENDENT
from eventcube.plan.routes import Route, RouteTree, route_trees
from eventcube.plan.steps import FilterByState, State
from eventcube.plan.workload import Derivation, StackKey

# Routes of different sets of due queries whose trees are kept.
_MAX_TREES = 64

_DUE = frozenset({State.DUE})


class QueryGroup:
    """Queries with the same order of events, of which the same are due at a time."""

    def __init__(self, queries: Sequence[RunningQuery], scratch: Ints, sharing: str) -> None:
        self.queries = {query.name: query for query in queries}
        # The work of shared steps.
        self.counters = Counters()
        self._scratch = scratch
        # The queries whose matches an event of a stack makes due: no others are looked at.
        self._triggered: dict[int, list[RunningQuery]] = {}
        for query in queries:
            for number in query.triggers:
                self._triggered.setdefault(number, []).append(query)
        self._place = {query: place for place, query in enumerate(queries)}
        self._shares_steps = sharing != INDEPENDENT
        self.counts = SharedCounts()
        if self._shares_steps:
            # A query that searches for matches itself goes back in time.
            alike = [query for query in queries if not query.sink.searches]
            views = SharedViews(query.query for query in alike)
            for query in alike:
                query.share_views(views)
        self.sharing = SharingChoice()
        self.reuse = DerivationChoice(sharing, {query.name: query.query for query in queries})
        self._kept = KeptSources(self.queries)
        self._trees: dict[object, list[tuple[RouteTree, Parts]]] = {}

    def shared_choices(self) -> Iterator[str]:
        """What was chosen in steps that several queries share, in words."""
        for trees in self._trees.values():
            for _, parts in trees:
                yield from part_choices(parts, measured=False)

    def run(self, evaluation: Evaluation, batch: int) -> Iterator[Result]:
        """The matches that are due, in the batch of this number."""
        states = evaluation.states(next(iter(self.queries.values())).query.arrangement)
        if states.are_cuts and states.done >= states.due:
            return
        due = {number for number in self._triggered if evaluation.is_due(number, states)}
        touched = [query for number in due for query in self._triggered[number]]
        collecting: list[RunningQuery] = []
        asked = [q for q in sorted(dict.fromkeys(touched), key=self._place.__getitem__) if not q.sink.is_full]
        together = self._shares_steps and len(asked) > 1
        decided = self.counts.decide(asked, evaluation, states, self.counters) if together else {}
        for query in asked:
            query.ran = batch
            if query.sink.searches:
                found = query.search(evaluation, states, decided.get(query.name))
                yield from ((query.name, batch) for batch in found)
                query.count_bytes()
            else:
                collecting.append(query)
        if collecting:
            yield from self._collect(collecting, evaluation, states, batch)
            for query in collecting:
                query.count_bytes()

    def _collect(
        self, queries: list[RunningQuery], evaluation: Evaluation, states: States, batch: int
    ) -> Iterator[Result]:
        executions = _Executions(self.queries, evaluation, states, self._kept)
        route = self._route(queries, executions, evaluation)
        self._kept.begin(route, evaluation.rows, executions.due, evaluation.first_sequence)
        for name in route.names:
            # Also of those that have nothing due, but that others are computed from.
            self.queries[name].ran = batch
        all_due = states.are_cuts and not states.done and states.due == len(evaluation.rows)
        matches = self._matches(route, executions, filtered=not all_due)
        started = []
        for plan, parts in self._trees_of(route):
            targets = {label: self._target(label, route, matches, executions) for label in plan.labels}
            store = evaluation.store(plan.arrangement, plan.tree.stacks, states)
            execution = Execution(store, parts, self.counters, self._scratch)
            if plan.source is None:
                started.append((plan.tree, execution, targets))
            else:
                source = matches[plan.source]
                of_source = executions.other(plan.source, plan.steps) if plan.steps else source.execution
                below = Followers(of_source, plan.steps, plan.columns, plan.tree, execution, targets)
                source.followers.append(below)
        past = self._kept.past(route.kept, {name: executions[name].store for name in route.kept}, evaluation.rows)
        for name, tables in past.items():
            for followers in matches[name].followers:
                for table in tables:
                    yield from followers.take(table)
        for tree, execution, targets in started:
            yield from run_tree(tree, execution, targets, Table.single())
        self._kept.end()
        for query in queries:
            yield from matches[query.name].flush()

    def _matches(self, route: Route, executions: _Executions, *, filtered: bool) -> dict[str, Matches]:
        """Where the matches of each query go."""
        found = {}
        for name in route.names:
            query = self.queries[name]
            due = None
            if filtered and name in route.unrestricted:
                due = FilterByState(query.query.triggers, query.plan.forward, _DUE)
            found[name] = Matches(query, executions[name], due, self._kept.extended(name))
        return found

    def _target(self, label: Label, route: Route, matches: Mapping[str, Matches], executions: _Executions) -> Target:
        """Where a branch leads, with an execution for its program."""
        name, delta = label
        derivation, unrestricted = route.derivations.get(name), route.unrestricted
        if derivation is None and name not in unrestricted:
            return Target(matches[name], executions[name])
        source = None if derivation is None else (derivation.source, derivation.case, derivation.source in route.wanted)
        stacks = derivation.deltas[delta - 1].stacks if derivation is not None and delta else None
        return Target(matches[name], executions.other(name, (source, delta, name in unrestricted), stacks))

    def _route(self, queries: list[RunningQuery], executions: _Executions, evaluation: Evaluation) -> Route:
        """How the due queries are computed, and those that they are computed from."""
        names = [query.name for query in queries]
        derivations = self.reuse.derivations(names, executions)
        possible = {target: d for target, d in derivations.items() if self._is_possible(d, evaluation)}
        if len(possible) < len(derivations):
            derivations = with_sources(names, possible)
        sources = {source for d in derivations.values() for source in d.sources}
        wanted = {query.name for query in queries} | sources
        roots = [query for name, query in self.queries.items() if name in wanted and name not in derivations]
        kept = self._kept.available(derivations)
        unrestricted = Route({}, derivations, kept).unrestricted
        programs = {}
        for query in roots:
            if query.name in unrestricted:
                assert query.query.unrestricted is not None
                programs[query.name] = query.query.unrestricted
            else:
                programs[query.name] = query.program(executions[query.name])
        for name in self._from_start([q for q in roots if q.name not in unrestricted], executions):
            program = self.queries[name].query.from_start
            assert program is not None
            programs[name] = program
        return Route(programs, derivations, kept)

    def _is_possible(self, derivation: Derivation, evaluation: Evaluation) -> bool:
        """Whether all events are there: of a stack that was not retained for as long before, some may be missing."""
        target, source = self.queries[derivation.target], self.queries[derivation.source]
        return derivation.same_trigger or evaluation.can_derive(target.query, source.query)

    def _from_start(self, queries: list[RunningQuery], executions: _Executions) -> frozenset[str]:
        """The queries whose common first components are bound first, because that should cost less."""
        if not self._shares_steps:
            return frozenset()
        candidates = [
            Candidate(q.name, q.plan, q.query.stacks, q.plan.program, q.query.from_start, not q.only_counts)
            for q in queries
            if q.query.from_start is not None and not q.programs.is_open
        ]
        if len(candidates) < 2:
            return frozenset()
        return self.sharing.choose(candidates, executions.events, queries[0].parts.cost)

    def _trees_of(self, route: Route) -> list[tuple[RouteTree, Parts]]:
        key = route.key
        if key not in self._trees:
            if len(self._trees) >= _MAX_TREES:
                self._trees.clear()
            plans = {name: query.query for name, query in self.queries.items()}
            counted = frozenset(name for name, query in self.queries.items() if query.only_counts)
            trees = route_trees(route, plans, counted, shared=self._shares_steps)
            # Shared steps have nothing but negated events, of which nothing is kept.
            self._trees[key] = [(tree, Parts()) for tree in trees]
        return self._trees[key]


class _Executions:
    """The executions of one evaluation: one for each query, and for each delta."""

    def __init__(
        self, queries: Mapping[str, RunningQuery], evaluation: Evaluation, states: States, kept: KeptSources
    ) -> None:
        self._queries, self._evaluation, self._states, self._kept = queries, evaluation, states, kept
        self._known: dict[str, Execution] = {}

    def __getitem__(self, name: str) -> Execution:
        if name not in self._known:
            self._known[name] = self._queries[name].execution(self._evaluation, self._states)
        return self._known[name]

    @property
    def size(self) -> int:
        """How many events there are."""
        return len(self._evaluation.rows)

    @property
    def due(self) -> int:
        """How many events are due."""
        return self._states.count_due()

    def other(self, name: str, program: object, stacks: tuple[StackKey, ...] | None = None) -> Execution:
        """An execution of another program of a query."""
        return self._queries[name].other_execution(self._evaluation, self._states, program, stacks)

    def events(self, name: str, stacks: tuple[StackKey, ...] | None = None) -> StoredEvents:
        """The events as a query sees them, or as it does with other stacks."""
        return StoredEvents(self[name] if stacks is None else self.other(name, None, stacks))

    def materializes(self, name: str) -> bool:
        """Whether the matches of a query are made, not only counted."""
        return not self._queries[name].only_counts

    def keeps_matches(self, name: str) -> bool:
        """Whether matches of a query are kept from batch to batch, if others that end later are computed from them."""
        return self._kept.keeps(name, self.size, self.due)

    def strategy_cost(self, name: str) -> StrategyCost:
        """What strategies for the nested parts of a query cost."""
        return self._queries[name].parts.cost
