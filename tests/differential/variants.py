"""Queries that are related: each is another one with its head, tail, window, conditions or results changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from random import Random

from eventcube.language.syntax import (
    Aggregate,
    And,
    Attribute,
    Column,
    Comparison,
    Component,
    CountWindow,
    Not,
    Or,
    Part,
    Pattern,
    Query,
    Seq,
    TimeWindow,
)
from eventcube.nodes import transform
from tests.differential.purged import negated_at_ends
from tests.differential.shrink import with_pattern
from tests.oracle.brute import all_variables, positive_variables
from tests.oracle.clauses import with_results
from tests.oracle.generate import Options, draw_query
from tests.oracle.patterns import LEAVES, PatternMaker, quals_beside, random_quals
from tests.oracle.quals import TICK, chance
from tests.oracle.text import with_text

# Positive components of a query, so that the oracle stays quick.
MOST = 5


def draw_queries(rng: Random, options: Options) -> tuple[Query, ...]:
    """Two to six queries, now and then up to thirty, most of them variants of one another."""
    count = rng.randint(7, 30) if chance(rng, 8) else rng.choice([2, 2, 3, 3, 4, 4, 5, 6])
    found = [_draw_first(rng, options)]
    while len(found) < count:
        unrelated = chance(rng, 12)
        found.append(_draw_first(rng, options) if unrelated else _varied(rng, rng.choice(found), options))
    if options.concepts and chance(rng, 50):
        found += _at_levels(rng, rng.choice(found))
    if chance(rng, 40):
        found = _with_equal_parts(rng, found, options)
    return tuple(with_text(_with_clauses(rng, query, options)) for query in _with_windows(rng, found))


def _with_windows(rng: Random, queries: list[Query]) -> list[Query]:
    """The queries as they are, or all with one window, or all with windows of events, perhaps by key."""
    match rng.randint(0, 9):
        case 0 | 1 | 2:
            within = _window(rng)
            return [replace(query, within=within) for query in queries]
        case 3:
            counts = {query.within: CountWindow(rng.choice([3, 5, 8, 12])) for query in queries}
            queries = [replace(query, within=counts[query.within]) for query in queries]
            return [replace(q, partition_by=(Column("k"),)) for q in queries] if chance(rng, 70) else queries
        case _:
            return queries


def _draw_first(rng: Random, options: Options) -> Query:
    """A query that others are made from: mostly a SEQ of a few events."""
    match rng.randint(0, 9):
        case 0 | 1:
            query = replace(draw_query(rng, options), limit=None)
            return query if len(positive_variables(query.pattern)) <= MOST else _draw_first(rng, options)
        case 2:
            return Query(negated_at_ends(rng), within=_window(rng))
        case _:
            maker = _maker(rng, options)
            parts: list[Part] = [maker.component() for _ in range(rng.choice([2, 3, 3, 3, 4]))]
            query = Query(Seq(tuple(parts)), within=_window(rng))
            query = _negated(rng, query, options) if chance(rng, 30) else query
            query = _keyed(rng, query, options) if chance(rng, 35) else query
            return _more_quals(rng, query, options) if chance(rng, 30) else query


def _at_levels(rng: Random, query: Query) -> Iterator[Query]:
    """The query with a concept for one of its events, and with most types below it."""
    place = rng.choice(list(_components(query.pattern)))
    concept = rng.choice("PPR")
    for type_ in (concept, *("AB" if concept == "P" else "PCA")):
        if place.var is not None and chance(rng, 85):
            yield transform(query, partial(_with_type, place=place, type_=type_))


def _with_type(node: object, place: Component, type_: str) -> object:
    return replace(place, type=type_) if node == place else node


def _with_equal_parts(rng: Random, queries: list[Query], options: Options) -> list[Query]:
    """Most of the queries with one and the same nested part, wherever it stands and whatever it is tied to."""
    operator = rng.choice([Seq, Seq, Seq, And, Or])
    types = [None if chance(rng, 6) else rng.choice(_types(options)) for _ in range(rng.choice([2, 2, 3]))]
    column = rng.choice(["k", "x", "y"])
    compared = rng.choice(["=", "=", "<", "!="]) if operator is not Or and chance(rng, 50) else None
    negated = rng.choice([0, 50, 100])

    def change(query: Query) -> Query:
        taken = len(all_variables(query.pattern))
        names = [f"same{taken}_{i}" for i in range(len(types))]
        parts = tuple(Component(type_, name) for type_, name in zip(types, names, strict=True))
        quals = [Comparison(compared, Attribute(names[0], column), Attribute(names[-1], column))] if compared else []
        if operator is not Or and chance(rng, 40):
            outer = Attribute(rng.choice(positive_variables(query.pattern)), column)
            quals.append(Comparison(rng.choice(["=", "=", "=", "<"]), Attribute(rng.choice(names), column), outer))
        inner, around = operator(parts, tuple(quals)), _parts(query)
        place = rng.randint(0, len(around))
        new = Not(inner) if chance(rng, negated) else inner
        changed = _sequence(query, (*around[:place], new, *around[place:]))
        return changed if len(positive_variables(changed.pattern)) <= MOST else query

    changed = [change(query) if chance(rng, 85) else query for query in queries]
    # Now and then twice in one query.
    return [change(query) if chance(rng, 10) else query for query in changed]


def _varied(rng: Random, query: Query, options: Options) -> Query:
    """Another query that is like this one, or now and then the same."""
    for _ in range(rng.choice([0, 1, 1, 1, 1, 1, 2, 2])):
        changed = rng.choice(CHANGES)(rng, query, options)
        query = changed if len(positive_variables(changed.pattern)) <= MOST else query
    return query


def _with_clauses(rng: Random, query: Query, options: Options) -> Query:
    """The query with RETURN, AGG, GROUPBY or LIMIT, or without any of them."""
    match rng.randint(0, 9):
        case 0:
            return replace(query, limit=rng.randint(1, 6))
        case 1 | 2:
            return replace(query, agg=(Aggregate("COUNT", None, "n"),))
        case 3 | 4 | 5:
            return with_results(rng, query, options)
        case _:
            return query


# Changes of a query.


def _other_tail(rng: Random, query: Query, options: Options) -> Query:
    parts = _parts(query)
    kept = parts[: rng.randint(1, max(1, len(parts) - 1))]
    return _sequence(query, (*kept, *_new_parts(rng, query, options)))


def _other_head(rng: Random, query: Query, options: Options) -> Query:
    parts = _parts(query)
    kept = parts[-rng.randint(1, max(1, len(parts) - 1)) :]
    return _sequence(query, (*_new_parts(rng, query, options), *kept))


def _longer(rng: Random, query: Query, options: Options) -> Query:
    """One more event, mostly at the end."""
    parts = _parts(query)
    place = len(parts) if chance(rng, 60) else rng.randint(0, len(parts))
    return _sequence(query, (*parts[:place], _maker(rng, options, query).component(), *parts[place:]))


def _other_window(rng: Random, query: Query, options: Options) -> Query:
    return replace(query, within=_window(rng))


def _more_quals(rng: Random, query: Query, options: Options) -> Query:
    names = positive_variables(query.pattern)
    beside = quals_beside(rng, query.pattern, names, 40)
    return replace(query, where=(*query.where, *random_quals(rng, names, (), [1, 1, 2]), *beside))


def _keyed(rng: Random, query: Query, options: Options) -> Query:
    """All events equal in one column, those that are negated mostly too."""
    column = rng.choice(["k", "k", "k", "x", "s"])
    first, *rest = positive_variables(query.pattern)
    negated = [p.pattern for p in _parts(query) if isinstance(p, Not) and isinstance(p.pattern, Component)]
    rest += [component.name for component in negated if chance(rng, 75)]
    equal = tuple(Comparison("=", Attribute(first, column), Attribute(name, column)) for name in rest)
    return replace(query, where=(*query.where, *equal)) if equal else query


def _fewer_quals(rng: Random, query: Query, options: Options) -> Query:
    where = query.where
    if where and chance(rng, 60):
        place = rng.randrange(len(where))
        return replace(query, where=where[:place] + where[place + 1 :])
    pattern = query.pattern
    return query if isinstance(pattern, Component) else replace(query, pattern=replace(pattern, quals=()))


def _partitioned(rng: Random, query: Query, options: Options) -> Query:
    if query.partition_by:
        return replace(query, partition_by=())
    columns = ["k"] if options.partitioned else rng.choice([["k"], ["k"], ["k"], ["s"], ["k", "b"]])
    return replace(query, partition_by=tuple(map(Column, columns)))


def _negated(rng: Random, query: Query, options: Options) -> Query:
    """A negated part more, at any place, an operator now and then, and perhaps tied to the events around it."""
    parts, maker = _parts(query), _maker(rng, options, query)
    inner: Pattern = maker.component()
    if chance(rng, 35):
        inner = rng.choice([Seq, Seq, And, Or])((inner, maker.component()))
    quals = ()
    if chance(rng, 35):
        column = rng.choice(["k", "k", "x"])
        outer = rng.choice(positive_variables(query.pattern))
        quals = (Comparison("=", Attribute(positive_variables(inner)[0], column), Attribute(outer, column)),)
    place = rng.randint(0, len(parts))
    return _sequence(query, (*parts[:place], Not(inner, quals), *parts[place:]))


def _without_negations(rng: Random, query: Query, options: Options) -> Query:
    return _sequence(query, tuple(p for p in _parts(query) if not isinstance(p, Not)))


def _nested(rng: Random, query: Query, options: Options) -> Query:
    """Some neighbouring parts in an operator of their own, or an event with an alternative."""
    parts = _parts(query)
    if chance(rng, 30):
        place = rng.randrange(len(parts))
        part = parts[place]
        if isinstance(part, Not):
            return query
        either = Or((part, _maker(rng, options, query).component()))
        return _sequence(query, (*parts[:place], either, *parts[place + 1 :]))
    start = rng.randint(0, max(0, len(parts) - 2))
    end = rng.randint(start + 1, len(parts))
    if all(isinstance(p, Not) for p in parts[start:end]):
        return query
    inner = rng.choice([Seq, Seq, And])(parts[start:end])
    return _sequence(query, (*parts[:start], inner, *parts[end:]))


def _other_type(rng: Random, query: Query, options: Options) -> Query:
    """One event of another type, of a concept, or of any type."""
    chosen = rng.choice(list(_components(query.pattern)))
    if chosen.var is None:
        return query
    type_ = None if chance(rng, 15) else rng.choice(_types(options))
    return transform(query, lambda node: replace(chosen, type=type_) if node == chosen else node)


def _renamed(rng: Random, query: Query, options: Options) -> Query:
    """The same query in other words."""
    names = {c.var for c in _components(query.pattern) if c.var is not None}

    def change(node: object) -> object:
        if isinstance(node, Component | Attribute) and node.var in names:
            return replace(node, var=f"{node.var}_")
        return node

    return transform(query, change)


def _alone(rng: Random, query: Query, options: Options) -> Query:
    """One event of the query, of its type or of a concept above that."""
    parts = [part for part in _parts(query) if isinstance(part, Component)]
    if not parts:
        return query
    return with_pattern(query, replace(rng.choice(parts), **({"type": "R"} if options.concepts else {})))


def _other_operator(rng: Random, query: Query, options: Options) -> Query:
    match query.pattern:
        case Seq(parts=parts, quals=quals):
            return replace(query, pattern=And(parts, quals))
        case And(parts=parts, quals=quals):
            return replace(query, pattern=Seq(parts, quals))
    return query


Change = Callable[[Random, Query, Options], Query]
# Those that leave most steps alike come more often.
CHANGES: Sequence[Change] = (
    *(_other_tail, _other_tail, _other_tail, _other_tail, _longer, _longer, _longer),
    *(_other_head, _other_head, _more_quals, _more_quals, _fewer_quals, _renamed, _renamed),
    *(_other_window, _keyed, _partitioned, _negated, _negated, _without_negations),
    *(_nested, _nested, _other_type, _other_operator, _alone),
)


# Parts of queries.


def _parts(query: Query) -> tuple[Part, ...]:
    """The parts of a SEQ, or the whole pattern as one."""
    return query.pattern.parts if isinstance(query.pattern, Seq) else (query.pattern,)


def _sequence(query: Query, parts: tuple[Part, ...]) -> Query:
    """The query with a SEQ of these parts, and all conditions that still make sense."""
    if all(isinstance(p, Not) for p in parts):
        return query
    return with_pattern(query, Seq(parts, query.pattern.quals if isinstance(query.pattern, Seq) else ()))


def _new_parts(rng: Random, query: Query, options: Options) -> list[Part]:
    maker = _maker(rng, options, query)
    parts: list[Part] = [maker.component() for _ in range(rng.choice([1, 1, 2]))]
    if chance(rng, 12):
        parts.insert(rng.randint(0, len(parts)), Not(maker.component()))
    return parts


def _components(part: Part) -> Iterator[Component]:
    if isinstance(part, Component):
        yield part
    else:
        for inner in (part.pattern,) if isinstance(part, Not) else part.parts:
            yield from _components(inner)


def _types(options: Options) -> Sequence[str]:
    return ("A", "B", "C", "D", "P", "P", "R") if options.concepts else LEAVES


def _maker(rng: Random, options: Options, query: Query | None = None) -> PatternMaker:
    """Makes components with names that the query does not have: they are numbered from 100, 200, … on."""
    names = set() if query is None else all_variables(query.pattern)
    numbers = [int(found[0]) for name in names if (found := re.search(r"\d+", name))]
    taken = 100 * (1 + max(numbers) // 100) if numbers else 0
    return PatternMaker(rng, _types(options), names=names | {f"{i} is taken" for i in range(taken)})


def _window(rng: Random) -> TimeWindow | CountWindow | None:
    match rng.randint(0, 9):
        case 0:
            return None
        case 1 | 2 | 3:
            # As many events, less one, as a window of time has microseconds.
            return CountWindow(rng.choice([3, 5, 8, 12, 4 * TICK + 1]))
        case _:
            return TimeWindow(rng.choice([2, 4, 7, 12]) * TICK)
