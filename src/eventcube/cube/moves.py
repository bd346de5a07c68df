"""The moves that there are from a query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eventcube import markup
from eventcube.concepts.concepts import Concepts
from eventcube.cube.operations import concept_drill_down, concept_roll_up, pattern_drill_down, pattern_roll_up
from eventcube.cube.places import move_name, parts_of, type_name
from eventcube.cube.refinement import refinements_of
from eventcube.cube.shape import Shape, shape_of
from eventcube.errors import OptionError
from eventcube.language.identifiers import ANY
from eventcube.language.printer import print_pattern
from eventcube.language.syntax import Component, Not, Or, Query
from eventcube.options import invalid_argument
from eventcube.plan.bind import bind
from eventcube.schema import EventSchema

_HEADER = ("move", "change", "gives")


@dataclass(frozen=True, slots=True)
class Move:
    """A drill-down or roll-up of a query: the operation, its change, and the pattern that it gives.

    `change` is (type, new type, position), or (type, position); for the insertion of a part (any type, any of the
    positions) it is None. A drill-down that is `related` is sure to be finer, and such a roll-up to be
    coarser. Without a part that stands beside a negated one, for example, that one looks at another interval, and
    matches may be lost. A part inserted at one of the positions `unrelated_at` is only sure to make the query finer if
    it is negated.
    """

    operation: str
    change: tuple[str, str, int] | tuple[str, int] | None
    gives: str
    related: bool = True
    unrelated_at: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.operation}({'…' if self.change is None else self.change}): {self.gives}{self._reservation()}"

    def _reservation(self) -> str:
        if self.unrelated_at:
            return f"  (not finer at {', '.join(map(str, self.unrelated_at))} unless negated)"
        if self.related:
            return ""
        return "  (not finer)" if self.operation.endswith("drill_down") else "  (not coarser)"

    def row(self) -> tuple[str, str, str]:
        """The move as a row of a table."""
        change = "(part, position)" if self.change is None else str(self.change)
        return self.operation, change, self.gives + self._reservation()


def change_of(move: Move) -> tuple[str, str, int] | tuple[str, int]:
    """The change of a move that can be made as it is."""
    if not isinstance(move, Move):
        raise invalid_argument("a move", move, "one of cube.moves(query)")
    if move.change is None:
        hint = f"say which, and where: {move.operation}(query, ('!Dell', 2))"
        raise OptionError("the move inserts any part", code="EC465", hint=hint)
    return move.change


class Moves(tuple[Move, ...]):
    """The moves from a query, shown as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        rows = [_HEADER, *(move.row() for move in self)]
        widths = [max(len(row[column]) for row in rows) for column in range(2)]
        return "\n".join(f"{one:<{widths[0]}}  {two:<{widths[1]}}  {three}".rstrip() for one, two, three in rows)

    def _repr_html_(self) -> str:
        return markup.page(markup.laid_out(str(self)))


def moves(query: Query, schema: EventSchema, concepts: Concepts | None = None) -> Moves:
    """The moves from a query: types one level down or up, parts taken out, and where parts can be inserted.

    The query must fit the schema, which tells how its conditions relate to those of other queries.
    """
    relation = _Relation(query, schema, concepts)
    found = [] if concepts is None else [*_concept_moves(query, relation, concepts)]
    return Moves((*found, *_pattern_moves(query, relation)))


class _Relation:
    """How a query relates to others of its schema."""

    def __init__(self, query: Query, schema: EventSchema, concepts: Concepts | None) -> None:
        self._schema, self._concepts = schema, concepts
        self._shape = self._shape_of(query)

    def _shape_of(self, query: Query) -> Shape | None:
        return shape_of(bind(query, self._schema, self._concepts))

    def is_finer(self, other: Query) -> bool:
        """Whether another query refines the query."""
        return _refines(self._shape_of(other), self._shape)

    def is_coarser(self, other: Query) -> bool:
        """Whether the query refines another."""
        return _refines(self._shape, self._shape_of(other))


def _refines(finer: Shape | None, coarser: Shape | None) -> bool:
    return finer is not None and coarser is not None and bool(refinements_of(finer, coarser))


def _concept_moves(query: Query, relation: _Relation, concepts: Concepts) -> Iterator[Move]:
    for down in (True, False):
        for position, part in enumerate(parts_of(query), 1):
            component = part.pattern if isinstance(part, Not) else part
            if not isinstance(component, Component):
                continue
            name = type_name(component)
            operation = concept_drill_down if down else concept_roll_up
            for other in _next_types(name, concepts, down != isinstance(part, Not)):
                change = name, other, position
                moved = operation(query, [change], concepts)
                related = relation.is_finer(moved) if down else relation.is_coarser(moved)
                yield Move(operation.__name__, change, print_pattern(moved.pattern), related)


def _next_types(name: str, concepts: Concepts, down: bool) -> tuple[str, ...]:
    """The types one level below a type, or above it."""
    if not down:
        return concepts.ancestors(name)[:1]
    if name == ANY:
        return tuple(root for root in concepts.depth_first if root not in concepts.parents)
    return concepts.children(name)


def _pattern_moves(query: Query, relation: _Relation) -> Iterator[Move]:
    if isinstance(query.pattern, Or):
        return
    yield _insertion(query, relation)
    for position, part in enumerate(parts_of(query), 1):
        change = move_name(part), position
        try:
            moved = pattern_roll_up(query, [change])
        except OptionError:
            # The last part without '!', or one that something else needs.
            continue
        yield Move("pattern_roll_up", change, print_pattern(moved.pattern), relation.is_coarser(moved))


def _insertion(query: Query, relation: _Relation) -> Move:
    last = len(parts_of(query)) + 1
    # Where an event of any type makes the query finer, so does every part.
    apart = tuple(
        position
        for position in range(1, last + 1)
        if not relation.is_finer(pattern_drill_down(query, [(ANY, position)]))
    )
    gives = f"a part inserted at position 1 to {last}"
    return Move("pattern_drill_down", None, gives, unrelated_at=apart)
