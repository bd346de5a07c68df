"""The nested parts of a query, as users name them.

A part goes by a variable of an event directly in it. If it has only nested parts, it goes by the first and the last
variable in it: `b..e`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from eventcube.errors import OptionError, did_you_mean
from eventcube.language.syntax import Component, Not, Pattern, Query
from eventcube.options import ITERATIVE, StrategyChoice
from eventcube.plan.logical import Leaf, LogicalQuery, Negation, Node, Or, Slot, map_query, slots_of


def nested(pattern: Pattern) -> Iterator[Pattern]:
    """The parts of a pattern that are patterns themselves, at any depth."""
    for part in () if isinstance(pattern, Component) else pattern.parts:
        inner = part.pattern if isinstance(part, Not) else part
        if not isinstance(inner, Component):
            yield inner
            yield from nested(inner)


def names_of(direct: Sequence[str], inside: Sequence[str]) -> tuple[str, ...]:
    """The names of a part: the variables directly in it, or if there are none the first and the last inside it."""
    return tuple(direct) or (f"{inside[0]}..{inside[-1]}",)


def node_names(node: Node, slots: Sequence[Slot]) -> tuple[str, ...]:
    """The names of a part of a bound query."""
    parts = (node,) if isinstance(node, Leaf) else node.parts
    direct = [slots[part.slot].name for part in parts if isinstance(part, Leaf)]
    return names_of(direct, [slots[s].name for s in sorted(slots_of(node))])


def part_label(node: Node, slots: Sequence[Slot]) -> str:
    """The variables in a part, after its name where none of them is one."""
    inside = [slots[s].name for s in sorted(slots_of(node))]
    name = node_names(node, slots)[0]
    return f"{'' if name in inside else f'{name}: '}{', '.join(inside)}"


def with_strategies(query: LogicalQuery, choice: StrategyChoice) -> LogicalQuery:
    """The query with a strategy for each of its nested parts, as chosen by their names."""

    def change(node: Node) -> Node:
        if isinstance(node, Leaf):
            return node
        chosen = replace(node, strategy=choice.of(node_names(node, query.slots)))
        if isinstance(chosen, Or):
            return chosen
        return replace(
            chosen, parts=tuple(with_part_strategy(p) if isinstance(p, Negation) else p for p in chosen.parts)
        )

    chosen = map_query(query, change)
    node = chosen.region.node
    if isinstance(node, Leaf):
        return chosen
    # The whole query is no nested part.
    return replace(chosen, region=replace(chosen.region, node=replace(node, strategy=None)))


def with_part_strategy(negation: Negation) -> Negation:
    """The negation with the strategy of the part that it negates; a single event has none."""
    node = negation.region.node
    if isinstance(node, Leaf):
        return replace(negation, strategy=ITERATIVE)
    region = replace(negation.region, node=replace(node, strategy=None))
    return replace(negation, region=region, strategy=node.strategy or ITERATIVE)


def part_names(pattern: Pattern) -> tuple[str, ...]:
    """The names of a part, any of which will do."""
    parts = () if isinstance(pattern, Component) else pattern.parts
    return names_of([p.name for p in parts if isinstance(p, Component)], _variables(pattern))


def _variables(pattern: Pattern) -> list[str]:
    """The variables that a match of the pattern binds, in the order of the text."""
    if isinstance(pattern, Component):
        return [pattern.name]
    return [v for p in pattern.parts if not isinstance(p, Not) for v in _variables(p)]


def nested_parts(pattern: Pattern) -> Iterator[tuple[str, ...]]:
    """For each nested part of a pattern its names."""
    return map(part_names, nested(pattern))


def own_strategies(choice: StrategyChoice, queries: Iterable[Query]) -> StrategyChoice:
    """The strategies without those for parts of other queries."""
    names = {name for query in queries for own in nested_parts(query.pattern) for name in own}
    return replace(choice, parts={name: strategy for name, strategy in choice.parts.items() if name in names})


def check_strategies(choice: StrategyChoice, queries: Iterable[Query], known: Iterable[str]) -> None:
    """Refuse strategies that are not known, or are for parts that no query has, and two different ones for one part."""
    names = sorted(known)
    for name in (choice.default, *choice.parts.values()):
        if name not in names:
            raise OptionError(f"unknown strategy {name!r}", code="EC404", hint=did_you_mean(name, names))
    if not choice.parts:
        return
    parts = [own for query in queries for own in nested_parts(query.pattern)]
    in_parts = [name for own in parts for name in own]
    for name in choice.parts:
        if name not in in_parts:
            shown = ", ".join(f"({', '.join(own)})" for own in parts)
            hint = f"name each part by one of its own: {shown}" if parts else "there is no nested part: leave it out"
            raise OptionError(f"a strategy for {name!r}, which names no nested part", code="EC404", hint=hint)
    for own in parts:
        said = {name: choice.parts[name] for name in own if name in choice.parts}
        if len(set(said.values())) > 1:
            shown = " and ".join(f"{name}={strategy}" for name, strategy in said.items())
            raise OptionError(f"two strategies for one part: {shown}", code="EC404", hint="name each part once")
