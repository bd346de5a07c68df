"""The moves that there are from a query."""

from __future__ import annotations

import pytest
from tests.unit.cube.transit import CONCEPTS, SCHEMA

from eventcube.cube import operations
from eventcube.cube.moves import Moves, moves
from eventcube.language.parse import parse
from eventcube.language.printer import print_pattern


def _moves(query: str) -> Moves:
    return moves(parse(f"PATTERN {query}"), SCHEMA, CONCEPTS)


def test_the_table() -> None:
    assert (
        str(_moves("SEQ(G, !D, A, OK) WITHIN 1 s"))
        == """\
move                change                   gives
concept_drill_down  ('D', 'TX', 2)           SEQ(G, !TX, A, OK)
concept_drill_down  ('OK', 'T', 4)           SEQ(G, !D, A, T)
concept_roll_up     ('G', 'TX', 1)           SEQ(TX, !D, A, OK)
concept_roll_up     ('D', 'DBusStation', 2)  SEQ(G, !DBusStation, A, OK)
concept_roll_up     ('D', 'DHospital', 2)    SEQ(G, !DHospital, A, OK)
concept_roll_up     ('D', 'DShelter', 2)     SEQ(G, !DShelter, A, OK)
concept_roll_up     ('A', 'TX', 3)           SEQ(G, !D, TX, OK)
pattern_drill_down  (part, position)         a part inserted at position 1 to 5  (not finer at 2, 3 unless negated)
pattern_roll_up     ('G', 1)                 SEQ(!D, A, OK)  (not coarser)
pattern_roll_up     ('!D', 2)                SEQ(G, A, OK)
pattern_roll_up     ('A', 3)                 SEQ(G, !D, OK)  (not coarser)
pattern_roll_up     ('OK', 4)                SEQ(G, !D, A)"""
    )


@pytest.mark.parametrize(
    ("query", "change", "coarser"),
    [
        pytest.param("SEQ(A a, G b, G c, !D d, T t)", ("G", 3), True, id="another neighbour of the same type"),
        pytest.param("SEQ(A a, G b, G c, !(D d, d.k = c.k), T t) WHERE b.k = c.k", ("G", 2), True, id="kept"),
        pytest.param("SEQ(A a, G b, G c, !(D d, d.k = b.k), T t)", ("G", 3), False, id="tied to another event"),
        pytest.param("SEQ(A a, G b, G c, !D d, T t) WHERE b.n > 3", ("G", 3), False, id="a condition on another"),
        pytest.param("SEQ(A a, G b, T t) WHERE a.k = b.k = t.k", ("G", 2), True, id="a chain of equalities"),
        pytest.param("SEQ(A a, G b, T t) WHERE a.k = b.x = t.n", ("G", 2), False, id="numbers that round"),
        pytest.param("SEQ(A a, G b, !D d) WITHIN 5 events", ("A", 1), False, id="a trailing part looks further"),
    ],
)
def test_conditions_decide_whether_a_roll_up_is_coarser(query: str, change: tuple[str, int], coarser: bool) -> None:
    assert next(move.related for move in _moves(query) if move.change == change) is coarser


def test_nothing_is_claimed_of_a_query_that_is_too_large_to_be_compared() -> None:
    alternatives = ", ".join(f"OR(G g{n}, A a{n})" for n in range(6))
    found = _moves(f"SEQ(OK ok, {alternatives})")
    assert str(found[0]).endswith("(not finer)")
    assert {move.operation: move.related for move in found if move.change} == {
        "concept_drill_down": False,
        "pattern_roll_up": False,
    }


def test_every_move_can_be_made() -> None:
    query = parse("PATTERN SEQ(ANY x, !AND(D d, T t, d.k = x.k), SEQ(A a, G g), T u) WHERE x.k = u.k RETURN a")
    for move in moves(query, SCHEMA, CONCEPTS):
        if move.change is not None:
            operation = getattr(operations, move.operation)
            arguments = [CONCEPTS] if move.operation.startswith("concept") else []
            assert print_pattern(operation(query, [move.change], *arguments).pattern) == move.gives


def test_what_others_need_cannot_be_removed() -> None:
    found = _moves("SEQ(A a, !(D d, d.k = a.k), T t, G g) RETURN t")
    removals = [move.change for move in found if move.operation == "pattern_roll_up"]
    assert removals == [("!D", 2), ("G", 4)]


def test_alternatives_have_concept_moves_only() -> None:
    assert {move.operation for move in _moves("OR(D, T)")} == {
        "concept_drill_down",
        "concept_roll_up",
    }


def test_a_single_component_is_position_one() -> None:
    found = _moves("OK")
    assert [move.change for move in found] == [("OK", "T", 1), None]
    assert str(found[0]) == "concept_drill_down(('OK', 'T', 1)): T"


def test_html() -> None:
    assert "concept_roll_up" in _moves("SEQ(D, T)")._repr_html_()
