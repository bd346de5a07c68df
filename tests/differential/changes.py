"""Changes of queries at random places, to make related ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import pairwise
from random import Random
from typing import Any

from eventcube.language.syntax import (
    AllOf,
    And,
    AnyOf,
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
from tests.differential.shrink import smaller_queries
from tests.oracle.brute import all_variables, positive_variables
from tests.oracle.generate import Options
from tests.oracle.patterns import CONCEPTS, LEAVES, random_quals
from tests.oracle.quals import chance, random_qual

TYPES = (*LEAVES, "P", "P", "R", "U")
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

Operator = Seq | And | Or


@dataclass
class Changes:
    """Changes of a query, each of one kind at a random place; the outcome may be no valid query."""

    rng: Random
    options: Options

    def changed(self, query: Query) -> Query:
        """The query after one change."""
        kinds: list[Callable[[Query], Query]] = [
            self.insert,
            self.insert,
            self.insert,
            self.remove,
            self.remove,
            self.remove,
            self.retype,
            self.retype,
            self.retype,
            self.negate,
            self.condition,
            self.condition_inside,
            self.move_condition,
            self.window,
            self.nest,
            self.unnest,
            self.alternative,
            self.operator,
            self.shuffle,
            self.partition,
            self.mirror,
            self.rechain,
        ]
        if chance(self.rng, 30):
            kinds = [self.insert, self.insert, self.retype, self.operator, self.alternative, self.move_condition]
        return self.rng.choice(kinds)(query)

    # Structure.

    def insert(self, query: Query) -> Query:
        """One more part somewhere; a single component becomes a SEQ."""
        if isinstance(query.pattern, Component):
            query = replace(query, pattern=Seq((query.pattern,)))
        outer = positive_variables(query.pattern)

        def grow(operator: Operator) -> Operator:
            if isinstance(operator, Or):
                return operator
            part: Part = self._component(query)
            if chance(self.rng, 45):
                quals = random_quals(self.rng, [part.name], outer, [0, 0, 0, 1])
                part = Not(part, quals)
            place = self.rng.randint(0, len(operator.parts))
            return replace(operator, parts=(*operator.parts[:place], part, *operator.parts[place:]))

        return self._at_operator(query, grow)

    def remove(self, query: Query) -> Query:
        """One thing less."""
        smaller = list(smaller_queries(query))
        return self.rng.choice(smaller) if smaller else query

    def retype(self, query: Query) -> Query:
        """Another type for a component: above, below, or any."""

        def change(component: Component) -> Component:
            children = [c for c, p in CONCEPTS.items() if p == component.type]
            parent = CONCEPTS.get(component.type or "")
            options = [*children, *([parent] * 2 if parent else []), self.rng.choice(TYPES)]
            type_ = None if chance(self.rng, 8) else self.rng.choice(options)
            return Component(type_, component.name if component.var else f"{component.name}_{self.rng.randint(0, 99)}")

        return self._at_component(query, change)

    def negate(self, query: Query) -> Query:
        """A part negated, or a negated one that is not."""

        def change(operator: Operator) -> Operator:
            if isinstance(operator, Or):
                return operator
            place = self.rng.randrange(len(operator.parts))
            part = operator.parts[place]
            turned: Part = part.pattern if isinstance(part, Not) else Not(part)
            return replace(operator, parts=(*operator.parts[:place], turned, *operator.parts[place + 1 :]))

        return self._at_operator(query, change)

    def nest(self, query: Query) -> Query:
        """Neighbouring parts in an operator of their own."""

        def change(operator: Operator) -> Operator:
            if isinstance(operator, Or):
                return operator
            low = self.rng.randrange(len(operator.parts))
            high = self.rng.randint(low + 1, len(operator.parts))
            inside = operator.parts[low:high]
            kind: Any = self.rng.choice([Seq, Seq, And, type(operator)])
            nested: Part = kind(inside)
            if chance(self.rng, 15):
                nested = Not(kind(inside))
            return replace(operator, parts=(*operator.parts[:low], nested, *operator.parts[high:]))

        return self._at_operator(query, change)

    def unnest(self, query: Query) -> Query:
        """A nested operator's parts in the place of it."""

        def change(operator: Operator) -> Operator:
            places = [i for i, part in enumerate(operator.parts) if isinstance(part, Seq | And)]
            if isinstance(operator, Or) or not places:
                return operator
            place = self.rng.choice(places)
            inner: Any = operator.parts[place]
            parts = (*operator.parts[:place], *inner.parts, *operator.parts[place + 1 :])
            return replace(operator, parts=parts, quals=(*operator.quals, *inner.quals))

        return self._at_operator(query, change)

    def alternative(self, query: Query) -> Query:
        """One more alternative, or one less."""

        def change(pattern: Pattern) -> Pattern:
            if isinstance(pattern, Or):
                if chance(self.rng, 50) and len(pattern.parts) > 1:
                    place = self.rng.randrange(len(pattern.parts))
                    left = (*pattern.parts[:place], *pattern.parts[place + 1 :])
                    return left[0] if len(left) == 1 and chance(self.rng, 60) else replace(pattern, parts=left)
                return replace(pattern, parts=(*pattern.parts, self._component(query)))
            options: list[Pattern] = [pattern, self._component(query)]
            if chance(self.rng, 50):
                options.reverse()
            return Or(tuple(options))

        return self._at_pattern(query, change)

    def operator(self, query: Query) -> Query:
        """SEQ in place of AND, or AND in place of SEQ."""

        def change(operator: Operator) -> Operator:
            match operator:
                case Seq(parts, quals):
                    return And(parts, quals)
                case And(parts, quals):
                    return Seq(parts, quals)
            return operator

        return self._at_operator(query, change)

    def shuffle(self, query: Query) -> Query:
        """Parts in another order."""

        def change(operator: Operator) -> Operator:
            parts: list[Any] = list(operator.parts)
            if isinstance(operator, Seq) and chance(self.rng, 70):
                places = [
                    i for i in range(len(parts) - 1) if isinstance(parts[i], Not) or isinstance(parts[i + 1], Not)
                ]
                if places:
                    i = self.rng.choice(places)
                    parts[i], parts[i + 1] = parts[i + 1], parts[i]
            else:
                self.rng.shuffle(parts)
            return replace(operator, parts=tuple(parts))

        return self._at_operator(query, change)

    # Clauses and conditions.

    def condition(self, query: Query) -> Query:
        """One more condition after WHERE."""
        names = positive_variables(query.pattern)
        return replace(query, where=(*query.where, *random_quals(self.rng, names, (), [1 if names else 0])))

    def condition_inside(self, query: Query) -> Query:
        """One more condition in an operator or a negated part, on what is visible there."""
        outer = positive_variables(query.pattern)

        def change(node: Any) -> Any:
            names = sorted(all_variables(node))
            qual = random_qual(self.rng, names, outer)
            return replace(node, quals=(*node.quals, qual))

        return self._somewhere(query, lambda node: isinstance(node, Not | Seq | And | Or), change)

    def move_condition(self, query: Query) -> Query:
        """A condition in another place."""
        owners: list[Any] = [query, *(node for node in _nodes(query.pattern) if getattr(node, "quals", ()))]
        owner = self.rng.choice(owners)
        quals = owner.where if isinstance(owner, Query) else owner.quals
        if not quals:
            return query
        qual = self.rng.choice(quals)
        left = tuple(q for q in quals if q is not qual)
        if isinstance(owner, Query):
            query = replace(query, where=left)
        else:
            query = replace(query, pattern=_replaced(query.pattern, owner, replace(owner, quals=left)))
        if not isinstance(owner, Query) and chance(self.rng, 40):
            return replace(query, where=(*query.where, qual))
        return self._somewhere(
            query,
            lambda node: isinstance(node, Not | Seq | And | Or),
            lambda node: replace(node, quals=(*node.quals, qual)),
        )

    def window(self, query: Query) -> Query:
        """Another window."""
        match query.within:
            case TimeWindow(width):
                step = self.rng.choice([-2000, -1000, 1000, 2000])
                return replace(query, within=TimeWindow(max(1000, width + step)) if chance(self.rng, 85) else None)
            case CountWindow(events):
                step = self.rng.choice([-2, -1, 1, 2])
                return replace(query, within=CountWindow(max(1, events + step)) if chance(self.rng, 85) else None)
        return replace(query, within=self.rng.choice([TimeWindow(4000), CountWindow(5)]))

    def partition(self, query: Query) -> Query:
        """PARTITION BY, or none."""
        return replace(query, partition_by=() if query.partition_by else (Column("k"),))

    def mirror(self, query: Query) -> Query:
        """Comparisons written the other way round, alternatives of conditions in another order."""

        def change(node: Any) -> Any:
            match node:
                case Comparison(op, left, right):
                    return Comparison(_FLIPPED[op], right, left)
                case AnyOf(quals):
                    return AnyOf(tuple(reversed(quals)))
            return node

        return mapped(query, change)

    def rechain(self, query: Query) -> Query:
        """A chain of equalities in another order, or with a link less."""

        def change(node: Any) -> Any:
            if not isinstance(node, AllOf) or not all(isinstance(q, Comparison) and q.op == "=" for q in node.quals):
                return node
            values = [node.quals[0].left, *(q.right for q in node.quals)]  # type: ignore[union-attr]
            self.rng.shuffle(values)
            values = values[: self.rng.randint(2, len(values))]
            links = tuple(Comparison("=", a, b) for a, b in pairwise(values))
            return AllOf(links) if len(links) > 1 else links[0]

        return mapped(query, change)

    # Places.

    def _component(self, query: Query) -> Component:
        taken = all_variables(query.pattern)
        type_ = None if chance(self.rng, 5) else self.rng.choice(TYPES if self.options.concepts else LEAVES)
        return Component(type_, next(name for i in range(99) if (name := f"n{i}") not in taken))

    def _at_operator(self, query: Query, change: Callable[[Operator], Operator]) -> Query:
        return self._somewhere(query, lambda node: isinstance(node, Seq | And | Or), change)

    def _at_component(self, query: Query, change: Callable[[Component], Component]) -> Query:
        return self._somewhere(query, lambda node: isinstance(node, Component), change)

    def _at_pattern(self, query: Query, change: Callable[[Pattern], Pattern]) -> Query:
        return self._somewhere(query, lambda node: isinstance(node, Component | Seq | And | Or), change)

    def _somewhere(self, query: Query, fits: Callable[[Any], bool], change: Callable[[Any], Any]) -> Query:
        """The query with a change at one of the places of its pattern that fit; outer ones more often."""
        places = [node for node in _nodes(query.pattern) if fits(node)]
        if not places:
            return query
        chosen = places[0] if chance(self.rng, 40) else self.rng.choice(places)
        return replace(query, pattern=_replaced(query.pattern, chosen, change(chosen)))


