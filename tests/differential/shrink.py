"""Make a failing case small: leave things out for as long as it still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from eventcube.language.syntax import AllOf, And, AnyOf, Component, Not, NotQual, Or, Part, Pattern, Qual, Query, Seq
from tests.oracle.brute import positive_variables
from tests.oracle.generate import Case, Workload
from tests.oracle.patterns import reachable
from tests.oracle.qualify import variables
from tests.oracle.text import with_text

AnyCase = TypeVar("AnyCase", Case, Workload)


def shrink(case: AnyCase, fails: Callable[[AnyCase], bool]) -> AnyCase:
    """The smallest case that leaving out one thing at a time leads to."""
    while True:
        smaller = next((c for c in smaller_cases(case) if fails(c)), None)
        if smaller is None:
            return case
        case = smaller


def smaller_cases(case: AnyCase) -> Iterator[AnyCase]:
    """The case with one thing less: a query, an event, a qual, a part, a clause."""
    if isinstance(case, Workload):
        for i in range(len(case.queries) if len(case.queries) > 1 else 0):
            yield case._replace(queries=case.queries[:i] + case.queries[i + 1 :])
    for i in range(len(case.events)):
        yield case._replace(events=case.events[:i] + case.events[i + 1 :])
    if isinstance(case, Workload):
        for i, one in enumerate(case.queries):
            for query in smaller_queries(one):
                yield case._replace(queries=(*case.queries[:i], with_text(query), *case.queries[i + 1 :]))
    else:
        for query in smaller_queries(case.query):
            yield case._replace(query=with_text(query))


def smaller_queries(query: Query) -> Iterator[Query]:
    """The query with one thing less: a qual, a part, a clause."""
    if query.limit is not None:
        yield replace(query, limit=None)
    if query.returns:
        yield replace(query, returns=())
    if query.agg:
        yield replace(query, agg=(), group_by=(), having=())
    if query.partition_by:
        yield replace(query, partition_by=())
    for having in _fewer(query.having):
        yield replace(query, having=having)
    for name in ("agg", "group_by", "returns"):
        items = getattr(query, name)
        for i in range(len(items) if name == "group_by" or len(items) > 1 else 0):
            yield replace(query, **{name: items[:i] + items[i + 1 :]})
    for where in _fewer(query.where):
        yield replace(query, where=where)
    for pattern in _smaller_patterns(query.pattern):
        yield with_pattern(query, pattern)
    if query.within is not None:
        yield replace(query, within=None)


def with_pattern(query: Query, pattern: Pattern) -> Query:
    """The query with another pattern, without the quals that mention a variable that is gone."""
    known = _resolved(pattern, set(positive_variables(pattern)))
    return replace(query, pattern=known, where=_known(query.where, reachable(pattern)))


def _fewer(quals: tuple[Qual, ...]) -> Iterator[tuple[Qual, ...]]:
    for i, qual in enumerate(quals):
        yield quals[:i] + quals[i + 1 :]
        for simpler in _simpler(qual):
            yield (*quals[:i], simpler, *quals[i + 1 :])


def _simpler(qual: Qual) -> Iterator[Qual]:
    match qual:
        case AllOf(quals=quals) | AnyOf(quals=quals):
            yield from quals
        case NotQual(qual=inner):
            yield inner
        case _:
            return


def _smaller_patterns(pattern: Pattern) -> Iterator[Pattern]:
    if isinstance(pattern, Component):
        return
    parts = pattern.parts
    for part in parts:
        if not isinstance(part, Not):
            yield part
    for i in range(len(parts)):
        rest = parts[:i] + parts[i + 1 :]
        if any(not isinstance(p, Not) for p in rest):
            yield _rebuilt(pattern, rest, pattern.quals)
    for quals in _fewer(pattern.quals):
        yield _rebuilt(pattern, parts, quals)
    for i, part in enumerate(parts):
        for smaller in _smaller_parts(part):
            yield _rebuilt(pattern, (*parts[:i], smaller, *parts[i + 1 :]), pattern.quals)


def _smaller_parts(part: Part) -> Iterator[Part]:
    if not isinstance(part, Not):
        yield from _smaller_patterns(part)
        return
    for quals in _fewer(part.quals):
        yield replace(part, quals=quals)
    for pattern in _smaller_patterns(part.pattern):
        yield replace(part, pattern=pattern)


def _rebuilt(pattern: Seq | And | Or, parts: Iterable[Part], quals: tuple[Qual, ...]) -> Pattern:
    if isinstance(pattern, Or):
        return Or(tuple(p for p in parts if not isinstance(p, Not)), quals)
    return type(pattern)(tuple(parts), quals)


def _resolved(pattern: Pattern, visible: set[str]) -> Pattern:
    """The pattern without the quals that mention a variable that is gone."""
    if isinstance(pattern, Component):
        return pattern
    parts: list[Part] = []
    for part in pattern.parts:
        if isinstance(part, Not):
            inner = visible | set(positive_variables(part.pattern))
            beside = visible | reachable(part.pattern)
            parts.append(Not(_resolved(part.pattern, inner), _known(part.quals, beside)))
        else:
            parts.append(_resolved(part, visible))
    return _rebuilt(pattern, parts, _known(pattern.quals, visible | reachable(pattern)))


def _known(quals: tuple[Qual, ...], names: set[str]) -> tuple[Qual, ...]:
    return tuple(q for q in quals if variables(q) <= names)
