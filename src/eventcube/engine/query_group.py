"""Queries that see the events alike: equal leading steps of them run once, and chunks flow into every branch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from eventcube.engine.counters import Counters
from eventcube.engine.evaluation import Evaluation
from eventcube.engine.execute import Execution
from eventcube.engine.kernels import Ints
from eventcube.engine.query import Matches, RunningQuery
from eventcube.engine.sampling import StoredEvents
from eventcube.engine.store import States
from eventcube.engine.table import Table
from eventcube.engine.views.strategy import Parts
from eventcube.optimizer.sharing import Candidate, SharingChoice
from eventcube.plan.step_tree import Branch, Leaf, Node, StepTree, shareable, step_tree
from eventcube.plan.steps import Program
from eventcube.plan.workload import Arrangement

# Trees of different sets of due queries that are kept.
_MAX_TREES = 64

Result = tuple[str, pa.RecordBatch]


class QueryGroup:
    """The queries of one arrangement."""

    def __init__(self, arrangement: Arrangement, queries: Sequence[RunningQuery], scratch: Ints) -> None:
        self.arrangement, self.queries = arrangement, queries
        # The work of shared steps.
        self.counters = Counters()
        self._scratch = scratch
        # The queries whose matches an event of a stack makes due: no others are looked at.
        self._triggered: dict[int, list[RunningQuery]] = {}
        for query in queries:
            for number in query.triggers:
                self._triggered.setdefault(number, []).append(query)
        self._place = {query: place for place, query in enumerate(queries)}
        self.sharing = SharingChoice()
        self._trees: dict[tuple[tuple[str, int], ...], _Tree] = {}

    def run(self, evaluation: Evaluation, batch: int) -> Iterator[Result]:
        """The matches that are due, in the batch of this number."""
        states = evaluation.states(self.arrangement)
        if states.are_cuts and states.done >= states.due:
            return
        due = {number for number in self._triggered if evaluation.is_due(number, states)}
        touched = [query for number in due for query in self._triggered[number]]
        collecting: list[RunningQuery] = []
        for query in sorted(dict.fromkeys(touched), key=self._place.__getitem__):
            if query.sink.is_full:
                continue
            query.ran = batch
            if query.sink.searches:
                yield from ((query.name, batch) for batch in query.search(evaluation, states))
                query.parts.count_bytes(query.counters)
            else:
                collecting.append(query)
        if collecting:
            yield from self._collect(collecting, evaluation, states)
            for query in collecting:
                query.parts.count_bytes(query.counters)

    def _collect(self, queries: list[RunningQuery], evaluation: Evaluation, states: States) -> Iterator[Result]:
        executions = {query.name: query.execution(evaluation, states) for query in queries}
        programs = {query.name: query.program(executions[query.name]) for query in queries}
        if len(queries) == 1:
            (query,) = queries
            matches = Matches(query, executions[query.name])
            yield from ((query.name, b) for b in matches.take(programs[query.name], Table.single()))
            yield from ((query.name, b) for b in matches.flush())
            return
        for name in self._from_start(queries, executions, programs):
            program = next(q.query.from_start for q in queries if q.name == name)
            assert program is not None
            programs[name] = program
        tree = self._tree(queries, programs)
        sinks = {query.name: Matches(query, executions[query.name]) for query in queries}
        store = evaluation.store(self.arrangement, tree.plan.stacks, states)
        shared = Execution(store, tree.parts, self.counters, self._scratch)
        yield from _run(tree.plan, shared, sinks)
        for name, matches in sinks.items():
            yield from ((name, batch) for batch in matches.flush())

    def _from_start(
        self, queries: list[RunningQuery], executions: Mapping[str, Execution], programs: Mapping[str, Program]
    ) -> frozenset[str]:
        """The queries whose common first components are bound first, because that should cost less."""
        candidates = [
            Candidate(q.name, q.plan, q.query.stacks, programs[q.name], q.query.from_start, not q.sink.only_counts)
            for q in queries
            if q.query.from_start is not None and not q.programs.is_open
        ]
        if len(candidates) < 2:
            return frozenset()
        return self.sharing.choose(candidates, lambda name: StoredEvents(executions[name]), queries[0].parts.cost)

    def _tree(self, queries: list[RunningQuery], programs: Mapping[str, Program]) -> _Tree:
        # Programs live as long as the plan, so that their ids tell them apart.
        key = tuple((query.name, id(programs[query.name])) for query in queries)
        if key not in self._trees:
            if len(self._trees) >= _MAX_TREES:
                self._trees.clear()
            branches = [
                Branch(
                    q.name, programs[q.name], q.query.stacks, shareable(programs[q.name], counted=q.sink.only_counts)
                )
                for q in queries
            ]
            self._trees[key] = _Tree(step_tree(branches))
        return self._trees[key]


def _branch(query: RunningQuery, program: Program) -> Branch:
    return Branch(query.name, program, query.query.stacks, shareable(program, counted=query.sink.only_counts))


class _Tree:
    """A tree of steps with the negated events of its shared steps, of which nothing is kept."""

    def __init__(self, plan: StepTree) -> None:
        self.plan = plan
        self.parts = Parts()


def _run(tree: StepTree, execution: Execution, sinks: Mapping[str, Matches]) -> Iterator[Result]:
    """Run the steps of a tree depth first, chunk by chunk: memory is bounded by its depth and the size of a chunk."""
    single = Table.single()
    yield from _deliver(tree.leaves, single, sinks)
    for root in tree.nodes:
        stack: list[tuple[Node, Iterator[Table]]] = [(root, execution.step(root.step, single))]
        while stack:
            node, chunks = stack[-1]
            table = next(chunks, None)
            if table is None:
                stack.pop()
            elif len(table):
                yield from _deliver(node.leaves, table, sinks)
                stack += [(below, execution.step(below.step, table)) for below in reversed(node.nodes)]


def _deliver(leaves: Sequence[Leaf], table: Table, sinks: Mapping[str, Matches]) -> Iterator[Result]:
    """Hand partial matches to the queries that go on by themselves."""
    for leaf in leaves:
        own = Table(tuple(leaf.slots[column] for column in table.columns), table.data)
        for batch in sinks[leaf.query].take(leaf.rest, own):
            yield leaf.query, batch
