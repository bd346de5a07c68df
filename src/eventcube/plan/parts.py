"""The nested parts of a query, as users name them: by a variable of an event that is directly in the part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eventcube.errors import OptionError
from eventcube.language.syntax import Component, Not, Pattern, Query
from eventcube.options import Ways


def nested(pattern: Pattern) -> Iterator[Pattern]:
    """The parts of a pattern that are patterns themselves, at any depth."""
    for part in () if isinstance(pattern, Component) else pattern.parts:
        inner = part.pattern if isinstance(part, Not) else part
        if not isinstance(inner, Component):
            yield inner
            yield from nested(inner)


def direct(pattern: Pattern) -> tuple[str, ...]:
    """The variables of the events directly in a pattern, by which it can be named."""
    parts = () if isinstance(pattern, Component) else pattern.parts
    return tuple(p.name for p in parts if isinstance(p, Component))


def nested_parts(pattern: Pattern) -> Iterator[tuple[str, ...]]:
    """For each nested part of a pattern the variables that name it."""
    return map(direct, nested(pattern))


def check_parts(ways: Ways, queries: Iterable[Query]) -> None:
    """Refuse strategies for parts that no query has, and two different ones for one part."""
    if not ways.parts:
        return
    parts = [own for query in queries for own in nested_parts(query.pattern)]
    known = [name for own in parts for name in own]
    for name in ways.parts:
        if name not in known:
            shown = ", ".join(f"({', '.join(own)})" for own in parts)
            hint = f"the nested parts have: {shown}" if parts else "there is no nested part: leave it out"
            raise OptionError(f"a strategy for {name!r}, which is in no nested part", code="EC404", hint=hint)
    for own in parts:
        said = {name: ways.parts[name] for name in own if name in ways.parts}
        if len(set(said.values())) > 1:
            shown = " and ".join(f"{name}={way}" for name, way in said.items())
            raise OptionError(f"two strategies for one part: {shown}", code="EC404", hint="name each part once")
