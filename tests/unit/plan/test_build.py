"""What the physical plan promises: order of binding, look-ups by key, fences, and when matches are reported."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from eventcube.language.parse import parse
from eventcube.nodes import walk
from eventcube.options import options
from eventcube.plan.physical import PhysicalQuery
from eventcube.plan.planned import plan_query
from eventcube.plan.steps import Bind, Nested, Reject, Step
from eventcube.schema import EventSchema

COLUMNS = pa.schema(
    [("ts", pa.int64()), ("type", pa.string()), ("k", pa.int64()), ("x", pa.int64()), ("y", pa.float64())]
)


def plan(query: str) -> PhysicalQuery:
    return plan_query(parse(f"PATTERN {query}"), EventSchema(COLUMNS, "ts", "type"), options()).physical


def bound(physical: PhysicalQuery) -> list[str]:
    """The names of the components the program's own joins bind, in order."""
    binds = [step for step in physical.program if isinstance(step, Bind)]
    return [next(iter(physical.scan.components[b.slot].types or ())).lower() for b in binds]


@pytest.mark.parametrize(
    ("query", "forward", "order"),
    [
        pytest.param("SEQ(A a, B b, C c) WITHIN 9 us", False, ["c", "b", "a"], id="backward from the last event"),
        pytest.param("SEQ(A a, !N n, B b) WITHIN 9 us", False, ["b", "a"], id="inner negation"),
        pytest.param("SEQ(!N n, A a, B b) WITHIN 9 us", False, ["b", "a"], id="leading negation"),
        pytest.param("SEQ(A a, B b, !N n) WITHIN 9 us", True, ["a", "b"], id="trailing negation: from the first event"),
        pytest.param("SEQ(A a, SEQ(B b, !N n), C c) WITHIN 9 us", False, ["c", "a"], id="trailing, but not outermost"),
        pytest.param("SEQ(A a, SEQ(B b, !N n)) WITHIN 9 us", True, ["a"], id="trailing in the last nested part"),
        pytest.param("SEQ(A a, B b, !N n)", True, ["a", "b"], id="trailing without a window"),
    ],
)
def test_direction(query: str, forward: bool, order: list[str]) -> None:
    physical = plan(query)
    assert (physical.forward, bound(physical)) == (forward, order)


@pytest.mark.parametrize(
    ("query", "looks_back"),
    [
        ("SEQ(!N n, A a, B b) WITHIN 9 us", True),
        ("OR(SEQ(!N n, A a), B b) WITHIN 9 us", True),
        ("SEQ(A a, SEQ(!N n, B b)) WITHIN 9 us", False),
        ("AND(A a, B b, !N n) WITHIN 9 us", False),
    ],
)
def test_only_a_leading_negation_looks_back(query: str, looks_back: bool) -> None:
    assert plan(query).looks_back is looks_back


def test_an_equality_that_is_no_key_is_looked_up() -> None:
    (_, _, step) = plan("SEQ(A a, B b, C c, a.x = c.k, a.k = b.k, a.y = c.y) WITHIN 9 us").program
    assert isinstance(step, Bind)
    assert step.key is not None
    assert [c.op for c in step.compare] == ["=", "="], "the other equality, and that of floats, are compared"


def test_comparisons_are_turned_towards_the_new_event() -> None:
    (_, step) = plan("SEQ(A a, B b, a.x < b.x) WITHIN 9 us").program
    assert isinstance(step, Bind)
    assert [c.op for c in step.compare] == ["<"]
    (_, step) = plan("SEQ(A a, B b, b.x < a.x) WITHIN 9 us").program
    assert isinstance(step, Bind)
    assert [c.op for c in step.compare] == [">"]


def test_a_range_is_two_comparisons_if_the_new_event_stands_alone_in_both() -> None:
    (_, step) = plan("SEQ(A a, B b, a.x BETWEEN b.x AND b.y + 2) WITHIN 9 us").program
    assert isinstance(step, Bind)
    assert [c.op for c in step.compare] == [">=", "<="], "a is bound after b"
    (_, _, step) = plan("SEQ(A a, B b, C c, b.x BETWEEN a.x AND c.x) WITHIN 9 us").program
    assert isinstance(step, Bind)
    assert not step.compare
    assert [p.text for p in step.filters] == ["b.x BETWEEN a.x AND c.x"]


