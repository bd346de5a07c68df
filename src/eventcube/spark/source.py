"""Warnings from the plan of a DataFrame alone: a FROM that names another source, types without a type column."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame

from eventcube.errors import warn
from eventcube.language.syntax import Query
from eventcube.plan.logical import LogicalQuery
from eventcube.slips import as_argument, other_source, perhaps_untyped
from eventcube.spark.columns import is_connect

_NAMED = re.compile(r"\bSubqueryAlias ([^\n]+)|\bRelation ([\w.]+)\[")


def warn_of_source(query: Query, events: DataFrame) -> None:
    """Warn if FROM names none of the tables and views that the events are read from."""
    if query.from_ is None:
        return
    names = source_names(events)
    problem = other_source(query, names, ", ".join(sorted({n.rpartition(".")[2] for n in names})))
    if problem is not None:
        warn(problem)


def warn_of_types(query: LogicalQuery) -> None:
    """Warn if a query names types, but the type column was probably forgotten."""
    problem = perhaps_untyped(query, as_argument)
    if problem is not None:
        warn(problem)


def source_names(events: DataFrame) -> set[str]:
    """The names of tables, views and aliases in the plan of a DataFrame; empty on Spark Connect, which has no plan."""
    if is_connect(events):
        return set()
    plan = events._jdf.queryExecution().analyzed().toString()
    return {(alias or relation).strip().replace("`", "") for alias, relation in _NAMED.findall(plan)}
