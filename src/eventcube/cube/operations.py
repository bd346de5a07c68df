"""Moves from one query to another: drill-down and roll-up, by concept and by pattern.

Liu et al. 2011 (E-Cube), section 3. Positions are those of the paper: from 1, over the parts of the outermost operator,
negated ones included; of insertions in the new query, of removals in the old one. A drill-down asks for more, so a
negated type goes up in the hierarchy on a drill-down by concept, and down on a roll-up.
"""

from __future__ import annotations

from dataclasses import replace

from eventcube.concepts.concepts import Concepts
from eventcube.cube.places import (
    ConceptChanges,
    PatternChanges,
    count_of,
    finished,
    fresh_variable,
    is_named,
    names_in,
    part_at,
    part_name,
    parts_of,
    positions,
    read_changes,
    read_part,
    type_name,
    with_parts,
)
from eventcube.cube.removal import without_parts
from eventcube.errors import OptionError
from eventcube.language.identifiers import ANY
from eventcube.language.printer import column_name
from eventcube.language.syntax import Attribute, Column, Component, Level, Not, Or, Part, Query, Variable
from eventcube.nodes import transform

# The most types that a hint lists.
_LISTED = 20


def concept_drill_down(query: Query, changes: ConceptChanges, concepts: Concepts) -> Query:
    """The query with finer types, (type, finer type, position) each; a negated type becomes a coarser one.

    >>> from eventcube.language.parse import parse
    >>> concept_drill_down(parse("PATTERN SEQ(TX, OK)"), [("TX", "D", 1)], Concepts({"TX": ["D"]}))
    parse('PATTERN SEQ(D, OK)')
    """
    return _with_types(query, changes, concepts, down=True)


def concept_roll_up(query: Query, changes: ConceptChanges, concepts: Concepts) -> Query:
    """The query with coarser types, (type, coarser type, position) each; a negated type becomes a finer one."""
    return _with_types(query, changes, concepts, down=False)


def pattern_drill_down(query: Query, insertions: PatternChanges) -> Query:
    """The query with more parts, each with its position in the new query.

    A part is written `Type`, `!Type`, `Type variable`, or as in a query; without a variable it gets one. One with
    conditions is in parentheses: `(Type variable, condition)`, and `!` before them if it is negated.

    >>> from eventcube.language.parse import parse
    >>> pattern_drill_down(parse("PATTERN SEQ(G, A, T)"), [("!D", 2)])
    parse('PATTERN SEQ(G, !D, A, T)')
    """
    given = read_changes(insertions, ("!Dell", 2))
    _refuse_alternatives(query)
    for number, (text, position) in enumerate(sorted(given, key=lambda insertion: insertion[1])):
        parts = parts_of(query)
        if not 1 <= position <= len(parts) + 1:
            has = f"the query has {count_of(parts)}" + " with those inserted before it" * bool(number)
            raise OptionError(
                f"{text!r} cannot be inserted at position {position}: {has}",
                code="EC460",
                hint=f"insert it at 1 to {len(parts) + 1}; {positions(parts)}",
            )
        part, quals = read_part(text, query)
        query = with_parts(query, (*parts[: position - 1], part, *parts[position - 1 :]))
        query = replace(query, where=(*query.where, *quals))
    return finished(query)


def pattern_roll_up(query: Query, removals: PatternChanges) -> Query:
    """The query without some of its parts, (type, position in the old query) each, and without conditions on them.

    >>> from eventcube.language.parse import parse
    >>> pattern_roll_up(parse("PATTERN SEQ(A a, B b, C c) WHERE a.k = b.k = c.k"), [("B", 2)])
    parse('PATTERN SEQ(A a, C c) WHERE a.k = c.k')
    """
    given = read_changes(removals, ("Dell", 2))
    _refuse_alternatives(query)
    for name, position in given:
        part = part_at(query, position)
        if not is_named(part, name):
            raise _another_part(query, name, position)
    places = {position - 1 for _, position in given}
    left = [part for place, part in enumerate(parts_of(query)) if place not in places]
    if all(isinstance(part, Not) for part in left):
        raise OptionError(
            "no part without '!' would be left", code="EC463", hint="keep one of them, and remove negated parts with it"
        )
    return finished(without_parts(query, places))


