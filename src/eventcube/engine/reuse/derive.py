"""All ways in which queries of a workload can be computed from each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from eventcube.concepts.concepts import Concepts
from eventcube.cube.graph import CubeGraph, Edge
from eventcube.cube.refinement import can_feed
from eventcube.engine.reuse.case import Member, reuse_cases
from eventcube.engine.reuse.known import Known
from eventcube.options import INDEPENDENT
from eventcube.plan.planned import Planned, plan_together
from eventcube.plan.workload import Derivation, WorkloadPlan, WorkloadQuery


def plan_shared(plans: Mapping[str, Planned], concepts: Concepts | None, sharing: str) -> WorkloadPlan:
    """The plan of queries that run together, with all ways in which they can be computed from each other."""
    workload = replace(plan_together(plans, concepts), sharing=sharing)
    if sharing == INDEPENDENT or len(plans) == 1:
        return workload
    return with_derivations(workload, plans, CubeGraph({name: planned.bound for name, planned in plans.items()}))


def with_derivations(workload: WorkloadPlan, plans: Mapping[str, Planned], graph: CubeGraph) -> WorkloadPlan:
    """The workload with the derivations of its queries, and with programs that find all matches of their sources."""
    known = Known()
    members = {name: Member(name, plans[name], query, known) for name, query in workload.queries.items()}
    found: dict[str, list[Derivation]] = {}
    for edge in graph.pairs.values():
        for derivation in _derivations(edge, members):
            found.setdefault(derivation.target, []).append(derivation)
    sources = {d.source for derivations in found.values() for d in derivations}
    queries = {
        name: _with_programs(member, found.get(name, []), is_source=name in sources) for name, member in members.items()
    }
    return replace(workload, queries=queries)


def _derivations(edge: Edge, members: Mapping[str, Member]) -> Iterator[Derivation]:
    """The derivations in both directions, by the first embedding that each case can use."""
    finer, coarser = members[edge.finer], members[edge.coarser]
    for case in reuse_cases().values():
        source, target = (coarser, finer) if case.general_to_specific else (finer, coarser)
        if not can_feed(source.planned.bound) or target.query.plan.sink.limit is not None:
            continue
        ways = (case.derivation(source, target, refinement) for refinement in edge.refinements)
        way = next((derivation for derivation in ways if derivation is not None), None)
        if way is not None:
            yield way


def _with_programs(member: Member, derivations: list[Derivation], *, is_source: bool) -> WorkloadQuery:
    """The query with its derivations and, if others are computed from it, a program that finds all its matches."""
    unrestricted = member.unrestricted if is_source else None
    return replace(member.query, unrestricted=unrestricted, derivations=tuple(derivations))
