"""A query without some of its variables: conditions on them go, and what equalities say of the others stays.

Without `b`, `a.k = b.k = c.k` is `a.k = c.k`. A condition in a negated part cannot just go, as the part would have more
matches and the query fewer: the variable is replaced by an equal one, or the removal is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import assert_never

from eventcube.cube.places import parts_of, with_parts
from eventcube.errors import OptionError
from eventcube.language.check import components
from eventcube.language.printer import print_pattern
from eventcube.language.syntax import (
    AllOf,
    And,
    Attribute,
    Comparison,
    Component,
    Level,
    Not,
    Or,
    Part,
    Pattern,
    Qual,
    Query,
    Seq,
    Value,
    Variable,
)
from eventcube.language.tree import attributes, conjuncts
from eventcube.nodes import transform, walk


def without_parts(query: Query, places: Collection[int]) -> Query:
    """The query without the parts of its outermost operator at these places, which count from 0."""
    parts = parts_of(query)
    removed = frozenset(component.name for place in places for component in components(parts[place]))
    _refuse_results(query, removed)
    left = tuple(part for place, part in enumerate(parts) if place not in places)
    return _Removal(query, removed).with_left(left)


def _refuse_results(query: Query, removed: Collection[str]) -> None:
    agg = query.agg if query.per is None else (*query.agg, query.per)
    clauses = {"RETURN": query.returns, "GROUPBY": query.group_by, "AGG": agg, "HAVING": query.having}
    for clause, items in clauses.items():
        for item in items:
            for node in walk(item):
                name = node.var if isinstance(node, Attribute) else getattr(node, "name", None)
                if isinstance(node, Attribute | Variable | Level) and name in removed:
                    raise OptionError(
                        f"{clause} uses {name!r}, which would be removed",
                        code="EC464",
                        hint=f"take it out of {clause} first, or keep its part",
                    )


@dataclass(slots=True)
class _Equalities:
    """Values that are equal where conditions hold, in classes; the values of a class are in the order of the text."""

    classes: dict[Value, list[Value]] = field(default_factory=dict)

    def add(self, quals: Iterable[Qual]) -> _Equalities:
        """Add the equalities among some conditions."""
        for qual in conjuncts(quals):
            if isinstance(qual, Comparison) and qual.op == "=":
                one, other = (self.classes.setdefault(side, [side]) for side in (qual.left, qual.right))
                if one is not other:
                    joined = [value for value in self.classes if value in one or value in other]
                    self.classes.update(dict.fromkeys(joined, joined))
        return self

    def equal_to(self, value: Value) -> list[Value]:
        return self.classes.get(value, [value])

    def all(self) -> Iterator[list[Value]]:
        """The classes, each once."""
        return iter({id(values): values for values in self.classes.values()}.values())


class _Removal:
    """The removal of variables; `equalities` hold for every match of the query."""

    def __init__(self, query: Query, removed: frozenset[str]) -> None:
        self.query, self.removed = query, removed
        self.quals = () if isinstance(query.pattern, Component) else query.pattern.quals
        self.uncertain, self.negated = set(_uncertain(query.pattern)), set(_negated(query.pattern))
        self.equalities = self._equalities((*self.quals, *query.where))

    def with_left(self, left: tuple[Part, ...]) -> Query:
        """The query with those parts of its outermost operator that are left."""
        quals, where = (self._cleaned(conditions, left) for conditions in (self.quals, self.query.where))
        links = self._links((*quals, *where))
        if self.query.where or not self.quals:
            where = (*where, *links)
        else:
            quals = (*quals, *links)
        query = with_parts(self.query, [self._part(part) for part in left])
        if isinstance(query.pattern, Component) or len(left) == 1:
            # Nothing is left of the operator, and its conditions are among those of WHERE.
            return replace(query, where=(*quals, *where))
        return replace(query, pattern=replace(query.pattern, quals=quals), where=where)

    def _equalities(self, quals: Iterable[Qual]) -> _Equalities:
        return _Equalities().add(qual for qual in conjuncts(quals) if self._is_certain(qual))

    def _is_certain(self, qual: Qual) -> bool:
        """Whether a condition of the outermost operator applies to every match: none of its variables is optional."""
        return not any(a.var in self.uncertain for a in attributes(qual))

    def _closes(self, qual: Qual) -> bool:
        """Whether a chain without removed variables still holds: they are bound in every match, and none is negated."""
        variables = {a.var for a in attributes(qual)}
        return not (variables & self.removed & self.uncertain or variables & self.negated)

    def _mentions(self, node: Qual | Value) -> bool:
        return any(a.var in self.removed for a in attributes(node))

    def _part(self, part: Part) -> Part:
        match part:
            case Component():
                return part
            case Not(pattern, quals):
                kept = tuple(self._replaced(qual, part) for qual in quals)
                return replace(part, pattern=self._inside_negated(pattern, part), quals=kept)
            case Or(parts, quals):
                alternatives = tuple(self._pattern(inner) for inner in parts)
                return replace(part, parts=alternatives, quals=self._cleaned(quals, parts))
            case Seq(parts, quals) | And(parts, quals):
                inside = tuple(self._part(inner) for inner in parts)
                return replace(part, parts=inside, quals=self._cleaned(quals, parts))
            case _:
                assert_never(part)

    def _pattern(self, pattern: Pattern) -> Pattern:
        part = self._part(pattern)
        assert not isinstance(part, Not)
        return part

    def _inside_negated(self, pattern: Pattern, part: Not) -> Pattern:
        def change(node: object) -> object:
            quals = getattr(node, "quals", None)
            if quals is None or isinstance(node, Qual):
                return node
            return replace(node, quals=tuple(self._replaced(qual, part) for qual in quals))  # type: ignore[type-var]

        return transform(pattern, change)

    # Conditions of positive operators.

    def _cleaned(self, quals: tuple[Qual, ...], parts: Iterable[Part]) -> tuple[Qual, ...]:
        """The conditions of an operator with these parts, without those on removed variables.

        A chain of equalities closes the gap. A condition that belongs to one of the negated parts stays there.
        """
        negated = [part for part in parts if isinstance(part, Not)]
        return tuple(kept for qual in quals for kept in self._kept(qual, negated))

    def _kept(self, qual: Qual, negated: Iterable[Not]) -> Iterator[Qual]:
        if not self._mentions(qual):
            yield qual
            return
        values = _chain_of_equals(qual) if self._closes(qual) else None
        if values is not None:
            yield from _chain([value for value in values if not self._mentions(value)])
            return
        for part in conjuncts([qual]):
            names = {a.var for a in attributes(part)}
            owner = next((one for one in negated if names & {c.name for c in components(one)}), None)
            if not self._mentions(part):
                yield part
            elif owner is not None:
                yield self._replaced(part, owner)

    def _links(self, cleaned: Iterable[Qual]) -> Iterator[Qual]:
        """Equalities that followed by way of a removed variable, and do not follow from what is left."""
        after = self._equalities(cleaned)
        for values in self.equalities.all():
            apart: list[Value] = []
            for value in values:
                if not self._mentions(value) and not any(value in after.equal_to(other) for other in apart):
                    apart.append(value)
            yield from _chain(apart)

    # Conditions of negated parts.

    def _replaced(self, qual: Qual, part: Not) -> Qual:
        """A condition of a negated part with equal attributes in place of those removed."""

        def change(node: object) -> object:
            if not isinstance(node, Attribute) or node.var not in self.removed:
                return node
            for value in self.equalities.equal_to(node):
                if isinstance(value, Attribute) and value.name == node.name and value.var not in self.removed:
                    return value
            shown = print_pattern(part)
            raise OptionError(
                f"the negated part {shown} has a condition on {node.var!r}, which would be removed",
                code="EC464",
                hint="remove the negated part, too",
            )

        return transform(qual, change) if self._mentions(qual) else qual


def _uncertain(part: Part, uncertain: bool = False) -> Iterator[str]:
    """The variables that a match may not bind: of negated parts, and of alternatives."""
    match part:
        case Component():
            if uncertain:
                yield part.name
        case Not(pattern):
            yield from _uncertain(pattern, True)
        case _:
            for inner in part.parts:
                yield from _uncertain(inner, uncertain or isinstance(part, Or))


def _negated(part: Part) -> Iterator[str]:
    """The variables of negated parts."""
    match part:
        case Component():
            return
        case Not(pattern):
            yield from (component.name for component in components(pattern))
        case _:
            for inner in part.parts:
                yield from _negated(inner)


def _chain_of_equals(qual: Qual) -> list[Value] | None:
    """The values of `a = b = c`; None for other conditions."""
    if not isinstance(qual, AllOf):
        return None
    values: list[Value] = []
    for link in qual.quals:
        if not isinstance(link, Comparison) or link.op != "=" or (values and values[-1] != link.left):
            return None
        values += [link.right] if values else [link.left, link.right]
    return values


def _chain(values: list[Value]) -> Iterator[Qual]:
    """The values as a chain of equalities, if there are two, and not only constants."""
    links = tuple(
        Comparison("=", one, other)
        for one, other in pairwise(values)
        if any(True for value in (one, other) for _ in attributes(value))
    )
    if links:
        yield links[0] if len(links) == 1 else AllOf(links)
