"""A brute-force evaluator: what a query means, written for the eye and not for speed.

It arranges events on the positive components in every way the operators allow, and then asks of each complete
arrangement whether its intervals are free of what was negated and whether its quals hold. It shares no code with the
engine; of eventcube it knows only the syntax tree.

M(E, l, r) in the meaning of a query is `_arrangements` of E inside the interval that `_stands` there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from eventcube.language.syntax import (
    And,
    Attribute,
    Component,
    CountWindow,
    Not,
    Or,
    Part,
    Pattern,
    Qual,
    Query,
    Seq,
    TimeWindow,
)
from tests.oracle.event import Event, Ranked, rank
from tests.oracle.qualify import conjuncts, satisfied, value_of, variables

__all__ = ["Event", "Match", "evaluate", "positive_variables"]

Arrangement = Mapping[str, Ranked]


@dataclass(frozen=True)
class Match:
    """One match: the id of the event bound to each positive variable (None: its alternative was not taken)."""

    bound: Mapping[str, int | None]
    start: int
    end: int

    def key(self) -> tuple[int | None, ...]:
        """The bound ids in the order the variables are written; no two matches of a query share it."""
        return tuple(self.bound.values())


def evaluate(
    query: Query, events: list[Event], *, typed: bool = True, concepts: Mapping[str, str] | None = None
) -> list[Match]:
    """All matches (the first `query.limit` of them), by last, first, and then the events bound, variable by variable.

    There an event goes by its own (`ord`, arrival), and one that is not bound comes before any that is.

    `typed=False`: there is no type column, and every event can be every component. `concepts` gives the parent of a
    type. Events of a typed stream that have no type are set aside. A match lies among the events of one `key`.
    """
    stream = rank(partitioned(query, e) for e in events if e.type is not None or not typed)
    types = _Types(typed, concepts or {})
    found = [
        arrangement
        for key in {e.event.key for e in stream}
        for arrangement in _matches(query, [e for e in stream if e.event.key == key], types)
    ]
    names = positive_variables(query.pattern)
    found.sort(key=lambda a: (_last(a), _first(a), [(a[v].ord, a[v].id) if v in a else (-1, -1) for v in names]))
    return [_to_match(a, names) for a in found[: query.limit]]


def partitioned(query: Query, event: Event) -> Event:
    """The event with the key that PARTITION BY gives it, its own if the query has none."""
    if not query.partition_by:
        return event
    return replace(event, key=tuple(value_of(Attribute("e", c.name), {"e": event}) for c in query.partition_by))


def positive_variables(part: Part) -> list[str]:
    """The variables of the positive components, in the order they are written."""
    match part:
        case Component():
            return [part.name]
        case Not():
            return []
        case Seq(parts=parts) | And(parts=parts) | Or(parts=parts):
            return [v for p in parts for v in positive_variables(p)]
    assert_never(part)


def all_variables(part: Part) -> set[str]:
    """The variables of all components, negated or not."""
    match part:
        case Component():
            return {part.name}
        case Not(pattern=pattern):
            return all_variables(pattern)
        case Seq(parts=parts) | And(parts=parts) | Or(parts=parts):
            return set[str]().union(*map(all_variables, parts))
    assert_never(part)


def _to_match(found: Arrangement, names: Sequence[str]) -> Match:
    times = [e.event.ts for e in found.values()]
    return Match({v: found[v].id if v in found else None for v in names}, min(times), max(times))


def _first(arrangement: Arrangement) -> int:
    return min(e.ord for e in arrangement.values())


def _last(arrangement: Arrangement) -> int:
    return max(e.ord for e in arrangement.values())


# Arrangements: events on the positive components, each at most once, as the operators order them.


@dataclass(frozen=True)
class _Types:
    """Which events a component takes."""

    typed: bool
    parents: Mapping[str, str]

    def take(self, component: Component, event: Ranked) -> bool:
        """Whether the event's type is the component's or descends from it."""
        if not self.typed or component.type is None:
            return True
        own = event.event.type
        while own is not None and own != component.type:
            own = self.parents.get(own)
        return own is not None


def _arrangements(pattern: Pattern, events: Sequence[Ranked], types: _Types) -> Iterator[Arrangement]:
    """Every arrangement of the events on the pattern's positive components; negation and quals are not looked at."""
    match pattern:
        case Component():
            for event in events:
                if types.take(pattern, event):
                    yield {pattern.name: event}
        case Or(parts=parts):
            for part in parts:
                yield from _arrangements(part, events, types)
        case Seq(parts=parts) | And(parts=parts):
            yield from _joined(pattern, [p for p in parts if not isinstance(p, Not)], events, types)
        case _:
            assert_never(pattern)


def _joined(
    operator: Seq | And, rest: Sequence[Pattern], events: Sequence[Ranked], types: _Types
) -> Iterator[Arrangement]:
    if not rest:
        yield {}
        return
    for head in _arrangements(rest[0], events, types):
        if isinstance(operator, Seq):
            left = [e for e in events if e.ord > _last(head)]
        else:
            left = [e for e in events if e not in head.values()]
        for tail in _joined(operator, rest[1:], left, types):
            yield {**head, **tail}


# Standing: whether an arrangement's quals hold and nothing negated is in the way.


