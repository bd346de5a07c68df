"""Pairs of related queries: a random query, and what a few changes make of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

from eventcube.language.syntax import (
    AllOf,
    And,
    Attribute,
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
from tests.differential.changes import Changes, renamed
from tests.oracle.brute import positive_variables
from tests.oracle.generate import Options, draw_query
from tests.oracle.patterns import LEAVES, PatternMaker, with_correlation, with_quals
from tests.oracle.quals import chance, random_qual
from tests.oracle.text import query_to_text


def draw_pair(rng: Random, options: Options) -> tuple[Query, Query]:
    """Two queries: mostly one and what changes make of it, now and then two that have nothing to do with each other."""
    query = replace(_ties(rng, draw_base(rng, options)), limit=None)
    if chance(rng, 4):
        return query, _texted(replace(draw_query(rng, options), limit=None))
    other, changes = query, Changes(rng, options)
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3])):
        other = changes.changed(other)
    for _ in range(5):
        other = changes.changed(other) if other == query else other
    if chance(rng, 40):
        other = renamed(other)
    return _texted(query), _texted(other)


def draw_base(rng: Random, options: Options) -> Query:
    """Any query, or a small one rich in negations beside nested parts and in alternatives, of few types."""
    if chance(rng, 55):
        return draw_query(rng, options)
    types = rng.choice([LEAVES[:1], LEAVES[:2], ("A", "P"), ("A", "B", "P", "R")])
    maker = PatternMaker(rng, types if options.concepts else LEAVES[:2], components=5)
    draw = rng.choice([lambda: maker.tangled(), lambda: _guarded(rng, maker), lambda: _conditional(rng, maker)])
    pattern = draw()
    if chance(rng, 50):
        pattern = with_quals(rng, pattern)
    if chance(rng, 30):
        correlated = with_correlation(rng, pattern, positive_variables(pattern))
        assert not isinstance(correlated, Not)
        pattern = correlated
    window = rng.choice([None, TimeWindow(4000), TimeWindow(6000), CountWindow(5), CountWindow(7)])
    return Query(pattern, within=window)


def _conditional(rng: Random, maker: PatternMaker) -> Pattern:
    """An alternative with a condition on what is outside of it."""
    first, second = maker.component(), maker.component()
    parts: tuple[Part, ...] = (second, Not(maker.component())) if chance(rng, 30) else (second,)
    options: list[Pattern] = [Seq(parts, (random_qual(rng, [first.name], ()),)), maker.component()]
    rng.shuffle(options)
    return (Seq if chance(rng, 60) else And)((first, Or(tuple(options))))


def _guarded(rng: Random, maker: PatternMaker) -> Pattern:
    """A negated part beside a nested one, or at the ends of it."""
    inner: list[Part] = [maker.component(), maker.component()]
    if chance(rng, 30):
        inner.insert(rng.randint(0, 2), Not(maker.component()))
    kind: Any = rng.choice([Seq, Seq, And])
    negated: Pattern = maker.component()
    if chance(rng, 25):
        negated = rng.choice([Seq, And])((negated, maker.component()))
    if chance(rng, 20):
        negated = Seq((Not(maker.component()), negated) if chance(rng, 50) else (negated, Not(maker.component())))
    parts: list[Part] = [kind(tuple(inner)), Not(negated), *([maker.component()] if chance(rng, 40) else [])]
    rng.shuffle(parts)
    whole: Any = rng.choice([Seq, And, And])
    return whole(tuple(parts))  # type: ignore[no-any-return]


def _texted(query: Query) -> Query:
    return replace(query, text=query_to_text(query))


def _ties(rng: Random, query: Query) -> Query:
    """The query with equalities of one column over some of its variables, now and then."""
    names = positive_variables(query.pattern)
    if len(names) < 2 or not chance(rng, 30):
        return query
    column = rng.choice(["k", "k", "x", "s", "y"])
    tied = rng.sample(names, rng.randint(2, len(names)))
    links = [Comparison("=", Attribute(a, column), Attribute(b, column)) for a, b in pairwise(tied)]
    return replace(query, where=(*query.where, AllOf(tuple(links)) if len(links) > 1 else links[0]))


def is_valid(part: Part) -> bool:
    """Whether every operator has a part that is not negated."""
    match part:
        case Component():
            return True
        case Not(pattern):
            return is_valid(pattern)
        case _:
            return any(not isinstance(p, Not) for p in part.parts) and all(map(is_valid, part.parts))


def without_negated(pattern: Pattern, indices: frozenset[int]) -> Pattern:
    """The pattern without those negated parts; they are counted from 1 in the order of the text, inner ones too."""
    count = 0

    def kept(part: Any) -> Any:
        nonlocal count
        if isinstance(part, Component):
            return part
        parts = []
        for inner in part.parts:
            if isinstance(inner, Not):
                count += 1
                number = count
                below = replace(inner, pattern=kept(inner.pattern))
                if number not in indices:
                    parts.append(below)
            else:
                parts.append(kept(inner))
        return replace(part, parts=tuple(parts))

    return kept(pattern)  # type: ignore[no-any-return]
