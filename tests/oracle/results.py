"""What a query returns of its matches: RETURN's values, or the groups of GROUPBY and AGG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eventcube.language.syntax import Aggregate, Item, Query, Value, Variable
from tests.oracle.brute import Event, Match, evaluate, positive_variables
from tests.oracle.qualify import value_of, variables

Row = tuple[Any, ...]


def evaluate_rows(
    query: Query, events: list[Event], *, typed: bool = True, concepts: Mapping[str, str] | None = None
) -> list[Row]:
    """The rows a query returns, an event shown by its id, NaN as None.

    Without AGG: one row for each match, in the order of `evaluate`. With AGG: one row for each group, its key and then
    the aggregates, in the order the groups are first met; without GROUPBY there is exactly one group.
    """
    by_id = {e.id: e for e in events}
    bindings = [_bound(m, by_id) for m in evaluate(query, events, typed=typed, concepts=concepts)]
    if not query.agg:
        items = query.returns or tuple(Item(Variable(v)) for v in positive_variables(query.pattern))
        return [tuple(_returned(item, bound) for item in items) for bound in bindings]
    groups: dict[Row, list[Mapping[str, Event]]] = {} if query.group_by else {(): []}
    for bound in bindings:
        groups.setdefault(tuple(_group(item, bound) for item in query.group_by), []).append(bound)
    return [(*key, *(_aggregated(a, members) for a in query.agg)) for key, members in groups.items()]


def _bound(match: Match, events: Mapping[int, Event]) -> dict[str, Event]:
    return {var: events[id_] for var, id_ in match.bound.items() if id_ is not None}


def _returned(item: Item, bound: Mapping[str, Event]) -> Any:
    if isinstance(item.value, Variable):
        return bound[item.value.name].id if item.value.name in bound else None
    return _value(item.value, bound)


def _group(item: Item, bound: Mapping[str, Event]) -> Any:
    if isinstance(item.value, Variable):
        return bound[item.value.name].type if item.value.name in bound else None
    return _value(item.value, bound)


def _value(value: Value, bound: Mapping[str, Event]) -> Any:
    """A value that mentions a variable of an alternative not taken is null."""
    return value_of(value, bound) if variables(value) <= bound.keys() else None


def _aggregated(aggregate: Aggregate, members: Sequence[Mapping[str, Event]]) -> Any:
    """COUNT(*) counts matches; every other aggregate passes over nulls, and is null (COUNT: 0) if nothing is left."""
    if aggregate.argument is None:
        return len(members)
    argument = aggregate.argument
    values = [v for v in (_value(argument, bound) for bound in members) if v is not None]
    match aggregate.function:
        case "COUNT":
            return len(values)
        case "SUM":
            total = sum(values)
            fits = not isinstance(total, int) or -(2**63) <= total < 2**63
            return total if values and fits else None
        case "AVG":
            return float(sum(values)) / len(values) if values else None
        case "MIN":
            return min(values, default=None)
        case "MAX":
            return max(values, default=None)
    raise ValueError(f"unknown aggregate {aggregate.function!r}")
