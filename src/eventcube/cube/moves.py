"""The moves that there are from a query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from eventcube import markup
from eventcube.concepts.concepts import Concepts
from eventcube.cube.operations import concept_drill_down, concept_roll_up, pattern_roll_up
from eventcube.cube.places import move_name, parts_of, type_name
from eventcube.cube.refinement import refinements
from eventcube.errors import OptionError
from eventcube.language.identifiers import ANY
from eventcube.language.printer import print_pattern
from eventcube.language.syntax import And, Component, Not, Or, Pattern, Query, Seq
from eventcube.nodes import transform
from eventcube.plan.bind import bind
from eventcube.schema import EventSchema

# Columns that patterns without conditions can be bound to.
_SCHEMA = EventSchema(pa.schema([("time", pa.timestamp("us")), ("type", pa.string())]), "time", "type")
_HEADER = ("move", "change", "gives")


@dataclass(frozen=True, slots=True)
class Move:
    """A drill-down or roll-up of a query: the operation, its change, and the pattern that it gives.

    `change` is (type, new type, position), or (type, position); for the insertion of a part (any type, any of the
    positions) it is None. A roll-up that is not `coarser` takes out a part beside which a negated one stands: that one
    looks at another interval then, so that some matches may be lost.
    """

    operation: str
    change: tuple[str, str, int] | tuple[str, int] | None
    gives: str
    coarser: bool = True

    def __str__(self) -> str:
        return f"{self.operation}({'…' if self.change is None else self.change}): {self.gives}"


class Moves(tuple[Move, ...]):
    """The moves from a query, shown as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        rows = [_HEADER, *map(_row, self)]
        widths = [max(len(row[column]) for row in rows) for column in range(2)]
        return "\n".join(f"{one:<{widths[0]}}  {two:<{widths[1]}}  {three}".rstrip() for one, two, three in rows)

    def _repr_html_(self) -> str:
        return markup.page(markup.laid_out(str(self)))


def moves(query: Query, concepts: Concepts | None = None) -> Moves:
    """The moves from a query: types one level down or up, parts taken out, and where parts can be inserted."""
    found = [] if concepts is None else [*_concept_moves(query, concepts)]
    return Moves((*found, *_pattern_moves(query)))


def _concept_moves(query: Query, concepts: Concepts) -> Iterator[Move]:
    for down in (True, False):
        for position, part in enumerate(parts_of(query), 1):
            component = part.pattern if isinstance(part, Not) else part
            if not isinstance(component, Component):
                continue
            name = type_name(component)
            for other in _next_types(name, concepts, down != isinstance(part, Not)):
                change = name, other, position
                operation = concept_drill_down if down else concept_roll_up
                yield Move(operation.__name__, change, print_pattern(operation(query, [change], concepts).pattern))


def _next_types(name: str, concepts: Concepts, down: bool) -> tuple[str, ...]:
    """The types one level below a type, or above it."""
    if not down:
        return concepts.ancestors(name)[:1]
    if name == ANY:
        return tuple(root for root in concepts.depth_first if root not in concepts.parents)
    return concepts.children(name)


def _pattern_moves(query: Query) -> Iterator[Move]:
    if isinstance(query.pattern, Or):
        return
    parts = parts_of(query)
    yield Move("pattern_drill_down", None, f"a part inserted at one of the positions 1 to {len(parts) + 1}")
    for position, part in enumerate(parts, 1):
        change = move_name(part), position
        try:
            rolled_up = pattern_roll_up(query, [change])
        except OptionError:
            # The last part without '!', or one that something else needs.
            continue
        yield Move("pattern_roll_up", change, print_pattern(rolled_up.pattern), _refines(query, rolled_up))


def _refines(finer: Query, coarser: Query) -> bool:
    """Whether the pattern of one query refines that of the other, whatever their conditions are."""
    one, other = (
        bind(Query(_unconditional(query.pattern), within=query.within), _SCHEMA) for query in (finer, coarser)
    )
    return bool(refinements(one, other))


def _unconditional(pattern: Pattern) -> Pattern:
    def change(node: object) -> object:
        return replace(node, quals=()) if isinstance(node, Not | Seq | And | Or) else node

    return transform(pattern, change)


def _row(move: Move) -> tuple[str, str, str]:
    change = "(part, position)" if move.change is None else str(move.change)
    return move.operation, change, move.gives + ("" if move.coarser else "  (not coarser)")
