"""Which queries refine which; that they do for every stream is checked in tests/differential/test_refinement.py."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from tests.unit.cube.transit import QUERIES, SCHEMA, bound

from eventcube.cube.refinement import Change, can_feed, refinements
from eventcube.cube.shape import MOST_SLOTS


def _changes(finer: str, coarser: str) -> set[str]:
    return {refinement.change.value for refinement in refinements(bound(finer), bound(coarser))}


def test_the_relations_of_the_paper() -> None:
    found = {
        (coarser, finer): {r.change.value for r in refinements(bound(QUERIES[finer]), bound(QUERIES[coarser]))}
        for finer, coarser in permutations(QUERIES, 2)
    }
    assert {pair: kinds for pair, kinds in found.items() if kinds} == {
        ("q1", "q2"): {"concept"},
        ("q3", "q6"): {"pattern"},
        ("q3", "q7"): {"pattern"},
        ("q4", "q7"): {"concept"},
        ("q2", "q6"): {"pattern"},
        # What follows from these, and what the paper's figure does not draw.
        ("q3", "q4"): {"pattern"},
        ("q2", "q5"): {"both"},
        **{("q1", finer): {"both"} for finer in ("q3", "q4", "q5", "q6", "q7")},
    }


@pytest.mark.parametrize(
    ("finer", "coarser", "change"),
    [
        # Patterns.
        ("SEQ(G, !D, T)", "SEQ(G, T)", "pattern"),
        ("SEQ(G, T)", "AND(T, G)", "pattern"),
        ("SEQ(G, A, T)", "G", "pattern"),
        ("AND(G, A, T)", "AND(T, G)", "pattern"),
        ("SEQ(G, AND(A, D), T)", "SEQ(G, D, T)", "pattern"),
        ("SEQ(G, SEQ(A, D), T)", "SEQ(G, A, T)", "pattern"),
        ("SEQ(G, A)", "SEQ(G, OR(A, D))", "pattern"),
        ("SEQ(G, OR(A, D))", "SEQ(G, OR(T, A, D))", "pattern"),
        ("SEQ(G, OR(D, A))", "G", "pattern"),
        # Types.
        ("SEQ(D, T)", "SEQ(TX, OK)", "concept"),
        ("SEQ(D, T)", "SEQ(ANY, T)", "concept"),
        ("SEQ(G, !TX, T)", "SEQ(G, !D, T)", "concept"),
        ("SEQ(G, !ANY, T)", "SEQ(G, !D, T)", "concept"),
        ("SEQ(DHospital, A, T)", "SEQ(D, T)", "both"),
        ("SEQ(G, !TX, T)", "SEQ(G, !D, !A, T)", "both"),
        ("SEQ(G, OR(DHospital, A))", "SEQ(G, OR(D, A))", "concept"),
        # The same.
        ("SEQ(G a, T b)", "SEQ(G b, T a)", "equal"),
        ("SEQ(G, SEQ(A, T))", "SEQ(SEQ(G, A), T)", "equal"),
        ("AND(G, AND(A, T))", "AND(T, A, G)", "equal"),
        ("SEQ(G, !A, !D, T)", "SEQ(G, !D, !A, T)", "equal"),
        ("OR(G, A)", "OR(A, G)", "equal"),
        ("SEQ(G g, T t, g.x > t.x)", "SEQ(G g, T t) WHERE t.x < g.x", "equal"),
        ("SEQ(G g, A a, T t) WHERE g.k = a.k = t.k", "SEQ(G g, A a, T t) WHERE t.k = g.k AND t.k = a.k", "equal"),
        ("SEQ(G g, !(D d, d.k = g.k), T t, g.k = t.k)", "SEQ(G g, !(D d, d.k = t.k), T t, g.k = t.k)", "equal"),
        ("SEQ(G g) WHERE g.x = 1 OR g.k = 2", "SEQ(G g) WHERE g.k = 2 OR g.x = 1", "equal"),
        ("SEQ(G g) WHERE g.x BETWEEN 1 AND 3", "SEQ(G g) WHERE g.x <= 3 AND g.x >= 1", "equal"),
        ("SEQ(G g) WHERE NOT g.x < 3", "SEQ(G g) WHERE g.x >= 3", "equal"),
        ("SEQ(G g) WHERE g.k NOT IN (1, 2)", "SEQ(G g) WHERE g.k != 2 AND g.k != 1", "equal"),
        # Conditions and windows.
        ("SEQ(G g, T t) WHERE g.x > 1", "SEQ(G g, T t)", "condition"),
        ("SEQ(G g, !D d, T t)", "SEQ(G g, !(D d, d.x > 1), T t)", "condition"),
        ("SEQ(G, T) WITHIN 1 s", "SEQ(G, T) WITHIN 2 s", "condition"),
        ("SEQ(G, T) WITHIN 4 events", "SEQ(G, T)", "condition"),
        ("SEQ(G, !D, T) WITHIN 1 s", "SEQ(G, !D, T) WITHIN 2 s", "condition"),
        ("SEQ(G g, A a, T t) WHERE g.k = a.k = t.k", "SEQ(G g, T t) WHERE t.k = g.k", "pattern"),
        ("SEQ(G g, A a) WHERE g.k = 3 AND g.k = a.k", "SEQ(G g, A a) WHERE a.k = 3", "condition"),
        ("SEQ(G g, A a) WHERE g.s = 'x' AND a.s = 'x'", "SEQ(G g, A a) WHERE a.s = g.s", "condition"),
        # Negated parts: the finer query's is the coarser one.
        ("SEQ(G, !D, T)", "SEQ(G, !SEQ(D, A), T)", "pattern"),
        ("SEQ(G, !AND(D, A), T)", "SEQ(G, !SEQ(A, D), T)", "pattern"),
        ("SEQ(G, !OR(D, A), T)", "SEQ(G, !D, T)", "pattern"),
        ("SEQ(G, !SEQ(D, !DHospital h, A), T)", "SEQ(G, !SEQ(D, !TX x, A), T)", "concept"),
        ("AND(G, T, !D)", "AND(G, T, !DHospital)", "concept"),
        ("AND(G, T, !D, !A)", "AND(G, T, !D)", "pattern"),
        ("AND(SEQ(G, A, T), !D)", "AND(SEQ(G, T), !D)", "pattern"),
        # Negated parts at the ends.
        ("SEQ(!D, G, T) WITHIN 1 s", "SEQ(!D, G, T) WITHIN 1 s", "equal"),
        ("SEQ(!D, G, A, T) WITHIN 1 s", "SEQ(!D, G, T) WITHIN 1 s", "pattern"),
        ("SEQ(G, A, T, !D) WITHIN 9 events", "SEQ(G, T, !D) WITHIN 9 events", "pattern"),
        ("SEQ(!D, G, A, T)", "SEQ(!D, G, A)", "pattern"),
        ("SEQ(!D, G, T, !A) WITHIN 1 s", "SEQ(G, T) WITHIN 2 s", "pattern"),
    ],
)
def test_related(finer: str, coarser: str, change: str) -> None:
    assert _changes(finer, coarser) == {change}
    assert bool(_changes(coarser, finer)) == (change == "equal")


@pytest.mark.parametrize(
    ("finer", "coarser"),
    [
        pytest.param("SEQ(G, T)", "SEQ(T, G)", id="another order"),
        pytest.param("AND(G, T)", "SEQ(G, T)", id="no order"),
        pytest.param("SEQ(G, A)", "SEQ(G, G g)", id="an event stands for one component only"),
        pytest.param("SEQ(G, ANY)", "SEQ(G, T)", id="any type is no type"),
        pytest.param("SEQ(G, !D, A, T)", "SEQ(G, !D, T)", id="the interval of a negated part shrinks"),
        pytest.param("SEQ(G, !D, A, !D e, T)", "SEQ(G, !D, T)", id="a negated event can be at the time of a"),
        pytest.param("SEQ(G, !D, T)", "SEQ(G, !TX, T)", id="a negated type goes up"),
        pytest.param("SEQ(G, !SEQ(D, A), T)", "SEQ(G, !D, T)", id="a longer negated part has fewer matches"),
        pytest.param("SEQ(G, !SEQ(D, A), T)", "SEQ(G, !AND(A, D), T)", id="so has an ordered one"),
        pytest.param("SEQ(G, !SEQ(D, !TX x, A), T)", "SEQ(G, !SEQ(D, !A x, A), T)", id="two negations flip twice"),
        pytest.param(
            "SEQ(!D, G, T) WITHIN 1 s", "SEQ(!D, G, T) WITHIN 2 s", id="a leading negation and a smaller window"
        ),
        pytest.param("SEQ(!D, G, T) WITHIN 1 s", "SEQ(!D, G, T)", id="a leading negation and no window"),
        pytest.param("SEQ(!D, G, A, T) WITHIN 1 s", "SEQ(!D, G, A) WITHIN 1 s", id="appended after a leading negation"),
        pytest.param("SEQ(G, A, T, !D) WITHIN 1 s", "SEQ(A, T, !D) WITHIN 1 s", id="prepended before a trailing one"),
        pytest.param("SEQ(G, !D, A, T)", "SEQ(!D, A, T)", id="a leading negation that is not leading any more"),
        pytest.param("AND(G, A, T, !D)", "AND(G, A, !D)", id="an AND with a negated part gains no parts"),
        pytest.param("AND(SEQ(G, D d, T), !D)", "AND(SEQ(G, T), !D)", id="nor one that could be the negated event"),
        pytest.param("SEQ(G, OR(A, D))", "SEQ(G, A)", id="more alternatives"),
        pytest.param("OR(G, A)", "TX", id="one slot for two alternatives"),
        pytest.param("SEQ(G g, OR(SEQ(A a, g.x > 1), D d))", "SEQ(G g, OR(A a, D d)) WHERE g.x > 1", id="a guard"),
        pytest.param(
            "SEQ(G g, OR(A a, D d), T t) WHERE g.k = a.k = t.k",
            "SEQ(G g, OR(A a, D d), T t) WHERE g.k = t.k",
            id="an equality by way of an alternative that may not be taken",
        ),
        pytest.param("SEQ(G g, T t)", "SEQ(G g, T t) WHERE g.x > 1", id="a condition less"),
        pytest.param("SEQ(G g, T t) WHERE g.x = 1", "SEQ(G g, T t) WHERE t.x = 1", id="a condition on another"),
        pytest.param("SEQ(G g, !(D d, d.x > 1), T t)", "SEQ(G g, !D d, T t)", id="a condition in a negated part"),
        pytest.param("SEQ(G g) WHERE g.k = 1", "SEQ(G g) WHERE g.n = g.n", id="an attribute may be null"),
        pytest.param(
            "SEQ(G g, A a, T t) WHERE g.k = a.x = t.k", "SEQ(G g, A a, T t) WHERE g.k = t.k", id="floats round"
        ),
        pytest.param("SEQ(G g) WHERE g.x = 1 OR g.k = 2", "SEQ(G g) WHERE g.x = 1", id="one of two conditions"),
        pytest.param("SEQ(G, T) WITHIN 2 s", "SEQ(G, T) WITHIN 1 s", id="a larger window"),
        pytest.param("SEQ(G, T) WITHIN 2 events", "SEQ(G, T) WITHIN 1 hour", id="another measure"),
        pytest.param("SEQ(G, T)", "SEQ(G, T) WITHIN 1 hour", id="no window"),
        pytest.param("SEQ(G, T) PARTITION BY k", "SEQ(G, T)", id="a key"),
        pytest.param("SEQ(G, T) PARTITION BY k", "SEQ(G, T) PARTITION BY n", id="another key"),
    ],
)
def test_not_related(finer: str, coarser: str) -> None:
    assert refinements(bound(finer), bound(coarser)) == ()


def test_repeated_types_have_several_embeddings() -> None:
    found = refinements(bound("SEQ(D a, T b, D c, T d)"), bound("SEQ(D, T)"))
    assert [refinement.slots for refinement in found] == [(0, 1), (0, 3), (2, 3)]


def test_conditions_choose_among_embeddings() -> None:
    finer, coarser = bound("SEQ(D a, D b, T t) WHERE b.k = t.k"), bound("SEQ(D d, T t) WHERE t.k = d.k")
    assert [refinement.slots for refinement in refinements(finer, coarser)] == [(1, 2)]


def test_at_most_eight_embeddings() -> None:
    parts = ", ".join(f"D d{i}" for i in range(9))
    assert len(refinements(bound(f"SEQ({parts})"), bound("SEQ(D a, D b)"))) == 8


def test_negated_slots_have_places_too() -> None:
    (found,) = refinements(bound("SEQ(G, !TX x, T)"), bound("SEQ(G, !SEQ(D d, A a), !G g, T)"))
    # Whatever d is, x matches it; nothing is said of a, which no match of the finer query needs.
    assert found.slots == (0, 1, None, 1, 2)


def test_alternatives_that_are_gone_have_no_place() -> None:
    (found,) = refinements(bound("SEQ(G, A)"), bound("SEQ(G, OR(D, A))"))
    assert found.slots == (0, None, 1)


@pytest.mark.parametrize(
    ("finer", "coarser", "kept"),
    [
        ("SEQ(G, !D, A, T)", "SEQ(G, !D, A)", {1}),
        ("SEQ(G, !TX, A, T)", "SEQ(G, !D, A)", set()),
        ("SEQ(G, !A x, A, !D, T)", "SEQ(G, A, !D, T)", {2}),
        ("SEQ(G g, !(D d, d.k = g.k), A a) WHERE g.k = a.k", "SEQ(G g, !(D d, d.k = g.k), A a)", {1}),
        ("SEQ(G, !D, A)", "SEQ(G, !(D d, d.x > 1), A)", set()),
    ],
)
def test_negated_parts_that_need_no_test(finer: str, coarser: str, kept: set[int]) -> None:
    (found,) = refinements(bound(finer), bound(coarser))
    assert found.kept == kept


def test_limit_takes_no_part_but_feeds_no_one() -> None:
    limited, whole = bound("SEQ(D, T) LIMIT 3"), bound("SEQ(D, T)")
    assert refinements(limited, whole)[0].change is refinements(whole, limited)[0].change is Change.EQUAL
    assert not can_feed(limited)
    assert can_feed(whole)


def test_results_take_no_part() -> None:
    assert _changes("SEQ(D d, T t) RETURN d.x", "SEQ(D a, T b) AGG COUNT(*)") == {"equal"}


def test_without_types_positions_and_conditions_decide() -> None:
    untyped = replace(SCHEMA, type=None)
    finer = bound("SEQ(A, B, C) WHERE A.k = 1 AND C.k = 2", untyped)
    (found,) = refinements(finer, bound("SEQ(X, Y) WHERE Y.k = 2 AND X.k = 1", untyped))
    assert found.slots == (0, 2)


def test_queries_over_other_events_are_not_related() -> None:
    other = replace(SCHEMA, order_by=("n",))
    assert refinements(bound("SEQ(D, T)"), bound("SEQ(D, T)", other)) == ()


def test_very_long_patterns_are_related_to_none() -> None:
    parts = ", ".join(f"D d{i}" for i in range(MOST_SLOTS + 1))
    assert refinements(bound(f"SEQ({parts})"), bound("SEQ(D a, D b)")) == ()


def test_a_hopeless_search_ends() -> None:
    parts = ", ".join(f"D d{i}" for i in range(30))
    conditions = " AND ".join(f"d{i}.k != d{(i * 7 + 3) % 30}.k" for i in range(30))
    assert refinements(bound(f"AND({parts})"), bound(f"AND({parts}) WHERE {conditions}")) == ()
