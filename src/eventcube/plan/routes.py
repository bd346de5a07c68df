"""Routes of a workload: which queries are computed from the events, and which from the matches of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from eventcube.plan.step_tree import Branch, StepTree, shareable, step_tree
from eventcube.plan.steps import Program, numbered
from eventcube.plan.workload import Arrangement, Derivation, WorkloadQuery


def unrestricted(derivations: Mapping[str, Derivation], kept: frozenset[str] = frozenset()) -> frozenset[str]:
    """The sources of which all matches are needed, not only those that are due; of some, earlier ones are `kept`."""
    found: set[str] = set()
    added = True
    while added:
        wanted = (d for target, d in derivations.items() if not d.same_trigger or target in found - kept)
        sources = {source for derivation in wanted for source in derivation.sources}
        added = not sources <= found
        found |= sources
    return frozenset(found)


class FromSources(Protocol):
    """A way in which a query is computed from others."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The queries whose matches are used."""

    @property
    def target(self) -> str:
        """The query that is computed."""


def leads_back(way: FromSources, plan: Mapping[str, FromSources]) -> bool:
    """Whether a source is itself computed from the target, as equal queries might be."""
    todo = [*way.sources]
    while todo and todo[-1] != way.target:
        name = todo.pop()
        todo += plan[name].sources if name in plan else ()
    return bool(todo)


@dataclass(frozen=True)
class Route:
    """How some queries are computed: from the events by these programs, or from matches of others by derivations.

    Of those that are `kept`, matches of earlier batches are at hand.
    """

    programs: Mapping[str, Program]
    derivations: Mapping[str, Derivation] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The queries that are computed."""
        return *self.programs, *self.derivations

    @cached_property
    def wanted(self) -> frozenset[str]:
        """The queries of which all matches, due or not, are needed, because others are computed from them."""
        return unrestricted(self.derivations, self.kept)

    @cached_property
    def unrestricted(self) -> frozenset[str]:
        """Those of which all matches are found, as earlier ones are not kept."""
        return self.wanted - self.kept

    @property
    def key(self) -> object:
        """What tells routes apart; programs and derivations live as long as the plan."""
        programs = tuple((name, id(program)) for name, program in self.programs.items())
        return programs, tuple((name, id(derivation)) for name, derivation in self.derivations.items()), self.kept


@dataclass(frozen=True, slots=True)
class RouteTree:
    """Steps that start from the events or, with a `source`, from its matches.

    Those first go through `steps`; `columns` has the slot of the tree for each slot of the source.
    """

    arrangement: Arrangement
    tree: StepTree
    source: str | None = None
    steps: Program = ()
    columns: Mapping[int, int] = field(default_factory=dict)

    @property
    def labels(self) -> Iterator[tuple[str, int]]:
        """The queries that it leads to, each with the number of the program."""
        nodes = (leaf for node in self.tree.nodes for leaf in node.all_leaves())
        return ((leaf.query, leaf.delta) for leaves in (self.tree.leaves, nodes) for leaf in leaves)


def route_trees(
    route: Route, queries: Mapping[str, WorkloadQuery], counted: frozenset[str], *, shared: bool
) -> tuple[RouteTree, ...]:
    """The trees of a route; `counted` queries need only the number of matches. Unless `shared`, no step is."""
    roots: dict[object, list[Branch]] = {}
    for branch in _roots(route, queries, counted):
        arrangement = queries[branch.query].arrangement
        roots.setdefault(arrangement if shared else (arrangement, branch.query, branch.delta), []).append(branch)
    trees = [RouteTree(queries[group[0].query].arrangement, step_tree(group)) for group in roots.values()]
    below: dict[tuple[str, Program, Arrangement], list[_Input]] = {}
    for target, derivation in route.derivations.items():
        arrangement = queries[target].arrangement
        below.setdefault((derivation.source, derivation.source_steps, arrangement), []).append(
            (derivation, derivation.slots)
        )
        for other in derivation.united:
            below.setdefault((other.source, (), arrangement), []).append((derivation, other.slots))
    trees += (_below(*key, inputs, route, queries, counted) for key, inputs in below.items())
    return tuple(trees)


def _roots(route: Route, queries: Mapping[str, WorkloadQuery], counted: frozenset[str]) -> Iterator[Branch]:
    """The programs that start from the events."""
    unrestricted = route.unrestricted
    for name, program in route.programs.items():
        # The program of a source is numbered when it is used first, as are those of derivations.
        program = numbered(program) if name in unrestricted else program
        yield Branch(name, program, queries[name].stacks, shareable(program, counted=name in counted))
    for name, derivation in route.derivations.items():
        for number, delta in enumerate(derivation.deltas, 1):
            program = delta.unrestricted if name in unrestricted else delta.program
            most = shareable(program, counted=name in counted)
            yield Branch(name, numbered(program), delta.stacks, most, delta=number)


# A derivation, and the slots of one of its sources.
_Input = tuple[Derivation, tuple[tuple[int, int], ...]]


def _below(
    source: str,
    steps: Program,
    arrangement: Arrangement,
    inputs: Sequence[_Input],
    route: Route,
    queries: Mapping[str, WorkloadQuery],
    counted: frozenset[str],
) -> RouteTree:
    """The tree of queries that are computed from the matches of one other."""
    taken = sorted({slot for _, slots in inputs for slot, _ in slots})
    columns = {slot: number for number, slot in enumerate(taken)}
    branches = []
    for derivation, slots in inputs:
        name = derivation.target
        all_of_source = source in route.wanted and name not in route.unrestricted
        program = derivation.due_program if all_of_source else derivation.program
        bound = {own: columns[slot] for slot, own in slots}
        most = shareable(program, counted=name in counted)
        branches.append(Branch(name, numbered(program), queries[name].stacks, most, bound))
    tree = step_tree(branches, [queries[source].stacks[slot] for slot in taken])
    return RouteTree(arrangement, tree, source, numbered(steps), columns)