def renamed(query: Query) -> Query:
    """The query with other variables."""
    names = {name: f"v{i}" for i, name in enumerate(sorted(all_variables(query.pattern)))}

    def change(node: Any) -> Any:
        match node:
            case Component(type=type_):
                return Component(type_, names[node.name])
            case Attribute(var, name) if var in names:
                return Attribute(names[var], name)
        return node

    return mapped(query, change)


def _nodes(part: Part) -> list[Part]:
    inner: Sequence[Part] = (
        () if isinstance(part, Component) else (part.pattern,) if isinstance(part, Not) else part.parts
    )
    return [part, *(node for each in inner for node in _nodes(each))]


def _replaced(node: Any, old: Any, new: Any) -> Any:
    if node is old:
        return new
    if isinstance(node, Not):
        return replace(node, pattern=_replaced(node.pattern, old, new))
    if isinstance(node, Component):
        return node
    return replace(node, parts=tuple(_replaced(part, old, new) for part in node.parts))


def mapped(node: Any, change: Callable[[Any], Any]) -> Any:
    """The tree with a change applied to every node, from the bottom up."""
    if isinstance(node, tuple):
        return tuple(mapped(part, change) for part in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changes: Mapping[str, Any] = {
        f.name: mapped(getattr(node, f.name), change) for f in fields(node) if f.name != "span"
    }
    return change(replace(node, **changes))
