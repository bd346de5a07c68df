"""From a query to its plan: bind, rewrite, and build."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from eventcube.concepts.concepts import Concepts
from eventcube.errors import for_each
from eventcube.language.syntax import Query
from eventcube.options import ENUMERATE, SASE, Options, StrategyChoice
from eventcube.plan.bind import bind
from eventcube.plan.build import build, program_from_start
from eventcube.plan.logical import LogicalQuery
from eventcube.plan.parts import with_strategies
from eventcube.plan.physical import PhysicalQuery
from eventcube.plan.rules.rewrite import rewrite
from eventcube.plan.steps import Program, highest_number
from eventcube.plan.workload import Added, WorkloadPlan, WorkloadQuery, plan_workload
from eventcube.schema import EventSchema


@dataclass(frozen=True, slots=True)
class Planned:
    """A query bound to the columns of events, as the rules rewrote it, and the plan that runs it.

    `rules` are the names of the rules that changed something.
    """

    bound: LogicalQuery
    logical: LogicalQuery
    physical: PhysicalQuery
    choice: StrategyChoice
    flat_strategy: str
    rules: tuple[str, ...]


def plan_query(query: Query, schema: EventSchema, options: Options, sink: str | None = None) -> Planned:
    """The plan of a query, or of one whose matches go to another sink; raises BindError with all that does not fit."""
    bound = bind(query, schema, options.concepts)
    logical, rules = rewrite(with_strategies(bound, options.strategy))
    physical, more = build(logical, options.limit, sink, options.flat_strategy)
    if options.aggregates == ENUMERATE:
        physical = physical.enumerating
    return Planned(bound, logical, physical, options.strategy, options.flat_strategy, (*rules, *more))


def plan_queries(queries: Mapping[str, Query], schema: EventSchema, options: Options) -> dict[str, Planned]:
    """The plans of queries by name; raises BindError with all that does not fit in any of them."""
    return for_each(queries, lambda name: plan_query(queries[name], schema, options))


def plan_together(plans: Mapping[str, Planned], concepts: Concepts | None, added: Added | None = None) -> WorkloadPlan:
    """The plan of a workload; queries that begin with the same components can also be bound from there on."""
    workload = plan_workload({name: planned.physical for name, planned in plans.items()}, concepts, added)
    begun: dict[object, list[str]] = {}
    ended: dict[object, list[str]] = {}
    for name, query in workload.queries.items():
        begun.setdefault(_components(query, slice(2)), []).append(name)
        ended.setdefault(_components(query, slice(-2, None)), []).append(name)
    from_start = {
        name: program
        for key, names in begun.items()
        for name in names
        if key is not None and len(names) > 1 and (program := _from_start(plans[name])) is not None
    }
    # Steps are shared event by event.
    sharing = {*from_start, *(n for key, names in ended.items() if key is not None and len(names) > 1 for n in names)}
    queries = {
        name: replace(_by_events(query) if name in sharing else query, from_start=from_start.get(name))
        for name, query in workload.queries.items()
    }
    return replace(workload, queries=queries)


def _by_events(query: WorkloadQuery) -> WorkloadQuery:
    """The query without programs of other flat strategies, if those are left to the optimizer."""
    alternatives = tuple(a for a in query.plan.alternatives if a.flat == SASE)
    return replace(query, plan=replace(query.plan, alternatives=alternatives)) if alternatives else query


def _from_start(planned: Planned) -> Program | None:
    programs = tuple(alternative.program for alternative in planned.physical.alternatives)
    return program_from_start(planned.logical, 1 + highest_number(programs))


def _components(query: WorkloadQuery, which: slice) -> object:
    """What queries must have in common to share the binding of some of their components; None if they cannot."""
    plan = query.plan
    if len(plan.positive) < 3 or plan.forward or plan.alternatives[0].name != SASE:
        return None
    return query.arrangement, *(query.stacks[slot] for slot in plan.positive[which])