def _with_types(query: Query, changes: ConceptChanges, concepts: Concepts, *, down: bool) -> Query:
    for old, new, position in read_changes(changes, ("Computer", "Dell", 1)):
        part = part_at(query, position)
        component = part.pattern if isinstance(part, Not) else part
        if not isinstance(component, Component):
            raise OptionError(
                f"position {position} is {part_name(part)}, not a single type", code="EC461", hint=_single_types(query)
            )
        if not is_named(part, old):
            raise _another_part(query, old, position)
        negated = isinstance(part, Not)
        new = new.removeprefix("!") if negated else new
        _check_related(type_name(component), new, concepts, down=down != negated, negated=negated)
        query = _retyped(query, position, new)
    return finished(query)


def _check_related(old: str, new: str, concepts: Concepts, *, down: bool, negated: bool) -> None:
    """Refuse a type that is not below the old one (`down`), or not above it."""
    related = types_below(old, concepts) if down else types_above(old, concepts)
    if new in related:
        return
    if new != ANY:
        concepts.check_known(new)
    side = "below" if down else "above"
    shown = ", ".join(related[:_LISTED]) + (", …" if len(related) > _LISTED else "")
    hint = f"{side} {old}: {shown}" if related else f"no type is {side} {old}"
    other = types_above(old, concepts) if down else types_below(old, concepts)
    if new in other:
        hint += f"; {new} is {'above' if down else 'below'} it: that is the opposite move"
    if negated:
        hint = f"the part is negated, so its type goes {'down on a roll-up' if down else 'up on a drill-down'}; {hint}"
    raise OptionError(f"{new!r} is not {side} {old!r} in the hierarchy", code="EC462", hint=hint)


def types_below(name: str, concepts: Concepts) -> tuple[str, ...]:
    """The types below a type; below ANY are all."""
    return concepts.depth_first if name == ANY else concepts.descendants(name)


def types_above(name: str, concepts: Concepts) -> tuple[str, ...]:
    """The types above a type, the nearest first; above all is ANY."""
    return () if name == ANY else (*concepts.ancestors(name), ANY)


def _retyped(query: Query, position: int, new: str) -> Query:
    """The query with another type at a position; a component that is named by its type is renamed, too."""
    parts = parts_of(query)
    part = parts[position - 1]
    component = part.pattern if isinstance(part, Not) else part
    assert isinstance(component, Component)
    changed = replace(component, type=None if new == ANY else new)
    others = names_in(query) - {component.name}
    if changed.name in others:
        changed = replace(changed, var=fresh_variable(changed, others))
    turned: Part = replace(part, pattern=changed) if isinstance(part, Not) else changed
    query = with_parts(query, (*parts[: position - 1], turned, *parts[position:]))
    return query if changed.name == component.name else _renamed(query, component.name, changed.name)


def _renamed(query: Query, old: str, new: str) -> Query:
    """The query with another name of a variable in all conditions and results."""

    def change(node: object) -> object:
        match node:
            case Attribute(var) if var == old:
                return replace(node, var=new)
            case Variable(name) | Level(name) if name == old:
                return replace(node, name=new)
        return node

    renamed = transform(query, change)
    names = {column_name(one): column_name(other) for one, other in zip(query.group_by, renamed.group_by, strict=True)}
    names |= {column_name(one): column_name(other) for one, other in zip(query.agg, renamed.agg, strict=True)}

    def change_column(node: object) -> object:
        return replace(node, name=names[node.name]) if isinstance(node, Column) and node.name in names else node

    return replace(renamed, having=tuple(transform(qual, change_column) for qual in renamed.having))


def _another_part(query: Query, name: str, position: int) -> OptionError:
    parts = parts_of(query)
    places = [place for place, part in enumerate(parts, 1) if is_named(part, name)]
    elsewhere = f"{name} is at position {' and '.join(map(str, places))}; " if places else ""
    return OptionError(
        f"position {position} is {part_name(parts[position - 1])}, not {name}",
        code="EC461",
        hint=elsewhere + positions(parts),
    )


def _single_types(query: Query) -> str:
    singles = [
        f"{place} {part_name(part)}"
        for place, part in enumerate(parts_of(query), 1)
        if isinstance(part.pattern if isinstance(part, Not) else part, Component)
    ]
    return f"single types: {', '.join(singles)}" if singles else "no part of the query is a single type"


def _refuse_alternatives(query: Query) -> None:
    if isinstance(query.pattern, Or):
        raise OptionError(
            "the parts of OR are alternatives: with fewer of them a query finds less, not more",
            code="EC466",
            hint="put the OR into a SEQ or an AND, or change types with concept_drill_down and concept_roll_up",
        )
