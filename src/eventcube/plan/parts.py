"""The nested parts of a query, as users name them: by a variable of an event that is directly in the part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eventcube.errors import OptionError
from eventcube.language.syntax import Component, Not, Pattern, Query
from eventcube.options import Ways


def nested_parts(pattern: Pattern) -> Iterator[tuple[str, ...]]:
    """For each part below a pattern that is a pattern itself, the variables of the events directly in it."""
    if isinstance(pattern, Component):
        return
    for part in pattern.parts:
        inner = part.pattern if isinstance(part, Not) else part
        if not isinstance(inner, Component):
            yield tuple(_variables(inner))
            yield from nested_parts(inner)


def _variables(pattern: Pattern) -> Iterator[str]:
    if isinstance(pattern, Component):
        yield pattern.name
        return
    for part in pattern.parts:
        inner = part.pattern if isinstance(part, Not) else part
        if isinstance(inner, Component):
            yield inner.name


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
