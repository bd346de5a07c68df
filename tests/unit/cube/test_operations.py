"""Drill-down and roll-up: the paper's examples, positions, variables, conditions, and moves that there are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.cube.transit import CONCEPTS, QUERIES

from eventcube.concepts.concepts import Concepts
from eventcube.cube.operations import concept_drill_down, concept_roll_up, pattern_drill_down, pattern_roll_up
from eventcube.errors import EventCubeError
from eventcube.language.parse import parse
from eventcube.language.syntax import Query


def _query(text: str) -> Query:
    return parse(f"PATTERN {text}")


def test_the_examples_of_the_paper() -> None:
    queries = {name: _query(text) for name, text in QUERIES.items()}
    assert pattern_drill_down(queries["q3"], [("!D", 2)]) == queries["q7"]
    assert concept_drill_down(queries["q1"], [("TX", "D", 1), ("OK", "T", 2)], CONCEPTS) == queries["q2"]
    assert pattern_roll_up(queries["q6"], [("G", 1), ("A", 2)]) == queries["q2"]
    assert concept_roll_up(queries["q2"], [("D", "TX", 1), ("T", "OK", 2)], CONCEPTS) == queries["q1"]
    # For a negated type the finer query has the coarser type.
    assert concept_drill_down(queries["q4"], [("DBusStation", "D", 2)], CONCEPTS) == queries["q7"]
    assert concept_roll_up(queries["q7"], [("D", "DBusStation", 2)], CONCEPTS) == queries["q4"]


def test_the_new_query_has_its_text_and_source() -> None:
    query = parse("PATTERN  SEQ( G,A )  -- people\nWITHIN 1 s", "people.neel")
    moved = pattern_drill_down(query, [("T", 3)])
    assert moved.text == "PATTERN SEQ(G, A, T)\nWITHIN 1 second"
    assert moved.source == "people.neel"
    assert parse(moved.text) == moved


@pytest.mark.parametrize(
    ("query", "insertions", "expected"),
    [
        ("SEQ(G, A)", [("T", 1)], "SEQ(T, G, A)"),
        ("SEQ(G, A)", [("T", 3)], "SEQ(G, A, T)"),
        ("SEQ(G, A)", [("T", 4), ("D", 1)], "SEQ(D, G, A, T)"),
        ("SEQ(G, A)", [("T", 2), ("D", 3)], "SEQ(G, T, D, A)"),
        ("AND(G, A)", [("!T", 2)], "AND(G, !T, A)"),
        ("G g WHERE g.x > 1", [("T", 2)], "SEQ(G g, T t) WHERE g.x > 1"),
        ("SEQ(G, A)", [("T x", 2)], "SEQ(G, T x, A)"),
        ("SEQ(G g, A a)", [("T", 2)], "SEQ(G g, T t, A a)"),
        ("SEQ(G g, A a)", [("A", 3)], "SEQ(G g, A a, A a2)"),
        ("SEQ(G, A)", [("A", 3), ("A", 4)], "SEQ(G, A, A a, A a2)"),
        ("SEQ(G g, A a)", [("ins-type", 3)], "SEQ(G g, A a, `ins-type` instype)"),
        ("SEQ(G g, A a)", [("End", 3)], "SEQ(G g, A a, End end2)"),
        ("SEQ(G g, A a)", [("ANY", 3)], "SEQ(G g, A a, ANY any)"),
        ("SEQ(G g, A a)", [("`Corner shop` c", 2)], "SEQ(G g, `Corner shop` c, A a)"),
        ("SEQ(G g, A a)", [("!(T t, t.k = g.k)", 2)], "SEQ(G g, !(T t, t.k = g.k), A a)"),
        ("SEQ(G g, A a)", [("AND(D d, T t)", 3)], "SEQ(G g, A a, AND(D d, T t))"),
        ("SEQ(G g, A a)", [("!SEQ(D d, T t)", 2)], "SEQ(G g, !SEQ(D d, T t), A a)"),
        ("SEQ(G g, A a)", [("(T t, t.k = g.k)", 2)], "SEQ(G g, T t, A a) WHERE t.k = g.k"),
        ("SEQ(G g, A a)", [("T t, t.k > 3, t.k < 5", 1)], "SEQ(T t, G g, A a) WHERE t.k > 3 AND t.k < 5"),
        ("AND(G g, A a, g.x = 1)", [("(T, T.k = 1)", 2)], "AND(G g, T, A a, g.x = 1) WHERE T.k = 1"),
        ("G g", [("(OR(T t, D d), t.k = 1)", 2)], "SEQ(G g, OR(T t, D d)) WHERE t.k = 1"),
        ("SEQ(G g, A a)", [], "SEQ(G g, A a)"),
    ],
)
def test_insertions(query: str, insertions: Any, expected: str) -> None:
    assert pattern_drill_down(_query(query), insertions) == _query(expected)


@pytest.mark.parametrize(
    ("query", "removals", "expected"),
    [
        ("SEQ(G, A, T)", [("A", 2)], "SEQ(G, T)"),
        ("SEQ(G, !D, A)", [("!D", 2)], "SEQ(G, A)"),
        ("SEQ(G, !D, A)", [("D", 2)], "SEQ(G, A)"),
        ("SEQ(G, A, T)", [("T", 3), ("G", 1)], "A"),
        ("SEQ(G, AND(A, D), T)", [("AND", 2)], "SEQ(G, T)"),
        ("SEQ(G, !AND(A, D), T)", [("!AND(A, D)", 2)], "SEQ(G, T)"),
        ("AND(SEQ(G, A), T)", [("T", 2)], "SEQ(G, A)"),
        # Conditions.
        ("SEQ(A a, B b, C c) WHERE a.k = b.k = c.k", [("B", 2)], "SEQ(A a, C c) WHERE a.k = c.k"),
        ("SEQ(A a, B b, C c, a.k = b.k = c.k)", [("B", 2)], "SEQ(A a, C c, a.k = c.k)"),
        ("SEQ(A a, B b, C c, D d) WHERE a.k = b.k = c.k = d.k", [("B", 2)], "SEQ(A a, C c, D d) WHERE a.k = c.k = d.k"),
        ("SEQ(A a, B b, C c) WHERE a.k = b.k AND c.k = b.k", [("B", 2)], "SEQ(A a, C c) WHERE a.k = c.k"),
        ("SEQ(A a, B b, C c, a.k = b.k) WHERE c.k = b.k", [("B", 2)], "SEQ(A a, C c) WHERE a.k = c.k"),
        ("SEQ(A a, B b, C c) WHERE a.k = b.k + 1 AND b.k + 1 = c.n", [("B", 2)], "SEQ(A a, C c) WHERE a.k = c.n"),
        ("SEQ(A a, B b) WHERE a.k = b.k = 3", [("B", 2)], "A a WHERE a.k = 3"),
        ("SEQ(A a, B b) WHERE 3 = b.k = 4", [("B", 2)], "A a"),
        ("SEQ(A a, B b, C c) WHERE a.k = b.k AND b.x > 1 AND a.x < c.x", [("B", 2)], "SEQ(A a, C c) WHERE a.x < c.x"),
        ("SEQ(A a, B b, C c) WHERE a.x < b.x < c.x", [("B", 2)], "SEQ(A a, C c)"),
        ("SEQ(A a, B b, C c) WHERE a.k = c.k OR b.x = 1", [("B", 2)], "SEQ(A a, C c)"),
        (
            "SEQ(A a, B b, C c) WHERE a.k = b.k = c.k AND a.k = c.k",
            [("B", 2)],
            "SEQ(A a, C c) WHERE a.k = c.k AND a.k = c.k",
        ),
        ("SEQ(A a, !B b, C c) WHERE a.k = b.k = c.k", [("B", 2)], "SEQ(A a, C c)"),
        ("SEQ(A a, OR(B b, D d), C c) WHERE a.k = b.k = c.k", [("OR", 2)], "SEQ(A a, C c)"),
        (
            "SEQ(OR(A a, B b), D d, C c) WHERE a.k = b.k = d.k = c.k",
            [("D", 2)],
            "SEQ(OR(A a, B b), C c) WHERE a.k = b.k = c.k",
        ),
        ("SEQ(A a, SEQ(C c, D d, c.k = a.k, d.x > 1))", [("A", 1)], "SEQ(C c, D d, d.x > 1)"),
        ("SEQ(A a, B b, a.x > 1, b.x > 1) WHERE b.k = 1", [("A", 1)], "B b WHERE b.x > 1 AND b.k = 1"),
        # Conditions of negated parts take an equal attribute.
        (
            "SEQ(A a, B b, !(D d, d.k = b.k), C c) WHERE a.k = b.k",
            [("B", 2)],
            "SEQ(A a, !(D d, d.k = a.k), C c)",
        ),
        (
            "SEQ(A a, B b, !D d, C c) WHERE a.k = b.k = c.k AND d.k < b.k",
            [("B", 2)],
            "SEQ(A a, !D d, C c) WHERE a.k = c.k AND d.k < a.k",
        ),
        ("SEQ(A a, B b, !D d, C c) WHERE d.k = c.k", [("B", 2)], "SEQ(A a, !D d, C c) WHERE d.k = c.k"),
        ("SEQ(A a, B b) WITHIN 1 s RETURN a.x", [("B", 2)], "A a WITHIN 1 s RETURN a.x"),
    ],
)
def test_removals(query: str, removals: Any, expected: str) -> None:
    assert pattern_roll_up(_query(query), removals) == _query(expected)


@pytest.mark.parametrize(
    ("query", "changes", "expected"),
    [
        ("SEQ(TX t, OK)", [("TX", "DHospital", 1)], "SEQ(DHospital t, OK)"),
        ("SEQ(G, !DBusStation d, A)", [("DBusStation", "TX", 2)], "SEQ(G, !TX d, A)"),
        ("SEQ(G, !DBusStation d, A)", [("!DBusStation", "!TX", 2)], "SEQ(G, !TX d, A)"),
        ("TX", [("TX", "D", 1)], "D"),
        ("OR(TX, T)", [("TX", "D", 1)], "OR(D, T)"),
        ("SEQ(ANY x, T)", [("ANY", "D", 1)], "SEQ(D x, T)"),
        # A component that is named by its type gets another name, everywhere.
        (
            "SEQ(TX, OK) WHERE TX.k = OK.k RETURN TX, TX.x",
            [("TX", "D", 1)],
            "SEQ(D, OK) WHERE D.k = OK.k RETURN D, D.x",
        ),
        ("SEQ(TX, D) WHERE TX.k = D.k", [("TX", "D", 1)], "SEQ(D d, D) WHERE d.k = D.k"),
        (
            "SEQ(TX, T) GROUPBY TX, TX.k AGG MAX(TX.x) HAVING TX = 'G' AND `MAX(TX.x)` > 1",
            [("TX", "D", 1)],
            "SEQ(D, T) GROUPBY D, D.k AGG MAX(D.x) HAVING D = 'G' AND `MAX(D.x)` > 1",
        ),
    ],
)
def test_finer_types(query: str, changes: Any, expected: str) -> None:
    assert concept_drill_down(_query(query), changes, CONCEPTS) == _query(expected)


def test_roll_up_to_any_type() -> None:
    assert concept_roll_up(_query("SEQ(D d, T)"), [("D", "ANY", 1)], CONCEPTS) == _query("SEQ(ANY d, T)")


Move = Callable[[Query], Query]


def _drill(*changes: Any) -> Move:
    return lambda query: concept_drill_down(query, changes, CONCEPTS)


def _roll(*changes: Any) -> Move:
    return lambda query: concept_roll_up(query, changes, CONCEPTS)


def _insert(*changes: Any) -> Move:
    return lambda query: pattern_drill_down(query, changes)


def _remove(*changes: Any) -> Move:
    return lambda query: pattern_roll_up(query, changes)


@pytest.mark.parametrize(
    ("query", "move", "code", "words"),
    [
        (
            "SEQ(TX, OK)",
            _drill(("TX", "D", 3)),
            "EC460",
            "no position 3: the query has 2 parts\nhint: positions: 1 TX, 2 OK",
        ),
        ("TX", _drill(("TX", "D", 0)), "EC460", "no position 0: the query has 1 part\n"),
        ("SEQ(TX, OK)", _drill(("TX", "D", 1), ("TX", "G", 1)), "EC460", "position 1 is given twice"),
        (
            "SEQ(TX, OK)",
            _drill(("TX", "D", "1")),
            "EC414",
            r"cannot be \('TX', 'D', '1'\)\nhint: give \('Computer', .*: the position is a whole number, not '1'",
        ),
        ("SEQ(TX, OK)", _drill(("TX", "D")), "EC414", r"cannot be \('TX', 'D'\)\nhint: .*: the position is missing"),
        (
            "SEQ(TX, OK)",
            _drill(("TX", "D", 2)),
            "EC461",
            "position 2 is OK, not TX\nhint: TX is at position 1; positions",
        ),
        ("SEQ(TX, OK)", _drill(("!TX", "D", 1)), "EC461", "position 1 is TX, not !TX"),
        (
            "SEQ(TX, AND(D, T))",
            _drill(("D", "T", 2)),
            "EC461",
            r"position 2 is AND\(D, T\), not a single type\nhint: .*1 TX",
        ),
        ("SEQ(TX, OK)", _drill(("TX", "T", 1)), "EC462", "'T' is not below 'TX' .*\nhint: below TX: D, DBusStation,"),
        ("SEQ(D, OK)", _drill(("D", "TX", 1)), "EC462", "TX is above it: that is the opposite move"),
        ("SEQ(G, OK)", _drill(("G", "D", 1)), "EC462", "no type is below G"),
        ("SEQ(D, OK)", _roll(("D", "OK", 1)), "EC462", "'OK' is not above 'D' .*\nhint: above D: TX, ANY"),
        (
            "SEQ(G, !D, A)",
            _drill(("D", "DHospital", 2)),
            "EC462",
            "'DHospital' .*\nhint: the part is negated, so its type goes up on a drill-down; above D: TX, ANY; DH",
        ),
        ("SEQ(G, !D, A)", _roll(("D", "TX", 2)), "EC462", "negated, so its type goes down on a roll-up; below D: "),
        ("SEQ(TX, OK)", _drill(("TX", "DHospitl", 1)), "EC318", "no type 'DHospitl'\nhint: did you mean 'DHospital'"),
        (
            "SEQ(G, A)",
            _insert(("T", 4)),
            "EC460",
            "'T' cannot be inserted at position 4: the query has 2 parts\nhint: insert it at 1 to 3",
        ),
        (
            "G",
            _insert(("T", 1), ("T", 4)),
            "EC460",
            "position 4: the query has 2 parts with those inserted before it\n",
        ),
        ("SEQ(G, A)", _insert(("T", 0)), "EC460", "cannot be inserted at position 0"),
        ("SEQ(G, A)", _insert(("T", 1), ("D", 1)), "EC460", "position 1 is given twice"),
        ("SEQ(G g, A a)", _insert(("T a", 3)), "EC465", "the name 'a' in 'T a' is taken\nhint: write, say, T t"),
        ("SEQ(G g, A a)", _insert(("T end", 3)), "EC465", "the name 'end' in 'T end' is taken"),
        ("SEQ(G g, A a)", _insert(("AND(T a, D)", 3)), "EC465", "the name 'a'"),
        ("SEQ(G, A)", _insert(("AND(A, T)", 3)), "EC465", "the name 'A' in .* is taken"),
        ("SEQ(G, A)", _insert(("T t u", 3)), "EC465", "'T t u' cannot be inserted"),
        ("SEQ(G, A)", _insert(("T t, D d", 3)), "EC465", "'T t, D d' is not one part"),
        ("SEQ(G, A)", _insert(("!T t, t.x > 1", 3)), "EC465", "is not one part"),
        ("SEQ(G g, G)", _insert(("(G, G.x > 1)", 3)), "EC465", "the name 'G' in .* is taken\nhint: give it a variable"),
        ("SEQ(G, A)", _insert(("", 3)), "EC465", "'' cannot be inserted"),
        ("OR(G, A)", _insert(("T", 3)), "EC466", "the parts of OR are alternatives"),
        ("OR(G, A)", _remove(("A", 2)), "EC466", "the parts of OR are alternatives"),
        ("SEQ(G, A)", _remove(("A", 1)), "EC461", "position 1 is G, not A\nhint: A is at position 2"),
        ("SEQ(G, !D)", _remove(("G", 1)), "EC463", "no part without '!' would be left"),
        ("G", _remove(("G", 1)), "EC463", "no part without '!' would be left"),
        ("SEQ(G g, A a) RETURN g, a.x", _remove(("A", 2)), "EC464", "RETURN uses 'a', which would be removed"),
        ("SEQ(G g, A a) GROUPBY a AGG COUNT(*)", _remove(("A", 2)), "EC464", "GROUPBY uses 'a'"),
        ("SEQ(G g, A a) GROUPBY a AT LEVEL 1 AGG COUNT(*)", _remove(("A", 2)), "EC464", "GROUPBY uses 'a'"),
        ("SEQ(G g, A a) AGG MAX(a.x)", _remove(("A", 2)), "EC464", "AGG uses 'a'"),
        ("SEQ(G g, A a) AGG COUNT(*) HAVING MAX(a.x) > 1", _remove(("A", 2)), "EC464", "HAVING uses 'a'"),
        (
            "SEQ(G g, A a, !(D d, d.k > a.k), T)",
            _remove(("A", 2)),
            "EC464",
            "condition on 'a'.*\nhint: remove the negated",
        ),
        ("SEQ(G g, A a, !D d, T) WHERE d.k = a.n", _remove(("A", 2)), "EC464", "condition on 'a'"),
        ("SEQ(G, SEQ(A a, !D d, d.k = G.k))", _remove(("G", 1)), "EC464", "condition on 'G'"),
        ("SEQ(G g, !SEQ(D d, T t, d.k = g.k), A)", _remove(("G", 1)), "EC464", "condition on 'g'"),
    ],
)
def test_moves_that_there_are_not(query: str, move: Move, code: str, words: str) -> None:
    with pytest.raises(EventCubeError, match=words) as caught:
        move(_query(query))
    assert caught.value.code == code


def test_a_hierarchy_without_the_type_of_the_query() -> None:
    with pytest.raises(EventCubeError, match="no type is below G"):
        concept_drill_down(_query("SEQ(G, T)"), [("G", "T", 1)], Concepts({"T": ["T1"]}))
