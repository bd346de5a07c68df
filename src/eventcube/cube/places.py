"""The parts of a query's outermost operator, by position, as moves name them.

Positions count from 1, negated parts included. A query of a single component has one part, the component.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sized
from dataclasses import replace
from typing import Any

from eventcube.errors import OptionError, QuerySyntaxError
from eventcube.language.check import components
from eventcube.language.identifiers import ANY, is_keyword
from eventcube.language.parse import parse
from eventcube.language.printer import print_pattern, print_query
from eventcube.language.syntax import And, Component, Not, Or, Part, Pattern, Qual, Query, Seq
from eventcube.options import invalid_argument, is_whole

# What a drill-down or roll-up changes: (type, new type, position), and (type, position).
ConceptChange = tuple[str, str, int]
PatternChange = tuple[str, int]
ConceptChanges = ConceptChange | Iterable[ConceptChange]
PatternChanges = PatternChange | Iterable[PatternChange]
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
            f"there is no position {position}: the query has {count_of(parts)}", code="EC460", hint=positions(parts)
        )
    return parts[position - 1]


def read_changes(changes: Any, example: tuple[Any, ...]) -> list[Any]:
    """Changes of the form of an example, also a single one; refuses others, and one position, which is last, twice."""
    if _is_change(changes, example):
        return [changes]
    if not isinstance(changes, Iterable) or isinstance(changes, str | bytes | Mapping):
        raise _no_change(changes, example)
    found = list(changes)
    if any(isinstance(text, str) for text in found):
        # A single change, and no list of them.
        raise _no_change(changes, example)
    seen: set[int] = set()
    for change in found:
        if not _is_change(change, example):
            raise _no_change(change, example)
        position = change[-1]
        if position in seen:
            raise OptionError(
                f"position {position} is given twice", code="EC460", hint="one move changes each position once"
            )
        seen.add(position)
    return found


def _is_change(value: Any, example: tuple[Any, ...]) -> bool:
    """Whether a value has the form of an example: texts, and a whole number at the end."""
    if not isinstance(value, tuple | list) or len(value) != len(example):
        return False
    return all(isinstance(text, str) for text in value[:-1]) and is_whole(value[-1])


def _no_change(value: Any, example: tuple[Any, ...]) -> OptionError:
    """The error for a value that has not the form of an example."""
    expected = f"{example!r}, or a list of such changes"
    if isinstance(value, tuple | list) and len(value) in (len(example) - 1, len(example)):
        *texts, last = value if len(value) == len(example) else (*value, None)
        if all(isinstance(text, str) for text in texts):
            wrong = "the position is missing" if last is None else f"the position is a whole number, not {last!r}"
            expected = f"{expected}: {wrong}"
    return invalid_argument("a change", value, expected)


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


def read_part(text: str, query: Query) -> tuple[Part, tuple[Qual, ...]]:
    """The part that a text names, with its conditions: `Type`, `!Type`, `Type variable`, or as a query writes it.

    The conditions of a negated part are in the part. A component without a variable gets one, unless its type's name
    is free and the query has no variables either.
    """
    part, quals = _parsed(text)
    own = list(components(part))
    taken = names_in(query)
    for component in own:
        if component.var is not None and (component.var in taken or component.var in _RESERVED):
            raise OptionError(
                f"the name {component.var!r} in {text!r} is taken",
                code="EC465",
                hint=f"write, say, {type_name(component)} {fresh_variable(component, taken)}",
            )
    conditional = quals or (isinstance(part, Not) and part.quals)
    if isinstance(part.pattern if isinstance(part, Not) else part, Component) and not conditional:
        return _with_variable(part, query, taken), quals
    clash = next((component.name for component in own if component.name in taken), None)
    if clash is not None:
        raise OptionError(f"the name {clash!r} in {text!r} is taken", code="EC465", hint="give it a variable")
    return part, quals


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


def _parsed(text: str) -> tuple[Part, tuple[Qual, ...]]:
    plain = re.fullmatch(r"(!?)\s*([^\s()`!]+)", text.strip())
    if plain is not None:
        component = Component(None if plain[2].upper() == ANY else plain[2])
        return Not(component) if plain[1] else component, ()
    inside = re.fullmatch(r"\((.*)\)", text.strip(), re.DOTALL)
    try:
        pattern: Pattern = parse(f"PATTERN SEQ(ANY __first, {inside[1] if inside else text})").pattern
    except QuerySyntaxError as error:
        raise OptionError(
            f"{text!r} cannot be inserted: {error.message}",
            code="EC465",
            hint="write a part as in a query: 'Dell', 'Dell d', '(Dell d, d.price > 3)', '!Dell', "
            "'!(Dell d, d.price > 3)' or '!SEQ(Dell d, Intel i)'",
        ) from None
    if not isinstance(pattern, Seq) or len(pattern.parts) != 2 or (pattern.quals and isinstance(pattern.parts[1], Not)):
        raise OptionError(f"{text!r} is not one part", code="EC465", hint="insert each part at a position of its own")
    return pattern.parts[1], pattern.quals


def count_of(parts: Sized) -> str:
    """How many parts there are, in words."""
    return f"{len(parts)} part{'s' if len(parts) != 1 else ''}"
