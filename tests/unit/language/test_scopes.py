"""Which part a condition belongs to, and which variables it may use; no columns are known here."""

from __future__ import annotations

import pytest

from eventcube.language.parse import parse
from eventcube.language.scopes import resolve
from eventcube.language.syntax import Component, Query, Seq


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        pytest.param("SEQ(A a, !B b, C c, b.x = a.x)", "SEQ(A a, !(B b, b.x = a.x), C c)", id="in the list"),
        pytest.param("SEQ(A a, !B b, C c) WHERE b.x = a.x", "SEQ(A a, !(B b, b.x = a.x), C c)", id="in WHERE"),
        pytest.param("AND(A a, !B b) WHERE b.x = a.x", "AND(A a, !(B b, b.x = a.x))", id="in an AND"),
        pytest.param("SEQ(A a, !B b, b.x = 1)", "SEQ(A a, !(B b, b.x = 1))", id="on the negated event alone"),
        pytest.param(
            "SEQ(A a, !B b, C c) WHERE a.id = b.id AND a.id = c.id",
            "SEQ(A a, !(B b, a.id = b.id), C c) WHERE a.id = c.id",
            id="each conjunct by itself",
        ),
        pytest.param(
            "SEQ(A a, !B b, C c) WHERE a.x = b.x = c.x",
            "SEQ(A a, !(B b, a.x = b.x, b.x = c.x), C c)",
            id="both links of a chain",
        ),
        pytest.param(
            "SEQ(A a, C c, !B b) WHERE a.x = c.x = b.x",
            "SEQ(A a, C c, !(B b, c.x = b.x)) WHERE a.x = c.x",
            id="one link of a chain",
        ),
        pytest.param(
            "SEQ(A a, !B b, C c) WHERE (a.x = 1 AND (b.x = 2 AND c.x = 3))",
            "SEQ(A a, !(B b, b.x = 2), C c) WHERE a.x = 1 AND c.x = 3",
            id="AND in parentheses",
        ),
        pytest.param(
            "SEQ(A a, !B b, C c) WHERE NOT (b.x = a.x AND c.x = 1) OR b.y",
            "SEQ(A a, !(B b, NOT (b.x = a.x AND c.x = 1) OR b.y), C c)",
            id="NOT and OR stay one condition",
        ),
        pytest.param(
            "SEQ(A a, !SEQ(B x, D y), C c, y.v > a.v)",
            "SEQ(A a, !(SEQ(B x, D y), y.v > a.v), C c)",
            id="a composite negated part",
        ),
        pytest.param(
            "SEQ(A a, !(B b, b.y = 1), !(D d, d.y = 1), b.x = a.x, d.x = a.x)",
            "SEQ(A a, !(B b, b.y = 1, b.x = a.x), !(D d, d.y = 1, d.x = a.x))",
            id="several negated parts, each its own",
        ),
        pytest.param(
            "SEQ(A a, !SEQ(B b, !D d, E e), C c) WHERE d.x = a.x AND d.y = b.y AND b.z = c.z",
            "SEQ(A a, !(SEQ(B b, !(D d, d.x = a.x, d.y = b.y), E e), b.z = c.z), C c)",
            id="a negated part in a negated part",
        ),
        pytest.param(
            "SEQ(A a, !(SEQ(B b, !D d), d.x = b.x), C c)",
            "SEQ(A a, !SEQ(B b, !(D d, d.x = b.x)), C c)",
            id="written with the negated part around it",
        ),
        pytest.param(
            "SEQ(A a, AND(B b, !D d, d.x = a.x), C c)",
            "SEQ(A a, AND(B b, !(D d, d.x = a.x)), C c)",
            id="in a nested operator",
        ),
        pytest.param(
            "OR(SEQ(A a, !B b, b.x = a.x), C c)", "OR(SEQ(A a, !(B b, b.x = a.x)), C c)", id="in an alternative"
        ),
        pytest.param(
            "SEQ(OR(A a, D d), !B b, b.x = a.x)", "SEQ(OR(A a, D d), !(B b, b.x = a.x))", id="beside alternatives"
        ),
        pytest.param(
            "SEQ(A a, !OR(B b, D d), b.x = a.x, d.x = b.x)",
            "SEQ(A a, !(OR(B b, D d), b.x = a.x, d.x = b.x))",
            id="on negated alternatives",
        ),
        pytest.param("SEQ(A a, !B, C c) WHERE B.x = a.x", "SEQ(A a, !(B, B.x = a.x), C c)", id="without a variable"),
        pytest.param(
            "SEQ(A a, B b, a.x = b.x) WHERE a.y = 1", "SEQ(A a, B b, a.x = b.x) WHERE a.y = 1", id="nothing negated"
        ),
        pytest.param(
            "SEQ(A a, !(B b, a.x = 1), C c)", "SEQ(A a, !(B b, a.x = 1), C c)", id="nothing is moved out of its part"
        ),
    ],
)
def test_a_condition_belongs_to_the_part_whose_variables_it_uses(written: str, meant: str) -> None:
    resolved, problems = resolve(parse(f"PATTERN {written}"))
    assert problems == []
    assert resolved == parse(f"PATTERN {meant}")
    assert resolve(resolved) == (resolved, [])


