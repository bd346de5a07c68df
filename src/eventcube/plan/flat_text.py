"""Flat queries in place of a nested one, to be shown: what they find together is what it finds.

Every match is found by just one of them. A negated SEQ becomes whole queries where that is true to the letter: between
two parts of the outermost SEQ, with nothing else negated there. An event that is added says "the last one"; where
several of one time are the last, a match comes once for each. Elsewhere an added event would change what is asked: an
event of its very time lies neither before nor after it, so nothing can be said to be missing on both sides of it, and
at an end it would move the start or the end of the match. Such parts stay nested, and are told by their cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import TypeVar

from eventcube.language.printer import column_name, print_pattern, print_qual, print_query
from eventcube.language.syntax import (
    And,
    Attribute,
    Comparison,
    Component,
    Item,
    Level,
    Literal,
    Not,
    Or,
    Part,
    Pattern,
    Qual,
    Query,
    Seq,
    Variable,
)
from eventcube.language.tree import attributes, conjuncts
from eventcube.options import REWRITE, StrategyChoice
from eventcube.plan.flat_parts import (
    applied,
    between,
    core,
    dissolves,
    distinct,
    gather,
    is_flat,
    positive,
    pruned,
    renamed,
    variables,
)
from eventcube.plan.logical import LogicalQuery, regions
from eventcube.plan.parts import nested, part_names

# So many queries are shown at most: alternatives multiply.
MOST = 30

_TIED = "a SEQ cannot say that an event is missing at the very time of another"
_BESIDE = f"something else is negated in the same place, and {_TIED}"
_AT_END = "an event more would move the start or the end of the match"
_INSIDE = "no event can be added to what is around it"

_P = TypeVar("_P", bound=Part)


def flat_lines(logical: LogicalQuery, choice: StrategyChoice) -> Iterator[str]:
    """The flat queries, and what stays nested, if some part is to be rewritten."""
    query, flattener = logical.query, _Flattener(logical, choice)
    if choice.default != REWRITE and not any(flattener.rewritten(p) for p in nested(query.pattern)):
        return
    found = list(islice(flattener.flat(), MOST + 1))
    shown = found[:MOST]
    # A part that the queries share is told once, with its cases.
    kept = dict.fromkeys(told for f in shown for told in flattener.kept(f.pattern))
    if shown[0].pattern != query.pattern or not kept:
        yield "flat queries" if all(is_flat(f.pattern) for f in shown) else "rewritten queries"
        yield from (f"  {_one_line(_query(query, f, alone=len(found) == 1))}" for f in shown)
        yield from (f"  {line}" for line in _notes(query, found))
    if kept:
        yield "stays nested"
        yield from (f"  {line}" for told in kept for line in told)


@dataclass(frozen=True, slots=True)
class _Flat:
    """A pattern and the conditions of its WHERE; `left_out` are variables of alternatives that it does not take."""

    pattern: Pattern
    where: tuple[Qual, ...]
    left_out: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Asked:
    """The events of a negated SEQ, AND or OR, each with what is asked of it."""

    kind: type[Pattern]
    events: tuple[Not, ...]

    @property
    def plain(self) -> bool:
        """Whether it only says that events are missing, and of none that it is there."""
        return self.kind is Or or len(self.events) == 1


# What can stand in place of a part: parts, and conditions of theirs.
_Case = tuple[tuple[Part, ...], tuple[Qual, ...]]
# A part with one alternative taken of each OR, conditions that go with it, and the variables of the others.
_Taken = tuple[_P, tuple[Qual, ...], frozenset[str]]


class _Flattener:
    """Makes the flat patterns of one query, of those parts that are to be rewritten."""

    def __init__(self, logical: LogicalQuery, choice: StrategyChoice) -> None:
        self.query, self.choice = logical.query, choice
        written = (p for region in regions(logical.region) for p in region.predicates)
        self.implied = {p.qual for p in written if p.condition in logical.implied}
        self.anchor = next((s.name for s in logical.positive if not s.alternatives), None)
        self.names = {s.name for s in logical.slots}
        self.fresh: dict[str, str] = {}

    def rewritten(self, part: Pattern) -> bool:
        """Whether a nested part is to be rewritten."""
        return not isinstance(part, Component) and self.choice.of(part_names(part)) == REWRITE

    def flat(self) -> Iterator[_Flat]:
        """The patterns that together find what the query finds."""
        for taken, quals, left_out in self._alternatives(self.query.pattern):
            pattern, where = pruned(taken, left_out), applied((*self.query.where, *quals), left_out)
            if isinstance(pattern, Seq | And):
                pattern = core(self._flattened(pattern))
            yield from (_Flat(p, where, left_out) for p in self._exclusive(pattern))

    # Alternatives.

    def _alternatives(self, pattern: Pattern) -> Iterator[_Taken[Pattern]]:
        """The pattern once for each way to take alternatives; an OR that is not rewritten stays."""
        if isinstance(pattern, Or) and self.rewritten(pattern):
            for i, part in enumerate(pattern.parts):
                others = {v for j, p in enumerate(pattern.parts) if j != i for v in variables(p)}
                for taken, quals, left_out in self._alternatives(part):
                    yield taken, (*quals, *pattern.quals), left_out | others
        elif isinstance(pattern, Seq | And):
            for chosen in product(*(self._part_alternatives(p) for p in pattern.parts)):
                own = (*pattern.quals, *(q for _, quals, _ in chosen for q in quals))
                left_out = frozenset[str]().union(*(left for _, _, left in chosen))
                yield replace(pattern, parts=tuple(p for p, _, _ in chosen), quals=own), (), left_out
        else:
            yield pattern, (), frozenset()

    def _part_alternatives(self, part: Part) -> list[_Taken[Part]]:
        return [(part, (), frozenset())] if isinstance(part, Not) else list(islice(self._alternatives(part), MOST + 1))

    # Parts that dissolve into what is around them.

    def _flattened(self, pattern: Seq | And) -> Seq | And:
        """The pattern with SEQ in SEQ and AND in AND dissolved, and negated ORs as negated events."""
        parts: list[Part] = []
        quals = [*pattern.quals]
        for part in pattern.parts:
            match part:
                case Not():
                    parts += self._missing(part)
                case Seq() | And():
                    inner = self._flattened(part)
                    inner = core(inner) if self.rewritten(part) else inner
                    if self.rewritten(part) and dissolves(inner, pattern):
                        parts += inner.parts
                        quals += inner.quals
                    else:
                        parts.append(inner)
                case _:
                    parts.append(part)
        return replace(pattern, parts=tuple(parts), quals=tuple(quals))

    def _missing(self, part: Not) -> tuple[Not, ...]:
        """The negated part as negated events, if it says no more than that they are missing."""
        asked = self._asked(part)
        return asked.events if asked is not None and asked.plain else (part,)

    def _asked(self, part: Not) -> _Asked | None:
        """What a negated SEQ, AND or OR asks of each of its events, if it is to be rewritten."""
        inner = part.pattern
        if isinstance(inner, Component) or not self.rewritten(inner):
            return None
        gathered = gather(inner, type(inner))
        if gathered is None:
            return None
        quals: dict[str, list[Qual]] = {c.name: [] for c in gathered[0]}
        for qual in conjuncts((*gathered[1], *part.quals)):
            own = sorted({a.var for a in attributes(qual)} & quals.keys())
            if len(own) == 1:
                quals[own[0]].append(qual)
            elif qual not in self.implied or not isinstance(qual, Comparison) or self.anchor is None:
                return None
            else:
                # Every event has the key of every other: what two of them share, each shares with one outside.
                column = next(attributes(qual)).name
                for name in own:
                    quals[name].append(Comparison("=", Attribute(name, column), Attribute(self.anchor, column)))
        return _Asked(type(inner), tuple(Not(c, distinct(quals[c.name])) for c in gathered[0]))

    # Negated SEQs by exclusive cases.

    def _exclusive(self, pattern: Pattern) -> Iterator[Pattern]:
        """The pattern once for each choice of a case of its negated SEQs."""
        if not isinstance(pattern, Seq):
            yield pattern
            return
        for chosen in product(*(self._cases(pattern, i) for i in range(len(pattern.parts)))):
            parts = tuple(p for own, _ in chosen for p in own)
            yield replace(pattern, parts=parts, quals=(*pattern.quals, *(q for _, own in chosen for q in own)))

    def _cases(self, pattern: Seq, place: int) -> list[_Case]:
        part = pattern.parts[place]
        asked = self._asked(part) if isinstance(part, Not) and between(pattern, place) else None
        if asked is None or asked.kind is not Seq:
            return [((part,), ())]
        return [self._case(asked.events[i:]) for i in reversed(range(len(asked.events)))]

    def _case(self, events: Sequence[Not]) -> _Case:
        """The first of the events is missing before the last of the second one, and so on."""
        missing, *there = events
        parts: list[Part] = [missing]
        for event in there:
            parts += [event.pattern, self._later(event)]
        return tuple(parts), tuple(q for event in there for q in event.quals)

    def _later(self, event: Not) -> Not:
        """The same event, negated, under another name."""
        component = event.pattern
        assert isinstance(component, Component)
        name = component.name
        if name not in self.fresh:
            self.fresh[name] = next(n for i in range(2, 1 << 30) if (n := f"{name}{i}") not in self.names)
            self.names.add(self.fresh[name])
        quals = tuple(renamed(q, name, self.fresh[name]) for q in event.quals)
        return Not(Component(component.type, self.fresh[name]), quals)

    # What stays nested.

    def kept(self, pattern: Pattern) -> Iterator[tuple[str, ...]]:
        """What is to be rewritten and stays nested all the same: lines for each part."""
        if not isinstance(pattern, Seq | And):
            return
        for i, part in enumerate(pattern.parts):
            if isinstance(part, Not):
                inside = positive(pattern.parts[:i]) and positive(pattern.parts[i:])
                yield from self._told(part, _INSIDE if isinstance(pattern, And) else _BESIDE if inside else _AT_END)
            elif isinstance(part, Seq | And):
                if self.rewritten(part):
                    yield (f"{print_pattern(part)}: its events are bound in place, without an inner query",)
                yield from self._kept_inside(part)

    def _kept_inside(self, pattern: Seq | And) -> Iterator[tuple[str, ...]]:
        for part in pattern.parts:
            if isinstance(part, Not):
                yield from self._told(part, _INSIDE)
            elif isinstance(part, Seq | And):
                yield from self._kept_inside(part)

    def _told(self, part: Not, reason: str) -> Iterator[tuple[str, ...]]:
        asked = self._asked(part)
        if asked is not None:
            why = _TIED if asked.kind is And else reason
            head = f"{print_pattern(part)}: {why}; it holds in one of these cases"
            yield head, *(f"  {case}" for case in _in_words(asked))


def _in_words(asked: _Asked) -> Iterator[str]:
    named = [_with_quals(event) for event in asked.events]
    for i in range(len(named)):
        if asked.kind is And:
            yield f"no {named[i]}" + (f", but there is {' and '.join(named[:i])}" if i else "")
        else:
            yield " before the last ".join([f"no {named[-1 - i]}", *named[len(named) - i :]])


def _with_quals(event: Not) -> str:
    where = " AND ".join(print_qual(q) for q in event.quals)
    return print_pattern(event.pattern) + (f" where {where}" if where else "")


# Whole queries.


def _query(query: Query, flat: _Flat, *, alone: bool) -> Query:
    """The query with a flat pattern; one of several leaves what concerns all of them together to others."""
    if alone:
        return replace(query, pattern=flat.pattern, where=flat.where)
    returns = query.returns
    if variables(flat.pattern) != variables(query.pattern):
        asked = returns or [Item(Variable(v)) for v in variables(query.pattern)]
        returns = tuple(_returned(item, flat.left_out) for item in asked)
    return replace(
        query, pattern=flat.pattern, where=flat.where, returns=returns, group_by=(), agg=(), having=(), limit=None
    )


def _returned(item: Item, left_out: frozenset[str]) -> Item:
    """The item, or null under its name if it is of an alternative that is not taken."""
    value = item.value
    used = {value.name} if isinstance(value, Variable | Level) else {a.var for a in attributes(value)}
    return Item(Literal(None), column_name(item)) if used & left_out else item


def _one_line(query: Query) -> str:
    where = f" WHERE {', '.join(print_qual(q) for q in query.where)}" if query.where else ""
    rest = print_query(replace(query, pattern=Component("_"), where=())).removeprefix("PATTERN _")
    return f"PATTERN {print_pattern(query.pattern)}{where}{rest.replace(chr(10), ' ')}"


def _notes(query: Query, found: Sequence[_Flat]) -> Iterator[str]:
    if len(found) > MOST:
        yield "… and more of them"
    added = [v for f in found for v in variables(f.pattern) if v not in variables(query.pattern)]
    if added:
        last = " or ".join(dict.fromkeys(added))
        yield f"every match is of one of them; it comes once for each last {last} where several have the same time"
    if len(found) > 1 and (query.agg or query.limit is not None):
        yield f"{'AGG' if query.agg else 'LIMIT'} is of the matches of all of them together"
