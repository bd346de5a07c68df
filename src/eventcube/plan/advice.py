"""Warnings about conditions that compare with NULL, never hold, or always hold.

They are certain: they follow from the conditions, the order of the pattern and the window alone. "Always"
means for all values that are not null.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

from eventcube.errors import Diagnostic, warn
from eventcube.language.printer import print_qual, print_value, print_window
from eventcube.language.syntax import (
    AllOf,
    AnyOf,
    Arithmetic,
    Attribute,
    Comparison,
    Qual,
    TimeWindow,
)
from eventcube.plan.claims import Claim, claim, order_bounds, window_bounds
from eventcube.plan.logical import (
    Leaf,
    LogicalQuery,
    Negation,
    Node,
    Predicate,
    Region,
    Seq,
    regions,
    slots_of,
)
from eventcube.plan.never_applied import never_applied
from eventcube.plan.ranges import is_type, range_hint, value_range
from eventcube.plan.suspicions import shown, small_windows, suspicious_values
from eventcube.plan.terms import SAME, Term
from eventcube.plan.ties import missing_equalities
from eventcube.plan.values import ALL_VALUES, Values, complement, intersect


def warn_of_conditions(query: LogicalQuery) -> None:
    """Warn of the conditions of a query that are probably mistakes."""
    for problem in advise(query):
        warn(problem, query.query.text, query.query.source)


def advise(query: LogicalQuery) -> list[Diagnostic]:
    """The conditions of a query that are probably mistakes, with the reason and what to write instead."""
    adviser = _Adviser(query)
    found = [p for region in regions(query.region) for p in (*adviser.region(region), *never_applied(query, region))]
    return [*once_each(query.warnings), *small_windows(query.query), *found, *missing_equalities(query)]


def once_each(problems: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The first problem of each code."""
    first = {problem.code: problem for problem in reversed(problems)}
    return [problem for problem in problems if first[problem.code] is problem]


# Search at most this many conditions of a region for ones that exclude each other.
_MOST_CLAIMS = 1000