@pytest.mark.parametrize(
    ("query", "told"),
    [
        pytest.param("A a WHERE b.x = 1", [("EC201", "b.x")], id="unknown"),
        pytest.param("SEQ(A a, !B b, b.x = z.x)", [("EC201", "z.x")], id="unknown, beside a negated one"),
        pytest.param("SEQ(A a, AND(B b, !C c)) WHERE c.x = a.x", [("EC205", "c.x")], id="of a nested operator"),
        pytest.param("OR(SEQ(A a, !B b), C c) WHERE b.x = 1", [("EC205", "b.x")], id="of an alternative"),
        pytest.param("SEQ(A a, !B b, !(C c, b.x = 1))", [("EC205", "b.x")], id="in another negated part"),
        pytest.param("SEQ(A a, !SEQ(B b, AND(C c, !D d)), d.x = a.x)", [("EC205", "d.x")], id="deep in a negated part"),
        pytest.param("SEQ(A a, !B b, !C c, b.x = c.x)", [("EC218", "b.x = c.x")], id="of two negated parts"),
        pytest.param("SEQ(A a, !B b, !C c) WHERE b.x = a.x = c.x", [], id="of two negated parts, in two links"),
        pytest.param("SEQ(A a, !B b, !(C c, b.x = c.x))", [("EC218", "b.x = c.x")], id="of one in another"),
        pytest.param("SEQ(A a, !SEQ(B b, !C c, !D d), c.x = d.x)", [("EC218", "c.x = d.x")], id="of two inside one"),
        pytest.param(
            "SEQ(A a, !B b, AND(C c, !D d), b.x = d.x)", [("EC218", "b.x = d.x")], id="of a near and a deep one"
        ),
        pytest.param("SEQ(A a, !B b) RETURN a, b", [("EC205", "b")], id="RETURN of a negated event"),
        pytest.param("SEQ(A a, !B b) RETURN a.x + b.x", [("EC205", "b.x")], id="RETURN of its attribute"),
        pytest.param(
            "SEQ(A a, !B b) GROUPBY b, z AGG SUM(b.x), SUM(y.x)",
            [("EC205", "b"), ("EC201", "z"), ("EC205", "b.x"), ("EC201", "y.x")],
            id="GROUPBY and AGG",
        ),
    ],
)
def test_variables_that_cannot_be_used_are_told_without_columns(query: str, told: list[tuple[str, str]]) -> None:
    text = f"PATTERN {query}"
    problems = resolve(parse(text))[1]
    assert [(p.code, text[p.span.start : p.span.end]) for p in problems if p.span] == told


def test_two_components_of_one_name_in_a_tree_made_by_hand() -> None:
    problems = resolve(Query(Seq((Component("A", "a"), Component("B", "a")))))[1]
    assert [p.code for p in problems] == ["EC204"]
