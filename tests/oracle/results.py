"""What a query returns of its matches: RETURN's values, or the groups of GROUPBY and AGG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from eventcube.errors import Span
from eventcube.language.syntax import Aggregate, Column, Every, Item, Level, Literal, Query, Value, Variable
from tests.oracle.brute import Event, Match, evaluate, positive_variables
from tests.oracle.functions import zone_of
from tests.oracle.qualify import computed, truth, value_of
from tests.oracle.zones import bucket_start

Row = tuple[Any, ...]


def evaluate_rows(
    query: Query, events: list[Event], *, typed: bool = True, concepts: Mapping[str, str] | None = None
) -> list[Row]:
    """The rows a query returns, an event shown by its id, NaN as None.

    Without AGG: one row for each match, in the order of `evaluate`. With AGG: one row for each group, its key and then
    the aggregates, in the order the groups are first met; without GROUPBY there is exactly one group. With PER: one row
    for each event that the component is bound to in some match, the event and then the aggregates.
    """
    by_id = {e.id: e for e in events}
    bindings = [_bound(m, by_id) for m in evaluate(query, events, typed=typed, concepts=concepts)]
    if not query.agg:
        items = query.returns or tuple(Item(Variable(v)) for v in positive_variables(query.pattern))
        return [tuple(_returned(item, bound, concepts or {}) for item in items) for bound in bindings]
    groups: dict[Row, list[Mapping[str, Event]]] = {} if query.group_by or query.per else {(): []}
    for bound in bindings:
        key = tuple(_group(item, bound, concepts or {}) for item in query.group_by)
        groups.setdefault(key if query.per is None else (bound[query.per.name].id,), []).append(bound)
    return [
        (*key, *(_aggregated(a, members) for a in query.agg))
        for key, members in groups.items()
        if _having(query, key, members)
    ]


def _having(query: Query, key: Row, members: Sequence[Mapping[str, Event]]) -> bool:
    """Whether HAVING holds: its aggregates and columns become constants, so that no variable is left."""
    keys = [] if query.per is not None else list(zip(query.group_by, key, strict=True))
    known: dict[Any, Any] = {item.value: part for item, part in keys}
    known |= {Column(item.alias or ""): part for item, part in keys}
    known |= {Column(a.alias or ""): _aggregated(a, members) for a in query.agg}

    def constant(node: Any) -> Any:
        if isinstance(node, tuple):
            return tuple(map(constant, node))
        if isinstance(node, Aggregate):
            return Literal(_aggregated(node, members))
        if not is_dataclass(node) or isinstance(node, Span | type):
            return node
        if isinstance(node, Value) and node in known:
            return Literal(known[node])
        return replace(node, **{f.name: constant(getattr(node, f.name)) for f in fields(node)})

    return all(truth(constant(qual), {}) is True for qual in query.having)


def _bound(match: Match, events: Mapping[int, Event]) -> dict[str, Event]:
    return {var: events[id_] for var, id_ in match.bound.items() if id_ is not None}


def _returned(item: Item, bound: Mapping[str, Event], parents: Mapping[str, str]) -> Any:
    match item.value:
        case Variable(name=name):
            return bound[name].id if name in bound else None
        case Level() as level:
            return _at_level(level, bound, parents)
        case Every(value=value, microseconds=length):
            time = value_of(value, bound)
            zone = zone_of(value, next(iter(bound.values())).zones)
            return None if time is None else bucket_start(math.floor(time), length, zone and zone.key)
        case value:
            return value_of(value, bound)


def _group(item: Item, bound: Mapping[str, Event], parents: Mapping[str, str]) -> Any:
    if isinstance(item.value, Variable):
        return bound[item.value.name].type if item.value.name in bound else None
    return _returned(item, bound, parents)


def _at_level(level: Level, bound: Mapping[str, Event], parents: Mapping[str, str]) -> str | None:
    """The ancestor of an event's type at a level, the root being the first; a type above that level is itself."""
    if level.name not in bound:
        return None
    path = [bound[level.name].type]
    while path[0] in parents:
        path.insert(0, parents[path[0]])
    return path[min(level.level, len(path)) - 1]


def _aggregated(aggregate: Aggregate, members: Sequence[Mapping[str, Event]]) -> Any:
    """COUNT(*) counts matches; every other aggregate passes over nulls, and is null (COUNT: 0) if nothing is left."""
    if aggregate.argument is None:
        return len(members)
    argument = aggregate.argument
    values = [v for v in (value_of(argument, bound) for bound in members) if v is not None]
    if aggregate.distinct:
        return len(set(values))
    match aggregate.function:
        case "COUNT":
            return len(values)
        case "SUM":
            total = sum(map(computed, values))
            fits = not isinstance(total, int) or -(2**63) <= total < 2**63
            return total if values and fits else None
        case "AVG":
            return float(sum(values)) / len(values) if values else None
        case "MIN":
            return min(values, default=None)
        case "MAX":
            return max(values, default=None)
    raise ValueError(f"unknown aggregate {aggregate.function!r}")