class _Adviser:
    def __init__(self, query: LogicalQuery) -> None:
        self.query = query
        self.before: set[tuple[int, int]] = set()
        self._add_order(query.region.node, frozenset(), frozenset())

    def _add_order(self, node: Node, earlier: frozenset[int], later: frozenset[int]) -> None:
        """Add the pairs of slots in time order, wherever both are bound, also in negated parts."""
        if isinstance(node, Leaf):
            self.before |= {(s, node.slot) for s in earlier} | {(node.slot, s) for s in later}
            return
        for i, part in enumerate(node.parts):
            before, after = earlier, later
            if isinstance(node, Seq):
                before = before.union(*(slots_of(p) for p in node.parts[:i] if not isinstance(p, Negation)))
                after = after.union(*(slots_of(p) for p in node.parts[i + 1 :] if not isinstance(p, Negation)))
            self._add_order(part.region.node if isinstance(part, Negation) else part, before, after)

    def region(self, region: Region) -> Iterator[Diagnostic]:
        """The warnings about the conditions of a region."""
        reported: set[Predicate] = set()
        for predicate in region.predicates:
            found = list(suspicious_values(predicate.qual)) or list(self._verdicts(predicate, region))
            reported |= {predicate} if found else set()
            yield from found
        yield from self._exclusive([p for p in region.predicates if p not in reported], region)

    def _verdicts(self, predicate: Predicate, region: Region) -> Iterator[Diagnostic]:
        verdict = self._verdict(predicate.qual)
        if verdict is not None:
            holds, stated = verdict
            if holds and not self._repeats_pattern(predicate.qual, stated):
                yield self._always(predicate.qual, stated)
            elif not holds:
                yield self._never(predicate.qual, stated, self._outcome(predicate, region))
        elif isinstance(predicate.qual, AnyOf):
            for branch in predicate.qual.quals:
                inner = branch.quals if isinstance(branch, AllOf) else ()
                found = [(q, v) for q in (branch, *inner) if (v := self._verdict(q)) is not None and not v[0]]
                for qual, (_, stated) in found[:1]:
                    yield self._never(qual, stated, "only the rest of the OR counts")

    def _verdict(self, qual: Qual) -> tuple[bool, Claim] | None:
        """Whether the condition always holds or never does."""
        stated = claim(qual, self.query)
        holds = None if stated is None else _always_or_never(stated.values, self._bounds(stated.term))
        return None if stated is None or holds is None else (holds, stated)

    def _bounds(self, term: Term | None) -> Values:
        return reduce(intersect, self._bounds_by_reason(term).values(), ALL_VALUES)

    def _bounds_by_reason(self, term: Term | None) -> dict[str, Values]:
        """The bounds on the values of a term, by the reason."""
        if term is None:
            return {}
        if term.since is None:
            limit = value_range(term, self.query)
            return {} if limit is None else dict([limit])
        assert isinstance(term.value, Attribute)
        limits, var = {}, term.value.var
        for order, one, other in ((1, term.since, var), (-1, var, term.since)):
            if self._precedes(one, other):
                limits[f"{one} comes before {other}"] = order_bounds(self.query, term.unit, order)
        if isinstance(self.query.window, TimeWindow):
            written = f"they are within {print_window(self.query.window)}"
            limits[written] = window_bounds(self.query, term.unit)
        return limits

    def _precedes(self, one: str, other: str) -> bool:
        return (self.query.slot(one).index, self.query.slot(other).index) in self.before

    def _exclusive(self, predicates: list[Predicate], region: Region) -> Iterator[Diagnostic]:
        """Conditions on the same value that cannot hold together."""
        claims = [(p, claim(p.qual, self.query)) for p in predicates]
        # Conditions of one alternative come after those of all alternatives.
        about = sorted(((p, c) for p, c in claims if c is not None), key=lambda pair: pair[0].guard is not None)
        reported: set[Term] = set()
        # The values that earlier conditions allow, by term and alternative.
        allowed: dict[tuple[Term, int | None], Values] = {}
        for i, (predicate, stated) in enumerate(about[:_MOST_CLAIMS]):
            if stated.term is None or stated.term in reported:
                continue
            left = intersect(self._bounds(stated.term), stated.values)
            known = [allowed.get((stated.term, guard), ALL_VALUES) for guard in {None, predicate.guard}]
            if reduce(intersect, known, left):
                place = stated.term, predicate.guard
                allowed[place] = intersect(allowed.get(place, ALL_VALUES), stated.values)
                continue
            reported.add(stated.term)
            given = [(p, c) for p, c in about[:i] if c.term == stated.term and p.guard in (None, predicate.guard)]
            alone = [p for p, c in given if not intersect(left, c.values)]
            listed = [shown(p.qual) for p in (*(alone[:1] or [p for p, _ in given]), predicate)]
            message = (
                f"{', '.join(listed[:-1])} and {listed[-1]} exclude each other, so {self._outcome(predicate, region)}"
            )
            yield Diagnostic("EC513", message, predicate.qual.span, "join them with OR, or use them for two events")

    def _outcome(self, predicate: Predicate, region: Region) -> str:
        """The effect of a condition that never holds."""
        slots = [self.query.slots[s] for s in sorted(predicate.slots)]
        optional = [s.name for s in slots if s.alternatives]
        if region.index != self.query.region.index:
            where = f" where {' and '.join(optional)} is bound" if optional else ""
            return f"the negated part removes nothing{where}"
        if optional:
            return f"no match binds {' and '.join(optional)}"
        return "that alternative of OR has no match" if predicate.guard is not None else "nothing matches"

    def _repeats_pattern(self, qual: Qual, stated: Claim) -> bool:
        """Whether a condition that always holds only repeats the order or the type of events.

        It does no harm, and people write it on purpose.
        """
        match qual:
            case Comparison(_, Attribute() as left, Attribute() as right) if left != right:
                return left.name == right.name and left.name in (self.query.schema.time, self.query.schema.type)
        return stated.term is not None and stated.term.unit != SAME and is_type(stated.term.value, self.query)

    def _always(self, qual: Qual, stated: Claim) -> Diagnostic:
        reason = self._reason(stated)
        why = f": {reason}" if reason else ""
        term = stated.term
        if term is None or term.since is not None or not self._may_be_null(term):
            hint = self._suggestion(qual, stated, holds=True)
            return Diagnostic("EC512", f"{shown(qual)} always holds{why}, so it leaves nothing out", qual.span, hint)
        value = print_value(term.value)
        meant = f"write {value} IS NOT NULL"
        hint = f"compare it with another variable, or {meant}" if term.unit == SAME else f"if you want that, {meant}"
        message = f"{shown(qual)} always holds where {value} is not null{why}, so it only excludes nulls"
        return Diagnostic("EC512", message, qual.span, hint)

    def _never(self, qual: Qual, stated: Claim, outcome: str) -> Diagnostic:
        reason = self._reason(stated)
        message = f"{shown(qual)} never holds{f': {reason}' if reason else ''}, so {outcome}"
        return Diagnostic("EC511", message, qual.span, self._suggestion(qual, stated, holds=False))

    def _may_be_null(self, term: Term) -> bool:
        schema = self.query.schema
        return not (isinstance(term.value, Attribute) and term.value.name in (schema.time, schema.type))

    def _reason(self, stated: Claim) -> str:
        """Why the condition always or never holds: one of the bounds if that is enough, else all of them."""
        if stated.why or _always_or_never(stated.values, ALL_VALUES) is not None:
            return stated.why
        by_reason = self._bounds_by_reason(stated.term)
        alone = [why for why, bounds in by_reason.items() if _always_or_never(stated.values, bounds) is not None]
        return alone[0] if alone else ", and ".join(by_reason)

    def _suggestion(self, qual: Qual, stated: Claim, *, holds: bool) -> str | None:
        """The hint: another variable, another order, or the difference the other way round."""
        if stated.term is None:
            return None
        if stated.term.unit == SAME:
            return "compare it with another variable"
        if stated.term.since is None:
            return range_hint(qual, stated.term, self.query) if not holds else None
        match qual:
            case Comparison(_, Attribute(), Attribute()):
                return None if holds else "in AND(…) events may come in any order"
            case Comparison(op, Arithmetic("-", Attribute() as one, Attribute() as other) as gap, right):
                written = Comparison(op, Arithmetic("-", other, one, gap.span), right)
            case Comparison(op, left, Arithmetic("-", Attribute() as one, Attribute() as other) as gap):
                written = Comparison(op, left, Arithmetic("-", other, one, gap.span))
            case _:
                return None
        return f"did you mean {print_qual(written)}?" if self._precedes(one.var, other.var) else None


def _always_or_never(values: Values, bounds: Values) -> bool | None:
    """True if all values within the bounds are in the set, False if none is, None otherwise."""
    if not intersect(bounds, values):
        return False
    return None if intersect(bounds, complement(values)) else True
