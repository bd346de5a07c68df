"""Which columns the work is split by: those whose equality over all components follows from the query."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eventcube.language.parse import parse
from eventcube.plan.bind import bind
from eventcube.plan.rules.infer_key import infer_key
from eventcube.schema import EventSchema

COLUMNS = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("k", pa.int64()), ("x", pa.int64())])

TEXTS = COLUMNS.set(0, pa.field("ts", pa.string()))


def key(query: str) -> tuple[str, ...]:
    return infer_key(bind(parse(f"PATTERN {query}"), EventSchema(COLUMNS, "ts", "type"))).key


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("SEQ(A a, B b, a.k = b.k)", ("k",), id="an equality of both components"),
        pytest.param("SEQ(A a, B b, C c) WHERE a.k = b.k = c.k", ("k",), id="a chain"),
        pytest.param("SEQ(A a, B b, C c) WHERE a.k = b.k AND c.k = a.k", ("k",), id="a star"),
        pytest.param("SEQ(A a, B b, C c, D d) WHERE a.k = b.k, d.k = c.k, c.k = b.k", ("k",), id="in any order"),
        pytest.param("SEQ(A a, B b, a.k = b.k, a.x = b.x)", ("k", "x"), id="two columns"),
        pytest.param("SEQ(A a, SEQ(B b, C c, b.k = c.k), a.k = b.k)", ("k",), id="through a nested part"),
        pytest.param("AND(A a, B b, a.k = b.k)", ("k",), id="in any order of events"),
        pytest.param("SEQ(A a, !(N n, n.k = a.k), B b, a.k = b.k)", ("k",), id="a negated part that is tied too"),
        pytest.param("SEQ(A a, !(SEQ(N n, M m), n.k = m.k = a.k), B b, a.k = b.k)", ("k",), id="a negated composite"),
        pytest.param("SEQ(A a, !(N n, n.k = b.k), B b, a.k = b.k)", ("k",), id="a negated part tied to either side"),
        pytest.param("SEQ(A a, !(N n, a.k = n.k))", ("k",), id="one positive component and a negated one"),
        pytest.param("SEQ(A a, OR(B b, C c), a.k = b.k, a.k = c.k)", ("k",), id="all alternatives are tied"),
        pytest.param("A a", (), id="a lone component needs none"),
        pytest.param("SEQ(A a, B b)", (), id="no equality"),
        pytest.param("SEQ(A a, B b, C c, a.k = b.k)", (), id="one component is not tied"),
        pytest.param("SEQ(A a, B b, C c, D d, a.k = b.k, c.k = d.k)", (), id="two islands"),
        pytest.param("SEQ(A a, B b, C c, a.k = b.k, b.x = c.x)", (), id="different columns do not add up"),
        pytest.param("SEQ(A a, B b, a.k = b.x)", (), id="columns of different names"),
        pytest.param("SEQ(A a, B b, a.k + 0 = b.k)", (), id="a computed value is no column"),
        pytest.param("SEQ(A a, B b, a.k = b.k OR a.x = 1)", (), id="an equality that need not hold"),
        pytest.param("SEQ(A a, B b, NOT (a.k != b.k))", (), id="an equality in other words"),
        pytest.param("SEQ(A a, B b, a.k <= b.k, a.k >= b.k)", (), id="two inequalities"),
        pytest.param("SEQ(A a, !N n, B b, a.k = b.k)", (), id="a negated part that is not tied"),
        pytest.param("SEQ(A a, !(N n, n.x = a.x), B b, a.k = b.k)", (), id="a negated part tied by another column"),
        pytest.param("SEQ(A a, !(SEQ(N n, M m), n.k = a.k), B b, a.k = b.k)", (), id="half of a negated composite"),
        pytest.param("SEQ(A a, !(N n, n.k = a.k, a.k = b.k), B b)", (), id="outer equality written in a negation"),
        pytest.param("SEQ(A a, !(N n, n.k = a.k, n.k = b.k), B b)", (), id="a path through a negated part"),
        pytest.param("SEQ(A a, OR(B b, C c), a.k = b.k)", (), id="one alternative is not tied"),
        pytest.param("SEQ(A a, OR(B b, C c), D d, a.k = b.k = d.k, c.k = d.k)", (), id="a path through an alternative"),
        pytest.param("OR(A a, B b, a.k = b.k)", (), id="alternatives are never both taken"),
    ],
)
def test_key(query: str, expected: tuple[str, ...]) -> None:
    assert key(query) == expected


def test_a_time_that_is_text_is_no_key() -> None:
    query = bind(parse("PATTERN AND(A a, B b, a.ts = b.ts, a.k = b.k)"), EventSchema(TEXTS, "ts", "type"))
    assert infer_key(query).key == ("k",)


def test_what_the_key_ensures_is_not_tested_again() -> None:
    query = parse("PATTERN SEQ(A a, B b, a.k = b.k, a.x = b.k)")
    logical = infer_key(bind(query, EventSchema(COLUMNS, "ts", "type")))
    assert [p.is_tested for p in logical.region.predicates] == [False, True]
