"""Outer events that are equal only through a negated event: `a.id = x.id = c.id` with `!B x`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import combinations

from eventcube.errors import Diagnostic
from eventcube.language.printer import print_value
from eventcube.language.syntax import Attribute, Comparison, Literal
from eventcube.language.tree import attributes
from eventcube.plan.logical import LogicalQuery, Predicate, Region, negations
from eventcube.plan.suspicions import shown


def missing_equalities(query: LogicalQuery) -> Iterator[Diagnostic]:
    """The warnings about pairs of attributes that only a negated event makes equal."""
    for region, around in _negated(query.region, ()):
        yield from _EqualityTies(query, region, around).missing_equalities()


def _negated(region: Region, around: tuple[Region, ...]) -> Iterator[tuple[Region, tuple[Region, ...]]]:
    """The negated regions, each with the regions around it."""
    for negation in negations(region.node):
        yield negation.region, (*around, region)
        yield from _negated(negation.region, (*around, region))


class _EqualityTies:
    """The equalities of a negated region, and of the regions around it."""

    def __init__(self, query: LogicalQuery, region: Region, around: tuple[Region, ...]) -> None:
        self.query = query
        self.inner = [p for p in region.predicates if _equality(p) is not None]
        self.outer = [p for other in around for p in other.predicates]
        self.visible = {other.index for other in around}
        self.outside = _EqualityClasses(_equality(p) for p in self.outer)
        self.everywhere = _EqualityClasses(_equality(p) for p in (*self.outer, *self.inner))

    def missing_equalities(self) -> Iterator[Diagnostic]:
        tying = [p for p in self.inner if self._inside(p)]
        ends = [(a, p) for p in tying for a in attributes(p.qual) if self._is_outside(a)]
        reported: set[Hashable] = set()
        for (one, first), (other, second) in combinations(ends, 2):
            joined = self.everywhere.of(one)
            if joined in reported or joined != self.everywhere.of(other) or self._is_tied(one, other):
                continue
            reported.add(joined)
            between = dict.fromkeys(a.var for p in (first, second) for a in self._inside(p))
            pair = f"{print_value(one)} = {print_value(other)}"
            message = (
                f"{shown(first.qual)} and {shown(second.qual)} are conditions of the negated {' and '.join(between)}, "
                f"so nothing compares {print_value(one)} with {print_value(other)}"
            )
            chain = f"{pair} = {print_value(self._inside(second)[0])}"
            hint = f"add {pair}; in a chain the negated variable comes last: {chain}"
            yield Diagnostic("EC515", message, second.qual.span, hint if len(between) == 1 else f"add {pair}")

    def _inside(self, predicate: Predicate) -> list[Attribute]:
        return [a for a in attributes(predicate.qual) if not self._is_outside(a)]

    def _is_outside(self, attribute: Attribute) -> bool:
        return self.query.slot(attribute.var).region in self.visible

    def _is_tied(self, one: Attribute, other: Attribute) -> bool:
        """Whether the two are compared elsewhere, or need no comparison."""
        slots = self.query.slot(one.var), self.query.slot(other.var)
        return (
            slots[0] == slots[1]
            or self.query.exclusive(*slots)
            or (one.name == other.name and one.name in self.query.schema.partition_by)
            or self.outside.of(one) == self.outside.of(other)
            or any({one, other} <= set(attributes(p.qual)) for p in self.outer)
        )


class _EqualityClasses:
    """Equivalence classes of values, from pairs of equal ones."""

    def __init__(self, pairs: Iterable[tuple[Hashable, Hashable] | None]) -> None:
        self._parents: dict[Hashable, Hashable] = {}
        for pair in pairs:
            if pair is not None:
                self._parents[self.of(pair[0])] = self.of(pair[1])

    def of(self, value: Hashable) -> Hashable:
        """The representative of the class of a value."""
        while value in self._parents and self._parents[value] != value:
            value = self._parents[value]
        return value


def _equality(predicate: Predicate) -> tuple[Hashable, Hashable] | None:
    """The two sides of an equality of attributes or constants; None for other conditions."""
    match predicate.qual:
        case Comparison("=", Attribute() | Literal() as left, Attribute() | Literal() as right):
            return left, right
    return None
