"""All ways in which queries of a workload can be computed from each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from heapq import nlargest, nsmallest

from eventcube.concepts.concepts import Concepts
from eventcube.cube.graph import CubeGraph, Edge
from eventcube.cube.refinement import Change, Refinement, can_feed
from eventcube.engine.reuse.case import Member, reuse_cases
from eventcube.engine.reuse.known import Known
from eventcube.options import INDEPENDENT
from eventcube.plan.logical import LogicalQuery, regions
from eventcube.plan.physical import MADE
from eventcube.plan.planned import Planned, plan_together
from eventcube.plan.workload import Added, Derivation, WorkloadPlan, WorkloadQuery

# Sources of one query in each direction, the nearest ones, for which derivations are made.
_NEAREST = 12


def plan_shared(
    plans: Mapping[str, Planned], concepts: Concepts | None, sharing: str, added: Added | None = None
) -> WorkloadPlan:
    """The plan of queries that run together, with the ways in which they can be computed from each other."""
    workload = replace(plan_together(plans, concepts, added), sharing=sharing)
    if sharing == INDEPENDENT or len(plans) == 1:
        return workload
    # Aggregates that are computed without matches have none for others, and need none.
    made = {name: planned for name, planned in plans.items() if planned.physical.sink.name not in MADE}
    return with_derivations(workload, plans, *related(made, added or {})) if len(made) > 1 else workload


def related(plans: Mapping[str, Planned], added: Added) -> tuple[list[Edge], list[Edge]]:
    """The edges between queries that are worth derivations, to finer queries and to coarser ones."""
    twins = _twins(plans, added)
    graph = CubeGraph({name: planned.bound for name, planned in plans.items() if name not in twins})
    same = [Edge(name, first, (_identity(plans[name].bound),)) for name, first in twins.items()]
    downward, upward = nearest_edges(graph)
    return [*downward, *same], upward


def _twins(plans: Mapping[str, Planned], added: Added) -> dict[str, str]:
    """Queries that differ from an earlier one in their results only, each with that one."""
    firsts: dict[object, str] = {}
    twins = {}
    # One with a limit feeds no other.
    for name in sorted(plans, key=lambda name: not can_feed(plans[name].bound)):
        query = plans[name].bound.query
        asked = replace(query, returns=(), agg=(), per=None, group_by=(), having=(), limit=None)
        first = firsts.setdefault((asked, added.get(name)), name)
        if first != name:
            twins[name] = first
    return twins


def _identity(query: LogicalQuery) -> Refinement:
    """The refinement of a query by itself."""
    negated = frozenset(region.index for region in regions(query.region)) - {query.region.index}
    return Refinement(tuple(range(len(query.slots))), Change.EQUAL, negated)


def nearest_edges(graph: CubeGraph) -> tuple[list[Edge], list[Edge]]:
    """The edges that are worth derivations, to finer queries and to coarser ones.

    Of equal queries the first is related to others, and to each query its nearest ones are.
    """
    first = {name: group[0] for group in graph.groups for name in group}
    coarser: dict[str, list[Edge]] = {}
    finer: dict[str, list[Edge]] = {}
    for edge in graph.pairs.values():
        equal = first[edge.finer] == first[edge.coarser]
        if edge.coarser == first[edge.coarser] and (equal or edge.finer == first[edge.finer]):
            coarser.setdefault(edge.finer, []).append(edge)
            finer.setdefault(edge.coarser, []).append(edge)
    size = {name: len(query.slots) for name, query in graph.queries.items()}
    downward = [e for found in coarser.values() for e in nlargest(_NEAREST, found, key=lambda e: size[e.coarser])]
    upward = [e for found in finer.values() for e in nsmallest(_NEAREST, found, key=lambda e: size[e.finer])]
    return downward, upward


def with_derivations(
    workload: WorkloadPlan, plans: Mapping[str, Planned], downward: Iterable[Edge], upward: Iterable[Edge]
) -> WorkloadPlan:
    """The workload with derivations along edges, and with programs that find all matches of their sources."""
    known = Known()
    members = {name: Member(name, plans[name], query, known) for name, query in workload.queries.items()}
    found: dict[str, list[Derivation]] = {}
    for edges, down in ((downward, True), (upward, False)):
        for derivation in (d for edge in edges for d in _derivations(edge, members, downward=down)):
            found.setdefault(derivation.target, []).append(derivation)
    for name, derivations in found.items():
        ways = [(members[derivation.source], derivation) for derivation in derivations]
        derivations += (union for case in reuse_cases().values() for union in case.unions(members[name], ways))
    sources = {d.source for derivations in found.values() for d in derivations}
    queries = {
        name: _with_programs(member, found.get(name, []), is_source=name in sources) for name, member in members.items()
    }
    return replace(workload, queries=queries)


def _derivations(edge: Edge, members: Mapping[str, Member], *, downward: bool) -> Iterator[Derivation]:
    """The derivations in one direction, by the first embedding that each case can use."""
    finer, coarser = members[edge.finer], members[edge.coarser]
    if finer.query.since != coarser.query.since:
        return
    for case in (case for case in reuse_cases().values() if case.general_to_specific is downward):
        source, target = (coarser, finer) if case.general_to_specific else (finer, coarser)
        if not can_feed(source.planned.bound) or target.query.plan.sink.limit is not None:
            continue
        ways = (case.derivation(source, target, refinement) for refinement in edge.refinements)
        way = next((derivation for derivation in ways if derivation is not None), None)
        if way is not None:
            yield way


def derivation_between(
    workload: WorkloadPlan, plans: Mapping[str, Planned], source: str, target: str
) -> Derivation | None:
    """How a query follows from a coarser one, the source; None if it does not refine it, or no steps lead there."""
    edge = CubeGraph({name: plans[name].bound for name in (source, target)}).pairs.get((target, source))
    if edge is None:
        return None
    members = {name: Member(name, plans[name], workload.queries[name]) for name in (source, target)}
    return next(_derivations(edge, members, downward=True), None)


def _with_programs(member: Member, derivations: list[Derivation], *, is_source: bool) -> WorkloadQuery:
    """The query with its derivations and, if others are computed from it, a program that finds all its matches."""
    unrestricted = member.unrestricted if is_source else None
    return replace(member.query, unrestricted=unrestricted, derivations=tuple(derivations))
