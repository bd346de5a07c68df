"""From a query to its plan: bind, and build."""

from __future__ import annotations

from dataclasses import dataclass

from eventcube.language.syntax import Query
from eventcube.options import Options, StrategyChoice
from eventcube.plan.bind import bind
from eventcube.plan.build import build
from eventcube.plan.logical import LogicalQuery
from eventcube.plan.physical import PhysicalQuery
from eventcube.schema import EventSchema


@dataclass(frozen=True, slots=True)
class Planned:
    """A query bound to the columns of events, and the plan that runs it."""

    logical: LogicalQuery
    physical: PhysicalQuery
    choice: StrategyChoice


def plan_query(query: Query, schema: EventSchema, options: Options) -> Planned:
    """The plan of a query; raises BindError with all that does not fit."""
    logical = bind(query, schema, options.concepts)
    return Planned(logical, build(logical, options.strategy, options.limit), options.strategy)
