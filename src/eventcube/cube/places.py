"""The parts of a query's outermost operator, by position, as moves name them.

Positions count from 1, negated parts included. A query of a single component has one part, the component.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from eventcube.errors import OptionError, QuerySyntaxError
from eventcube.language.check import components
from eventcube.language.identifiers import ANY, is_keyword
from eventcube.language.parse import parse
from eventcube.language.printer import print_pattern, print_query
from eventcube.language.syntax import And, Component, Not, Or, Part, Pattern, Query, Seq

# Columns that every result has.
_RESERVED = ("start", "end")
# The most characters shown of a part.
_WIDTH = 40


def parts_of(query: Query) -> tuple[Part, ...]:
    """The parts of the outermost operator."""
    return (query.pattern,) if isinstance(query.pattern, Component) else query.pattern.parts


def with_parts(query: Query, parts: Iterable[Part]) -> Query:
    """The query with other parts of its outermost operator; a component becomes a SEQ if there are several.

    A single positive part needs no operator around it; the operator's conditions go to WHERE.
    """
    parts, pattern = tuple(parts), query.pattern
    if len(parts) == 1 and not isinstance(parts[0], Not):
        quals = () if isinstance(pattern, Component) else pattern.quals
        return replace(query, pattern=parts[0], where=(*quals, *query.where))
    match pattern:
        case Component():
            return replace(query, pattern=Seq(parts))
        case Seq() | And():
            return replace(query, pattern=replace(pattern, parts=parts))
        case Or():
            alternatives = tuple(part for part in parts if not isinstance(part, Not))
            return replace(query, pattern=replace(pattern, parts=alternatives))


def finished(query: Query) -> Query:
    """The query with its text, as if it had been written."""
    return parse(print_query(query), query.source)


def part_at(query: Query, position: int) -> Part:
    """The part at a position."""
    parts = parts_of(query)
    if not 1 <= position <= len(parts):
        raise OptionError(
            f"there is no position {position}: the query has {_count(len(parts))}", code="EC460", hint=positions(parts)
        )
    return parts[position - 1]


def check_changes(changes: Iterable[Any], example: tuple[Any, ...]) -> None:
    """Refuse changes that are not of the form of an example, and positions, which come last, that are given twice."""
    form = [type(value) for value in example]
    seen: set[int] = set()
    for change in changes:
        if not isinstance(change, tuple | list) or [type(value) for value in change] != form:
            raise OptionError(f"a change cannot be {change!r}", code="EC414", hint=f"write, say, [{example!r}]")
        position = change[-1]
        if position in seen:
            raise OptionError(
                f"position {position} is given twice", code="EC460", hint="one move changes each position once"
            )
        seen.add(position)


def positions(parts: Iterable[Part]) -> str:
    """What is at which position, for a hint."""
    return "positions: " + ", ".join(f"{place} {part_name(part)}" for place, part in enumerate(parts, 1))


def part_name(part: Part) -> str:
    """A part in a message: its type, or its text."""
    inner = part.pattern if isinstance(part, Not) else part
    name = type_name(inner) if isinstance(inner, Component) else print_pattern(inner)
    return ("!" if isinstance(part, Not) else "") + (name if len(name) <= _WIDTH else f"{name[: _WIDTH - 1]}…")


def move_name(part: Part) -> str:
    """The shortest name of a part that moves understand: its type, or the word of its operator."""
    inner = part.pattern if isinstance(part, Not) else part
    name = type_name(inner) if isinstance(inner, Component) else type(inner).__name__.upper()
    return f"!{name}" if isinstance(part, Not) else name


def type_name(component: Component) -> str:
    """The type of a component as moves name it."""
    return ANY if component.type is None else component.type


def is_named(part: Part, name: str) -> bool:
    """Whether a name is that of a part: `D` and `!D` for a negated one, `AND` or its text for a nested one."""
    inner = part.pattern if isinstance(part, Not) else part
    if name.startswith("!") and not isinstance(part, Not):
        return False
    name = name.removeprefix("!").strip()
    if isinstance(inner, Component):
        return name == type_name(inner)
    return name in (type(inner).__name__.upper(), print_pattern(inner))


def names_in(query: Query) -> set[str]:
    """The names of all components."""
    return {component.name for component in components(query.pattern)}


def read_part(text: str, query: Query) -> Part:
    """The part that a text names: `Type`, `!Type`, `Type variable`, or any part as a query writes it.

    A component without a variable gets one, unless its type's name is free and the query has no variables either.
    """
    part = _parsed(text)
    own = list(components(part))
    taken = names_in(query)
    for component in own:
        if component.var is not None and (component.var in taken or component.var in _RESERVED):
            raise OptionError(
                f"the name {component.var!r} in {text!r} is taken",
                code="EC465",
                hint=f"write, say, {type_name(component)} {fresh_variable(component, taken)}",
            )
    if isinstance(part, Component) or (isinstance(part, Not) and isinstance(part.pattern, Component)):
        return _with_variable(part, query, taken)
    clash = next((component.name for component in own if component.name in taken), None)
    if clash is not None:
        raise OptionError(f"the name {clash!r} in {text!r} is taken", code="EC465", hint="give it a variable")
    return part


def _with_variable(part: Part, query: Query, taken: set[str]) -> Part:
    component = part.pattern if isinstance(part, Not) else part
    assert isinstance(component, Component)
    bare = all(other.var is None for other in components(query.pattern))
    if component.var is not None or (bare and component.name not in taken):
        return part
    named = replace(component, var=fresh_variable(component, taken))
    return replace(part, pattern=named) if isinstance(part, Not) else named


def fresh_variable(component: Component, taken: Iterable[str]) -> str:
    """A variable for a component that no other has.

    >>> fresh_variable(Component("DELL"), ["dell"])
    'dell2'
    """
    stem = re.sub(r"\W", "", type_name(component)).lower()
    if not stem or stem[0].isdigit():
        stem = f"e{stem}"
    used = {*taken, *_RESERVED}
    number = 1
    while (name := stem if number == 1 else f"{stem}{number}") in used or is_keyword(name):
        number += 1
    return name


def _parsed(text: str) -> Part:
    plain = re.fullmatch(r"(!?)\s*([^\s()`!]+)", text.strip())
    if plain is not None:
        component = Component(None if plain[2].upper() == ANY else plain[2])
        return Not(component) if plain[1] else component
    try:
        pattern: Pattern = parse(f"PATTERN SEQ(ANY __first, {text})").pattern
    except QuerySyntaxError as error:
        raise OptionError(
            f"{text!r} cannot be inserted: {error.message}",
            code="EC465",
            hint="write a type, a type and a variable, or '!' before them: 'Dell', 'Dell d', '!Dell'",
        ) from None
    if not isinstance(pattern, Seq) or len(pattern.parts) != 2 or pattern.quals:
        raise OptionError(f"{text!r} is not one part", code="EC465", hint="insert each part at a position of its own")
    return pattern.parts[1]


def _count(number: int) -> str:
    return f"{number} part{'s' if number != 1 else ''}"