def test_a_plain_negation_next_to_the_event_just_bound_is_a_fence() -> None:
    (_, step) = plan("SEQ(A a, !N n, B b) WITHIN 9 us").program
    assert isinstance(step, Bind)
    assert [f.new_is_earlier for f in step.fences] == [True]
    (_, step) = plan("SEQ(A a, !N n, B b, !M m) WITHIN 9 us").program[:2]
    assert isinstance(step, Bind)
    assert [f.new_is_earlier for f in step.fences] == [False, True], "forward, and then up to the window's end"


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("SEQ(A a, !(N n, n.x = a.x), B b) WITHIN 9 us", id="correlated"),
        pytest.param("SEQ(A a, !SEQ(N n, M m), B b) WITHIN 9 us", id="composite"),
        pytest.param("AND(A a, B b, !N n) WITHIN 9 us RETURN a", id="in an AND"),
    ],
)
def test_every_other_negation_is_a_test(query: str) -> None:
    program = plan(query).program

    def rejects(steps: tuple[object, ...]) -> int:
        inner = [p for s in steps for p in getattr(s, "programs", ())]
        return sum(isinstance(s, Reject) for s in steps) + sum(rejects(p) for p in inner)

    assert rejects(program) >= 1


def test_nested_parts_come_after_the_primitive_ones() -> None:
    physical = plan("SEQ(A a, SEQ(B b, C c), D d, E e) WITHIN 9 us")
    assert bound(physical) == ["e", "d", "a"]
    assert isinstance(physical.program[-1], Nested)


def test_the_key_leaves_nothing_to_look_up() -> None:
    assert all(
        isinstance(s, Bind) and s.key is None and not s.compare
        for s in plan("SEQ(A a, B b, a.k = b.k) WITHIN 9 us").program
    )


def _alternating(depth: int) -> str:
    query = "A z"
    for level in range(depth):
        query = f"{('AND', 'SEQ')[level % 2]}(A a{level}, {query}, B b{level})"
    return query


def test_plans_of_nested_parts_do_not_double_with_each_level() -> None:
    sizes = [len(pickle.dumps(plan(f"{_alternating(depth)} WITHIN 9 us"))) for depth in (10, 20, 40)]
    assert sizes[1] < 6 * sizes[0]
    assert sizes[2] < 6 * sizes[1]


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(f"AND({', '.join(f'A a{i}' for i in range(100))})", id="AND of 100"),
        pytest.param(
            f"SEQ({', '.join(f'A a{i}' for i in range(500))}, {' = '.join(f'a{i}.x' for i in range(500))})",
            id="SEQ of 500 with a chain of equalities",
        ),
        pytest.param(f"SEQ(A a, {', '.join(f'!B b{i}' for i in range(500))}, C c)", id="500 negated parts"),
        pytest.param(f"SEQ(A a, !{_alternating(30)}, C c)", id="a deep negated part"),
    ],
)
def test_long_and_deep_queries_have_plans_that_can_be_shipped(query: str) -> None:
    physical = plan(f"{query} WITHIN 9 us")
    # Steps that stand in several places stay one: compared by themselves they would be looked at again and again.
    shipped = pickle.loads(pickle.dumps(physical))
    assert shipped.scan == physical.scan
    assert shipped.sink == physical.sink
    assert len(pickle.dumps(shipped)) <= len(pickle.dumps(physical))


def test_every_step_has_a_number_of_its_own() -> None:
    program = plan("SEQ(A a, AND(B b, !SEQ(C c, D d)), OR(E e, F f)) WITHIN 9 us").program
    steps = [node for step in program for node in walk(step) if isinstance(node, Step)]
    assert {step.id for step in steps} == set(range(1, max(step.id for step in steps) + 1))