@dataclass(frozen=True)
class _Interval:
    """An open interval of `ord` (None: no bound) among the events of the window."""

    after: int | None
    before: int | None
    window: Sequence[Ranked]

    def between(self, after: int | None, before: int | None) -> _Interval:
        """The interval with the bounds given, its own where none is."""
        return _Interval(self.after if after is None else after, self.before if before is None else before, self.window)

    def events(self) -> list[Ranked]:
        """The events strictly inside."""
        return [
            e
            for e in self.window
            if (self.after is None or self.after < e.ord) and (self.before is None or e.ord < self.before)
        ]


def _matches(query: Query, stream: Sequence[Ranked], types: _Types) -> Iterator[Arrangement]:
    """The matches among the events of one partition."""
    for found in _arrangements(query.pattern, stream, types):
        window = _window(query.within, found, stream)
        if window is None:
            continue
        if _stands(query.pattern, query.where, found, _Interval(None, None, window), found, types):
            yield found


def _window(
    within: TimeWindow | CountWindow | None, found: Arrangement, stream: Sequence[Ranked]
) -> Sequence[Ranked] | None:
    """The events that lie in one window with the first and with the last of the match; None if it fits in none."""
    match within:
        case None:
            return stream
        case TimeWindow(microseconds=width):
            times = [e.event.ts for e in found.values()]
            start, end = min(times), max(times)
            return [e for e in stream if end - width <= e.event.ts <= start + width] if end - start <= width else None
        case CountWindow(events=count):
            places = [e.pos for e in found.values()]
            low, high = max(places) - (count - 1), min(places) + (count - 1)
            return [e for e in stream if low <= e.pos <= high] if max(places) <= high else None
    assert_never(within)


def _stands(
    pattern: Pattern,
    given: Sequence[Qual],
    found: Arrangement,
    interval: _Interval,
    around: Arrangement,
    types: _Types,
) -> bool:
    """Whether an arrangement of the pattern is a match of it in the interval.

    `given` are quals that belong to the pattern without being in its list. `around` has all that is bound in and around
    the pattern, which is what its quals may speak of, except those that belong to a negated part.
    """
    match pattern:
        case Component():
            return _holds(given, around)
        case Or(parts=parts):
            taken = next(p for p in parts if _of(p, found))
            held = _holds([*pattern.quals, *given], around)
            return held and _stands(taken, (), found, interval, around, types)
        case Seq() | And():
            quals = list(conjuncts([*pattern.quals, *given]))
            of_negated = [q for p in pattern.parts if isinstance(p, Not) for q in _about(p, quals)]
            if not _holds([q for q in quals if q not in of_negated], around):
                return False
            parts_stand = _seq_stands if isinstance(pattern, Seq) else _and_stands
            return parts_stand(pattern, of_negated, found, interval, around, types)
    assert_never(pattern)


def _about(part: Not, quals: Iterable[Qual]) -> list[Qual]:
    """The quals that belong to a negated part of their operator: those that speak of something in it."""
    return [q for q in quals if variables(q) & all_variables(part)]


def _seq_stands(
    seq: Seq | And,
    of_negated: Sequence[Qual],
    found: Arrangement,
    interval: _Interval,
    around: Arrangement,
    types: _Types,
) -> bool:
    bound = [_of(part, found) for part in seq.parts]
    for i, part in enumerate(seq.parts):
        # Bounds are set by the nearest positive neighbours, else by the interval of the whole.
        after = next((_last(b) for b in reversed(bound[:i]) if b), None)
        before = next((_first(b) for b in bound[i + 1 :] if b), None)
        inside = interval.between(after, before)
        if isinstance(part, Not):
            if any(True for _ in _negated_matches(part, _about(part, of_negated), inside, around, types)):
                return False
        elif not _stands(part, (), bound[i], inside, around, types):
            return False
    return True


def _and_stands(
    conjunction: Seq | And,
    of_negated: Sequence[Qual],
    found: Arrangement,
    interval: _Interval,
    around: Arrangement,
    types: _Types,
) -> bool:
    span = interval.between(_first(found), _last(found))
    taken = set(found.values())
    for part in conjunction.parts:
        if isinstance(part, Not):
            negated = _negated_matches(part, _about(part, of_negated), span, around, types)
            if any(taken.isdisjoint(n.values()) for n in negated):
                return False
        elif not _stands(part, (), _of(part, found), interval, around, types):
            return False
    return True


def _negated_matches(
    part: Not, of_part: Sequence[Qual], interval: _Interval, around: Arrangement, types: _Types
) -> Iterator[Arrangement]:
    """The matches of a negated pattern in the interval, with the quals given in it and those beside it that are its."""
    for found in _arrangements(part.pattern, interval.events(), types):
        if _stands(part.pattern, (*part.quals, *of_part), found, interval, {**around, **found}, types):
            yield found


def _of(part: Part, found: Arrangement) -> Arrangement:
    """What is bound in the part; nothing for a negated one, or for an alternative not taken."""
    return {v: found[v] for v in positive_variables(part) if v in found}


def _holds(quals: Iterable[Qual], bound: Arrangement) -> bool:
    return satisfied(quals, {v: e.event for v, e in bound.items()})
