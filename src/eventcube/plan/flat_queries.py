"""Flat queries equivalent to a nested one, for `explain`: each match is found by exactly one of them.

A negated SEQ becomes whole queries where that is exact: between two parts of the outermost SEQ, with nothing else
negated there. The queries have added events that stand for "the last one"; if several last events have the same time, a
match comes once for each. Elsewhere an added event would change the result: events of the same time lie neither before
nor after it, so absence cannot be asked for on both sides of it, and at an end it would move the start or the end of
the match. Such parts stay nested, and their cases are printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import cast

from eventcube.language import syntax
from eventcube.language.printer import column_name, print_pattern, print_qual, print_query
from eventcube.language.tree import attributes
from eventcube.nodes import transform
from eventcube.options import REWRITE, StrategyChoice
from eventcube.plan.logical import (
    And,
    FlatForm,
    Leaf,
    LogicalQuery,
    Negation,
    Node,
    Or,
    Region,
    Seq,
    map_nodes,
    map_regions,
)
from eventcube.plan.rules.flatten_negated import flatten_negated
from eventcube.plan.rules.merge_nested import merge_nested
from eventcube.plan.unbind import Unbinder

# Print at most this many queries: alternatives multiply.
MAX_QUERIES = 30

_TIED = "a SEQ cannot say that an event is missing at the very time of another"
_BESIDE = f"something else is negated in the same place, and {_TIED}"
_AT_END = "an event more would move the start or the end of the match"
_INSIDE = "no event can be added to what is around it"


def flat_lines(query: LogicalQuery, choice: StrategyChoice) -> Iterator[str]:
    """The flat queries of a query with rewritten parts, and the parts that stay nested."""
    if REWRITE not in (choice.default, *choice.parts.values()):
        return
    flatteners = [_Flattener(alternative) for alternative in islice(_alternatives(query), MAX_QUERIES + 1)]
    patterns = list(islice((flat for flattener in flatteners for flat in flattener.flat()), MAX_QUERIES + 1))
    queries = [_query(query.query, flat, alone=len(patterns) == 1) for flat in patterns[:MAX_QUERIES]]
    nested = dict.fromkeys(lines for flattener in flatteners[:MAX_QUERIES] for lines in flattener.nested_lines())
    if _shape(queries[0].pattern) != _shape(query.query.pattern) or not nested:
        yield "flat queries" if all(_is_flat(flat.pattern) for flat in queries) else "rewritten queries"
        yield from (f"  {_one_line(flat)}" for flat in queries)
        yield from (f"  {line}" for line in _notes(query.query, patterns))
    if nested:
        yield "stays nested"
        yield from (f"  {line}" for lines in nested for line in lines)


# Alternatives.


@dataclass(frozen=True, slots=True)
class _Choice:
    """A part with one alternative taken of each rewritten OR, and the numbers of those taken and dropped."""

    part: Node | Negation
    taken: frozenset[int] = frozenset()
    dropped: frozenset[int] = frozenset()


def _alternatives(query: LogicalQuery) -> Iterator[LogicalQuery]:
    """The query once for each combination of alternatives."""
    for choice in _choices(query.region.node):
        yield flatten_negated(merge_nested(_with_choice(query, choice)))


def _choices(part: Node | Negation) -> Iterator[_Choice]:
    match part:
        case Or(parts, numbers, strategy=None):
            for inner, number in zip(parts, numbers, strict=True):
                for choice in _choices(inner):
                    others = frozenset(numbers) - {number} | choice.dropped
                    yield _Choice(choice.part, choice.taken | {number}, others)
        case Seq() | And():
            for choices in product(*(list(islice(_choices(inner), MAX_QUERIES + 1)) for inner in part.parts)):
                yield _Choice(
                    replace(part, parts=tuple(choice.part for choice in choices)),
                    frozenset().union(*(choice.taken for choice in choices)),
                    frozenset().union(*(choice.dropped for choice in choices)),
                )
        case _:
            yield _Choice(part)


def _with_choice(query: LogicalQuery, choice: _Choice) -> LogicalQuery:
    """The query with some alternatives taken, without the conditions on events of the others."""
    dropped_slots = frozenset().union(*(query.alternatives[number] for number in choice.dropped))

    def unguard(node: Node) -> Node:
        if not isinstance(node, Seq | And):
            return node
        parts = (
            replace(part, guard=None if part.guard in choice.taken else part.guard, flat=None)
            if isinstance(part, Negation)
            else part
            for part in node.parts
        )
        return replace(node, parts=tuple(parts))

    def prune(region: Region) -> Region:
        predicates = tuple(
            replace(p, guard=None) if p.guard in choice.taken else p
            for p in region.predicates
            if not p.slots & dropped_slots and (p.guard is None or not query.alternatives[p.guard] <= dropped_slots)
        )
        return replace(region, node=map_nodes(region.node, unguard, lambda inner: inner), predicates=predicates)

    slots = tuple(
        replace(s, alternatives=tuple(a for a in s.alternatives if a not in choice.taken)) for s in query.slots
    )
    region = map_regions(replace(query.region, node=cast("Node", choice.part)), prune)
    return replace(query, slots=slots, region=region)


# Negated SEQs by exclusive cases.


@dataclass(frozen=True, slots=True)
class _Flat:
    """A pattern and the conditions of its WHERE; `variables` are those of the query whose events it binds."""

    pattern: syntax.Pattern
    where: tuple[syntax.Qual, ...]
    variables: tuple[str, ...]


# A replacement for a part: parts, and their conditions.
_Case = tuple[tuple[syntax.Part, ...], tuple[syntax.Qual, ...]]


class _Flattener:
    """Makes the flat patterns of a query with its alternatives taken."""

    def __init__(self, query: LogicalQuery) -> None:
        self.query, self.unbinder = query, Unbinder(query)
        self.names = {slot.name for slot in query.slots}
        self.new_names: dict[int, str] = {}

    def flat(self) -> Iterator[_Flat]:
        """The patterns whose matches together are those of the query."""
        node, where = self.query.region.node, self.unbinder.where()
        variables = tuple(_variables(self.unbinder.pattern()))
        if not isinstance(node, Seq):
            yield _Flat(self.unbinder.pattern(), where, variables)
            return
        for cases in product(*(self._cases(node, place) for place in range(len(node.parts)))):
            pattern = syntax.Seq(tuple(part for parts, _ in cases for part in parts))
            yield _Flat(pattern, (*where, *(qual for _, quals in cases for qual in quals)), variables)

    def _cases(self, node: Seq, place: int) -> list[_Case]:
        part = node.parts[place]
        form = _form(part)
        if form is None or not form.ordered or not _is_alone(node, place):
            return [((self.unbinder.part(part, self.query.region),), ())]
        events = [self.unbinder.missing(*event) for event in zip(form.slots, form.predicates, strict=True)]
        cases: list[_Case] = []
        for absent, present in form.cases():
            parts: list[syntax.Part] = [events[absent]]
            for i in present:
                parts += [events[i].pattern, self._no_later(form.slots[i], events[i])]
            cases.append((tuple(parts), tuple(qual for i in present for qual in events[i].quals)))
        return cases

    def _no_later(self, slot: int, event: syntax.Not) -> syntax.Not:
        """The same event, negated, under another name."""
        component = event.pattern
        assert isinstance(component, syntax.Component)
        old = component.name
        if slot not in self.new_names:
            self.new_names[slot] = next(name for i in range(2, 1 << 30) if (name := f"{old}{i}") not in self.names)
            self.names.add(self.new_names[slot])
        new = self.new_names[slot]
        return syntax.Not(syntax.Component(component.type, new), tuple(_renamed(q, old, new) for q in event.quals))

    # Parts that stay nested.

    def nested_lines(self) -> Iterator[tuple[str, ...]]:
        """For each part that stays nested although it should be rewritten, the lines that explain it."""
        node = self.query.region.node
        if not isinstance(node, Seq | And):
            return
        for place, part in enumerate(node.parts):
            form = _form(part)
            if isinstance(part, Negation) and form is not None:
                positive = [not isinstance(p, Negation) for p in node.parts]
                inside = any(positive[:place]) and any(positive[place:])
                if not (form.ordered and isinstance(node, Seq) and _is_alone(node, place)):
                    reason = _INSIDE if isinstance(node, And) else _BESIDE if inside else _AT_END
                    yield self._lines(part, form, reason)
            elif isinstance(part, Seq | And):
                if part.strategy is None:
                    pattern = print_pattern(self.unbinder.part(part, self.query.region))
                    yield (f"{pattern}: its events are bound in place, without an inner query",)
                yield from self._nested_lines_in(part)

    def _nested_lines_in(self, node: Seq | And) -> Iterator[tuple[str, ...]]:
        for part in node.parts:
            form = _form(part)
            if isinstance(part, Negation) and form is not None:
                yield self._lines(part, form, _INSIDE)
            elif isinstance(part, Seq | And):
                yield from self._nested_lines_in(part)

    def _lines(self, negation: Negation, form: FlatForm, reason: str) -> tuple[str, ...]:
        why = reason if form.ordered else _TIED
        head = f"{print_pattern(self.unbinder.negation(negation))}: {why}; it holds in one of these cases"
        return head, *(f"  {case}" for case in case_texts(form, self.unbinder))


def case_texts(form: FlatForm, unbinder: Unbinder) -> Iterator[str]:
    """The cases of a flat form in words."""
    events = [_with_quals(unbinder.missing(*event)) for event in zip(form.slots, form.predicates, strict=True)]
    for absent, present in form.cases():
        if form.ordered:
            yield " before the last ".join([f"no {events[absent]}", *(events[i] for i in present)])
        else:
            yield f"no {events[absent]}" + (
                f", but there is {' and '.join(events[i] for i in present)}" if present else ""
            )


def _with_quals(event: syntax.Not) -> str:
    where = " AND ".join(print_qual(q) for q in event.quals)
    return print_pattern(event.pattern) + (f" where {where}" if where else "")


def _form(part: Node | Negation) -> FlatForm | None:
    """The flat form of a negated part that is to be rewritten."""
    rewritten = isinstance(part, Negation) and part.strategy == REWRITE
    return part.flat if isinstance(part, Negation) and rewritten and isinstance(part.flat, FlatForm) else None


def _is_alone(node: Seq, place: int) -> bool:
    """Whether a part lies between two positive ones, and nothing else is negated there."""
    if not 0 < place < len(node.parts) - 1:
        return False
    before, after = node.parts[place - 1], node.parts[place + 1]
    return not (_looks_out(before, at_start=False) or _looks_out(after, at_start=True))


def _looks_out(part: Node | Negation, *, at_start: bool) -> bool:
    """Whether a part is negated, or has a negation at its border that looks beyond it."""
    match part:
        case Leaf():
            return False
        case Negation():
            return True
        case Seq(parts):
            return _looks_out(parts[0 if at_start else -1], at_start=at_start)
        case And(parts) | Or(parts):
            return any(_looks_out(p, at_start=at_start) for p in parts if not isinstance(p, Negation))


# Whole queries.


def _query(query: syntax.Query, flat: _Flat, *, alone: bool) -> syntax.Query:
    """The query with a flat pattern; one of several has no AGG or LIMIT, which apply to all of them together."""
    if alone:
        return replace(query, pattern=flat.pattern, where=flat.where)
    returns = query.returns
    variables = _variables(query.pattern)
    if _variables(flat.pattern) != variables:
        dropped = set(variables) - set(flat.variables)
        items = returns or [syntax.Item(syntax.Variable(name)) for name in variables]
        returns = tuple(_returned(item, dropped) for item in items)
    return replace(
        query,
        pattern=flat.pattern,
        where=flat.where,
        returns=returns,
        group_by=(),
        agg=(),
        per=None,
        having=(),
        limit=None,
    )


def _returned(item: syntax.Item, dropped: set[str]) -> syntax.Item:
    """The item, or null under its name if it is of an alternative that is not taken."""
    value = item.value
    used = (
        {value.name}
        if isinstance(value, syntax.Variable | syntax.Level | syntax.Levels)
        else {a.var for a in attributes(value)}
    )
    return syntax.Item(syntax.Literal(None), column_name(item)) if used & dropped else item


def _one_line(query: syntax.Query) -> str:
    where = f" WHERE {', '.join(print_qual(q) for q in query.where)}" if query.where else ""
    rest = print_query(replace(query, pattern=syntax.Component("_"), where=())).removeprefix("PATTERN _")
    return f"PATTERN {print_pattern(query.pattern)}{where}{rest.replace(chr(10), ' ')}"


def _notes(query: syntax.Query, patterns: Sequence[_Flat]) -> Iterator[str]:
    if len(patterns) > MAX_QUERIES:
        yield "… and more of them"
    known = _variables(query.pattern)
    added = [name for flat in patterns for name in _variables(flat.pattern) if name not in known]
    if added:
        last = " or ".join(dict.fromkeys(added))
        yield f"every match is of one of them; it comes once for each last {last} where several have the same time"
    if len(patterns) > 1 and (query.agg or query.limit is not None):
        yield f"{'AGG' if query.agg else 'LIMIT'} is of the matches of all of them together"


# Patterns.


def _variables(part: syntax.Part) -> list[str]:
    """The variables that a match binds, in the order of the text."""
    if isinstance(part, syntax.Not):
        return []
    return [part.name] if isinstance(part, syntax.Component) else [v for p in part.parts for v in _variables(p)]


def _is_flat(pattern: syntax.Pattern) -> bool:
    """Whether all parts are events, negated or not."""
    parts = () if isinstance(pattern, syntax.Component) else pattern.parts
    return all(isinstance(p.pattern if isinstance(p, syntax.Not) else p, syntax.Component) for p in parts)


def _shape(pattern: syntax.Pattern) -> syntax.Pattern:
    """The pattern without conditions."""

    def plain(node: object) -> object:
        return replace(node, quals=()) if isinstance(node, syntax.Seq | syntax.And | syntax.Or | syntax.Not) else node

    return transform(pattern, plain)


def _renamed(qual: syntax.Qual, old: str, new: str) -> syntax.Qual:
    """The condition with a variable renamed."""

    def rename(node: object) -> object:
        return replace(node, var=new) if isinstance(node, syntax.Attribute) and node.var == old else node

    return transform(qual, rename)
