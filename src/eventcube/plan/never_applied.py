"""Conditions on two alternatives of one OR: a match takes one alternative, so they apply to no match."""

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
    """The conditions of a region that apply to no match, and what to write instead."""
    for predicate in region.never_applied:
        hint = _one_for_each_alternative(predicate.qual, query) or _transitive_equality(predicate.qual, query, region)
        hint = hint or "AND(…) binds both of them, OR(…) only one"
        message = f"{shown(predicate.qual)} never applies: {no_match_has(predicate, query)}"
        yield Diagnostic("EC514", message, predicate.qual.span, hint)


def no_match_has(predicate: Predicate, query: LogicalQuery) -> str:
    """Why the predicate applies to no match."""
    slots = [query.slots[s] for s in sorted(predicate.slots)]
    for one, other in combinations(slots, 2):
        if query.exclusive(one, other):
            return f"no match has both {one.name} and {other.name}"
    names = " and ".join(s.name for s in slots if s.alternatives)
    return f"no match of its alternative has {names}"


def _one_for_each_alternative(qual: Qual, query: LogicalQuery) -> str | None:
    """The hint that splits the condition into one for each alternative."""
    if isinstance(qual, AnyOf):
        parts = list(qual.quals)
    else:
        counts = [len(c.arguments) for c in walk(qual) if isinstance(c, Call) and c.function == "COALESCE"]
        parts = [_with_argument(qual, i) for i in range(min(counts, default=0))]
    if not parts or any(_is_excluded(part, query) for part in parts):
        return None
    return f"write one condition for each alternative: {' AND '.join(map(print_qual, parts))}"


def _with_argument(qual: Qual, index: int) -> Qual:
    """The condition with one of its arguments in place of each COALESCE."""

    def picked(node: object) -> object:
        return node.arguments[index] if isinstance(node, Call) and node.function == "COALESCE" else node

    return transform(qual, picked)


def _transitive_equality(qual: Qual, query: LogicalQuery, region: Region) -> str | None:
    """The hint to write `a.x = c.x` instead of `b.x = c.x` beside `a.x = b.x`."""
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
