"""Matches on their way: from the program of a query to its sink, and to the queries that are computed from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from eventcube.engine.execute import Execution
from eventcube.engine.kept_matches import KeptMatches
from eventcube.engine.output import Output
from eventcube.engine.query import RunningQuery
from eventcube.engine.table import Table
from eventcube.plan.step_tree import Leaf, Node, StepTree
from eventcube.plan.steps import FilterByState, Program

# The name of a query, and a batch of its result.
Result = tuple[str, pa.RecordBatch]
# A query by name, and which of its programs: 0, or the number of a delta.
Label = tuple[str, int]


class Matches:
    """Takes partial matches of one evaluation through the rest of a program, to the sink of the query.

    With `due`, only matches that this step keeps are reported: the others are for the queries that are computed from
    them, the `followers`. All of them are `kept` for later batches, if those need them.
    """

    def __init__(
        self,
        query: RunningQuery,
        execution: Execution,
        due: FilterByState | None = None,
        kept: KeptMatches | None = None,
    ) -> None:
        self.query, self.execution = query, execution
        self._kept = kept
        self.followers: list[Followers] = []
        self._due = due
        self._output = Output(query.plan, execution)

    @property
    def only_counts(self) -> bool:
        """Whether nobody needs the matches, but only their number."""
        needed = self._due is not None or self._kept is not None
        return self.query.only_counts and not needed and all(followers.only_count for followers in self.followers)

    def take(self, program: Program, table: Table, execution: Execution | None = None) -> Iterator[Result]:
        """Run the rest of the program for partial matches; gives rows of results that are final now.

        A delta has an execution of its own.
        """
        executor = execution or self.execution
        if executor.is_futile(program):
            return
        if self.only_counts:
            self.add_count(executor.count(program, table))
            return
        for out in executor.run(program, table):
            yield from self._report(out)
            for followers in self.followers:
                yield from followers.take(out)

    def add_count(self, matches: int) -> None:
        """Take note of matches that were only counted."""
        self.query.counters.matches += matches
        self.query.sink.add_count(matches)
        for followers in self.followers:
            followers.add_count(matches)

    def _report(self, table: Table) -> Iterator[Result]:
        if self._kept is not None:
            self._kept.add(table, self.execution.store)
        if self._due is not None:
            (table,) = self.execution.step(self._due, table)
        self.query.counters.matches += len(table)
        if self.query.kept is not None:
            self.query.kept.add(table, self.execution.store)
        if self.query.sink.only_counts:
            self.query.sink.add_count(len(table))
        else:
            for batch in self.query.sink.add(table, self._output):
                yield self.query.name, batch

    def flush(self) -> Iterator[Result]:
        """The rows that are final once all matches came."""
        if self.query.kept is not None:
            self.query.kept.flush()
        for batch in self.query.sink.flush(self._output):
            yield self.query.name, batch


@dataclass(frozen=True, slots=True)
class Followers:
    """Queries that are computed from the matches of another, the source.

    Matches go through `steps` in the slots of the source; `columns` has the slot of the tree for each of its slots.
    """

    source: Execution
    steps: Program
    columns: Mapping[int, int]
    tree: StepTree
    execution: Execution
    targets: Mapping[Label, Target]

    @property
    def only_count(self) -> bool:
        """Whether the number of the source's matches is all that is needed: they are those of the targets."""
        at_once = not self.steps and not self.tree.nodes and not any(leaf.rest for leaf in self.tree.leaves)
        return at_once and all(target.matches.only_counts for target in self.targets.values())

    def take(self, table: Table) -> Iterator[Result]:
        """Compute the targets' matches from some of the source."""
        for out in self.source.run(self.steps, table):
            taken = [c for c in out.columns if c in self.columns]
            own = out if len(taken) == len(out.columns) else out.only(taken)
            moved = own.renamed(tuple(self.columns[c] for c in taken))
            yield from run_tree(self.tree, self.execution, self.targets, moved)

    def add_count(self, matches: int) -> None:
        """Take note of matches of the source that were only counted."""
        for target in self.targets.values():
            target.matches.add_count(matches)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a branch of a tree leads: the matches of a query, by an execution that sees the branch's stacks."""

    matches: Matches
    execution: Execution


def run_tree(tree: StepTree, execution: Execution, targets: Mapping[Label, Target], table: Table) -> Iterator[Result]:
    """Run the steps of a tree depth first, chunk by chunk: memory is bounded by its depth and the size of a chunk."""
    yield from _deliver(tree.leaves, table, targets)
    for root in tree.nodes:
        stack: list[tuple[Node, Iterator[Table]]] = [(root, execution.step(root.step, table))]
        while stack:
            node, chunks = stack[-1]
            out = next(chunks, None)
            if out is None:
                stack.pop()
            elif len(out):
                yield from _deliver(node.leaves, out, targets)
                stack += [(below, execution.step(below.step, out)) for below in reversed(node.nodes)]


def _deliver(leaves: Sequence[Leaf], table: Table, targets: Mapping[Label, Target]) -> Iterator[Result]:
    """Hand partial matches to the queries that go on by themselves."""
    for leaf in leaves:
        taken = [column for column in table.columns if column in leaf.slots]
        own = table if len(taken) == len(table.columns) else table.only(taken)
        target = targets[leaf.query, leaf.delta]
        slots = tuple(leaf.slots[column] for column in taken)
        yield from target.matches.take(leaf.rest, own.renamed(slots), target.execution)
