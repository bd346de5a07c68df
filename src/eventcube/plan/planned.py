"""From a query to its plan: bind, rewrite, and build."""

from __future__ import annotations

from dataclasses import dataclass

from eventcube.language.syntax import Query
from eventcube.options import Options, StrategyChoice
from eventcube.plan.bind import bind
from eventcube.plan.build import build
from eventcube.plan.logical import LogicalQuery
from eventcube.plan.parts import with_strategies
from eventcube.plan.physical import PhysicalQuery
from eventcube.plan.rules.rewrite import rewrite
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
    rules: tuple[str, ...]


def plan_query(query: Query, schema: EventSchema, options: Options, sink: str | None = None) -> Planned:
    """The plan of a query, or of one whose matches go to another sink; raises BindError with all that does not fit."""
    bound = bind(query, schema, options.concepts)
    logical, rules = rewrite(with_strategies(bound, options.strategy))
    physical, more = build(logical, options.limit, sink)
    return Planned(bound, logical, physical, options.strategy, (*rules, *more))
