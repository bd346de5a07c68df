"""What a query returns of its matches: RETURN's values, or the groups of GROUPBY and AGG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import product
from typing import Any

from eventcube.errors import Span
from eventcube.language.syntax import Aggregate, Column, Every, Item, Level, Levels, Literal, Query, Value, Variable
from tests.oracle.brute import Event, Match, evaluate, positive_variables
from tests.oracle.functions import zone_of
from tests.oracle.generate import components
from tests.oracle.qualify import computed, truth, value_of
from tests.oracle.zones import bucket_start

Row = tuple[Any, ...]
# The level of a key, which HAVING does not know.
_LEVEL = Item(Column(""))


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
    types = {component.name: component.type for component in components(query.pattern)}
    for bound in bindings:
        for key in product(*(_groups(item, bound, types, concepts or {}) for item in query.group_by)):
            flat = tuple(part for parts in key for part in parts)
            groups.setdefault(flat if query.per is None else (bound[query.per.name].id,), []).append(bound)
    return [
        (*key, *(_aggregated(a, members) for a in query.agg))
        for key, members in groups.items()
        if _having(query, key, members)
    ]


def _having(query: Query, key: Row, members: Sequence[Mapping[str, Event]]) -> bool:
    """Whether HAVING holds: its aggregates and columns become constants, so that no variable is left."""
    items = [
        value for item in query.group_by for value in (item, *([_LEVEL] if isinstance(item.value, Levels) else []))
    ]
    keys = [] if query.per is not None else list(zip(items, key, strict=True))
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


def _groups(
    item: Item, bound: Mapping[str, Event], types: Mapping[str, str | None], parents: Mapping[str, str]
) -> list[Row]:
    """The groups of a match by one key; each has a value, or a type and its level."""
    if isinstance(item.value, Levels):
        return _cells(item.value.name, bound, types[item.value.name], parents)
    if isinstance(item.value, Variable):
        return [(bound[item.value.name].type if item.value.name in bound else None,)]
    return [(_returned(item, bound, parents),)]


def _cells(name: str, bound: Mapping[str, Event], top: str | None, parents: Mapping[str, str]) -> list[Row]:
    """The type of an event with its level, those above it up to a type, and itself if others are below it."""
    if name not in bound:
        return [(None, None)]
    path = _path(bound[name].type, parents)
    cells = [(type_, level) for level, type_ in enumerate(path, 1)][path.index(top) :]
    return [*cells, *([(path[-1], len(path) + 1)] if path[-1] in parents.values() else [])]


def _path(type_: str | None, parents: Mapping[str, str]) -> list[str | None]:
    """A type and those above it, the root first."""
    path = [type_]
    while path[0] in parents:
        path.insert(0, parents[path[0]])
    return path


def _at_level(level: Level, bound: Mapping[str, Event], parents: Mapping[str, str]) -> str | None:
    """The ancestor of an event's type at a level, the root being the first; a type above that level is itself."""
    if level.name not in bound:
        return None
    path = _path(bound[level.name].type, parents)
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
