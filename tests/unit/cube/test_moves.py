"""The moves that there are from a query."""

from __future__ import annotations

from tests.unit.cube.transit import CONCEPTS

from eventcube.cube import operations
from eventcube.cube.moves import moves
from eventcube.language.parse import parse
from eventcube.language.printer import print_pattern


def test_the_table() -> None:
    assert (
        str(moves(parse("PATTERN SEQ(G, !D, A, OK) WITHIN 1 s"), CONCEPTS))
        == """\
move                change                   gives
concept_drill_down  ('D', 'TX', 2)           SEQ(G, !TX, A, OK)
concept_drill_down  ('OK', 'T', 4)           SEQ(G, !D, A, T)
concept_roll_up     ('G', 'TX', 1)           SEQ(TX, !D, A, OK)
concept_roll_up     ('D', 'DBusStation', 2)  SEQ(G, !DBusStation, A, OK)
concept_roll_up     ('D', 'DHospital', 2)    SEQ(G, !DHospital, A, OK)
concept_roll_up     ('D', 'DShelter', 2)     SEQ(G, !DShelter, A, OK)
concept_roll_up     ('A', 'TX', 3)           SEQ(G, !D, TX, OK)
pattern_drill_down  (part, position)         a part inserted at one of the positions 1 to 5
pattern_roll_up     ('G', 1)                 SEQ(!D, A, OK)  (not coarser)
pattern_roll_up     ('!D', 2)                SEQ(G, A, OK)
pattern_roll_up     ('A', 3)                 SEQ(G, !D, OK)  (not coarser)
pattern_roll_up     ('OK', 4)                SEQ(G, !D, A)"""
    )


def test_every_move_can_be_made() -> None:
    query = parse("PATTERN SEQ(ANY x, !AND(D d, T t, d.k = x.k), SEQ(A a, G g), T u) WHERE x.k = u.k RETURN a")
    for move in moves(query, CONCEPTS):
        if move.change is not None:
            operation = getattr(operations, move.operation)
            arguments = [CONCEPTS] if move.operation.startswith("concept") else []
            assert print_pattern(operation(query, [move.change], *arguments).pattern) == move.gives


def test_what_others_need_cannot_be_removed() -> None:
    query = parse("PATTERN SEQ(A a, !(D d, d.k = a.k), T t, G g) RETURN t")
    removals = [move.change for move in moves(query) if move.operation == "pattern_roll_up"]
    assert removals == [("!D", 2), ("G", 4)]


def test_alternatives_have_concept_moves_only() -> None:
    assert {move.operation for move in moves(parse("PATTERN OR(D, T)"), CONCEPTS)} == {
        "concept_drill_down",
        "concept_roll_up",
    }


def test_a_single_component_is_position_one() -> None:
    found = moves(parse("PATTERN OK"), CONCEPTS)
    assert [move.change for move in found] == [("OK", "T", 1), None]
    assert str(found[0]) == "concept_drill_down(('OK', 'T', 1)): T"


def test_html() -> None:
    assert "concept_roll_up" in moves(parse("PATTERN SEQ(D, T)"), CONCEPTS)._repr_html_()
