"""Which variables a qual may use, where its value comes from, and what class of predicate it is."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eventcube.concepts.concepts import Concepts
from eventcube.errors import BindError
from eventcube.language.parse import parse
from eventcube.language.printer import print_qual
from eventcube.language.syntax import Component, Query, Seq
from eventcube.plan.bind import bind
from eventcube.plan.logical import LogicalQuery, regions
from eventcube.schema import EventSchema

COLUMNS = pa.schema(
    [("ts", pa.int64()), ("type", pa.string()), ("k", pa.int64()), ("x", pa.int64()), ("y", pa.float64())]
)


def bound(text: str, **settings: object) -> LogicalQuery:
    schema = EventSchema(COLUMNS, "ts", "type", **settings)  # type: ignore[arg-type]
    return bind(parse(f"PATTERN {text}"), schema)


def classes(logical: LogicalQuery) -> dict[str, str]:
    return {print_qual(p.qual): p.kind.value for r in regions(logical.region) for p in r.predicates}


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("SEQ(A a, B b, a.x = b.x)", id="variables of the operator itself"),
        pytest.param("SEQ(A a, SEQ(B b, C c), D d, b.x = 1)", id="variables of a nested part"),
        pytest.param("SEQ(A a, SEQ(B b, C c, a.x = d.x), D d)", id="positive variables of the enclosing operator"),
        pytest.param("SEQ(A a, !(B b, b.x = a.x), C c)", id="a negated part sees what is around it"),
        pytest.param("SEQ(A a, !SEQ(B b, !(C c, c.x = a.x, c.x = b.x), D d), E e)", id="two levels of negation"),
        pytest.param("SEQ(OR(A a, B b), C c, a.x = c.x, b.x = c.x)", id="variables of alternatives"),
        pytest.param("SEQ(A, B) WHERE A.x = B.x", id="a type names its component"),
    ],
)
def test_visible(query: str) -> None:
    bound(query)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        pytest.param("SEQ(A a, SEQ(B b, !C c), c.x = 1)", "EC205", id="a negated variable of a nested part"),
        pytest.param("SEQ(A a, !B b, !(C c, c.x = b.x))", "EC218", id="a negated variable in the next negated part"),
        pytest.param("SEQ(A a, B b) WHERE A.x = 1", "EC201", id="a type whose component has a variable"),
    ],
)
def test_not_visible(query: str, code: str) -> None:
    with pytest.raises(BindError) as caught:
        bound(query)
    assert [d.code for d in caught.value.diagnostics] == [code]


def test_a_variable_is_told_once_and_the_rest_is_checked_all_the_same() -> None:
    with pytest.raises(BindError) as caught:
        bound("SEQ(A a, B b) WHERE z.x = a.zz AND a.type > 1 RETURN z")
    assert [d.code for d in caught.value.diagnostics] == ["EC201", "EC203", "EC210", "EC201"]


def test_a_condition_beside_a_negated_part_is_one_of_its_own() -> None:
    beside = bound("SEQ(A a, !B b, C c) WHERE a.k = b.k = c.k AND b.x > 1")
    inside = bound("SEQ(A a, !(B b, a.k = b.k, b.k = c.k, b.x > 1), C c)")
    assert (beside.region, beside.key, beside.columns) == (inside.region, inside.key, inside.columns)


def test_two_components_of_one_name_in_a_tree_made_by_hand() -> None:
    query = Query(Seq((Component("A", "a"), Component("B", "a"))))
    with pytest.raises(BindError, match="two components are named 'a'"):
        bind(query, EventSchema(COLUMNS, "ts", "type"))


def test_predicates_are_classed() -> None:
    logical = bound(
        "SEQ(A a, !(N n, n.x = a.x, n.y > 1), B b, OR(C c, D d, a.x = 2), a.x + b.x = 3)"
        " WHERE a.x > 1 AND a.k = b.k = c.k, a.x = b.y, a.x > b.x, b.x + 1 = a.x * 2, NOT (a.x = b.x), a.x + b.x = b.k"
    )
    assert classes(logical) == {
        "a.x = 2": "local",
        "n.x = a.x": "equality",
        "n.y > 1": "local",
        "a.x + b.x = 3": "other",
        "a.x > 1": "local",
        "a.k = b.k": "equality",
        "b.k = c.k": "equality",
        "a.x = b.y": "equality",
        "a.x > b.x": "other",
        "b.x + 1 = a.x * 2": "equality",
        "NOT a.x = b.x": "other",
        "a.x + b.x = b.k": "other",
    }


def test_a_qual_on_an_outer_variable_alone_is_not_a_filter_of_its_own_part() -> None:
    assert classes(bound("SEQ(A a, !(B b, a.x = 1), C c)")) == {"a.x = 1": "other"}


def test_a_qual_in_an_alternative_that_speaks_of_what_is_around_holds_only_there() -> None:
    logical = bound("SEQ(A a, OR(SEQ(B b, a.x = 1), C c))")
    (predicate,) = logical.region.predicates
    assert predicate.guard is not None
    assert logical.alternatives[predicate.guard] == {logical.slot("b").index}


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        pytest.param("SEQ(A a, B b) RETURN a.x", ("x",), id="what is returned"),
        pytest.param("SEQ(A a, B b, a.y > b.y) RETURN a.x", ("x", "y"), id="what quals look at"),
        pytest.param("SEQ(A a, !(N n, n.k = a.k), B b) RETURN a.x", ("k", "x"), id="what negated parts look at"),
        pytest.param("SEQ(A a, B b)", ("ts", "type", "k", "x", "y"), id="everything where events are returned"),
        pytest.param("SEQ(A a, B b) AGG COUNT(*)", (), id="nothing to count"),
        pytest.param("SEQ(A a, B b) GROUPBY a AGG MAX(b.y)", ("type", "y"), id="the type to group by it"),
    ],
)
def test_only_the_columns_a_query_needs_are_read(query: str, columns: tuple[str, ...]) -> None:
    assert bound(query).columns == columns


def test_columns_that_split_the_input_are_read() -> None:
    assert bound("SEQ(A a, B b) RETURN a.x", partition_by=("k",)).columns == ("k", "x")


def test_a_component_takes_its_type_and_all_below_it() -> None:
    concepts = Concepts({"P": ["A", "B"], "R": ["P", "C"]})
    schema = EventSchema(COLUMNS, "ts", "type")
    logical = bind(parse("PATTERN SEQ(R r, P p, A a)"), schema, concepts)
    assert [s.types for s in logical.slots] == [{"R", "P", "A", "B", "C"}, {"P", "A", "B"}, {"A"}]


def test_without_a_type_column_every_event_can_be_every_component() -> None:
    logical = bind(parse("PATTERN SEQ(A, B)"), EventSchema(COLUMNS, "ts"))
    assert [s.types for s in logical.slots] == [None, None]
