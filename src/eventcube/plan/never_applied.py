"""Conditions that speak of two alternatives of one OR, of which a match takes one: they are applied to no match."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from eventcube.errors import Diagnostic
from eventcube.language.printer import print_qual, print_value
from eventcube.language.syntax import AnyOf, Attribute, Call, Comparison, Qual
from eventcube.language.tree import attributes
from eventcube.nodes import transform, walk
from eventcube.plan.logical import LogicalQuery, Predicate, Region, excluded
from eventcube.plan.suspicions import shown


def never_applied(query: LogicalQuery, region: Region) -> Iterator[Diagnostic]:
    """The conditions of a region that are applied to no match, and what to write instead."""
    for predicate in region.never_applied:
        hint = _one_for_each(predicate.qual, query) or _other_tie(predicate.qual, query, region)
        hint = hint or "AND(…) binds both of them, OR(…) only one"
        message = f"{shown(predicate.qual)} is never applied: {no_match_has(predicate, query)}"
        yield Diagnostic("EC514", message, predicate.qual.span, hint)


def no_match_has(predicate: Predicate, query: LogicalQuery) -> str:
    """Why no match is tested by the predicate."""
    slots = [query.slots[s] for s in sorted(predicate.slots)]
    for one, other in combinations(slots, 2):
        if query.exclusive(one, other):
            return f"no match has both {one.name} and {other.name}"
    names = " and ".join(s.name for s in slots if s.alternatives)
    return f"no match of the alternative that it stands in has {names}"


def _one_for_each(qual: Qual, query: LogicalQuery) -> str | None:
    """The condition as one for each alternative, each of which is applied."""
    if isinstance(qual, AnyOf):
        parts = list(qual.quals)
    else:
        counts = [len(c.arguments) for c in walk(qual) if isinstance(c, Call) and c.function == "COALESCE"]
        parts = [_with_argument(qual, i) for i in range(min(counts, default=0))]
    if not parts or any(_is_excluded(part, query) for part in parts):
        return None
    return f"write a condition for each, joined by AND: {' AND '.join(map(print_qual, parts))}"


def _with_argument(qual: Qual, index: int) -> Qual:
    """The condition with one of its arguments in place of each COALESCE."""

    def picked(node: object) -> object:
        return node.arguments[index] if isinstance(node, Call) and node.function == "COALESCE" else node

    return transform(qual, picked)


def _other_tie(qual: Qual, query: LogicalQuery, region: Region) -> str | None:
    """For `b.x = c.x` beside `a.x = b.x` that is `a.x = c.x`."""
    match qual:
        case Comparison("=", Attribute() as left, Attribute() as right):
            for one, other in ((left, right), (right, left)):
                for predicate in region.predicates:
                    tied = set(attributes(predicate.qual)) - {one}
                    plain = isinstance(predicate.qual, Comparison) and predicate.qual.op == "="
                    if not plain or one not in set(attributes(predicate.qual)) or len(tied) != 1:
                        continue
                    instead = Comparison("=", tied.pop(), other)
                    if not _is_excluded(instead, query):
                        return f"write {print_value(instead.left)} = {print_value(other)}"
    return None


def _is_excluded(qual: Qual, query: LogicalQuery) -> bool:
    needed = (number for a in attributes(qual) for number in query.slot(a.var).alternatives)
    return excluded(needed, query.or_of)
