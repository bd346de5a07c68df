"""Conditions over two alternatives of an OR are applied to no match: that is told, and they are in no step."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eventcube.concepts.concepts import Concepts
from eventcube.errors import Diagnostic
from eventcube.explain import explain
from eventcube.language.parse import parse
from eventcube.options import options
from eventcube.plan.advice import advise
from eventcube.plan.bind import bind
from eventcube.plan.logical import LogicalQuery, regions

COLUMNS = pa.schema({"ts": pa.timestamp("us"), "kind": pa.string(), "u": pa.int64(), "s": pa.string()})
EITHER = "SEQ(A a, OR(B b, C c))"


def bound(pattern: str, condition: str, concepts: Concepts | None = None) -> LogicalQuery:
    where = f" WHERE {condition}" if condition else ""
    return bind(parse(f"PATTERN {pattern}{where} WITHIN 1 hour"), options(type="kind").schema(COLUMNS), concepts)


def never(pattern: str, condition: str = "") -> list[Diagnostic]:
    return [d for d in advise(bound(pattern, condition)) if d.code == "EC514"]


@pytest.mark.parametrize(
    ("condition", "shown", "hint"),
    [
        ("a.u = b.u OR a.u = c.u", "a.u = b.u OR a.u = c.u", "for each alternative: a.u = b.u AND a.u = c.u"),
        ("a.u = COALESCE(b.u, c.u)", "a.u = COALESCE(b.u, c.u)", "for each alternative: a.u = b.u AND a.u = c.u"),
        ("b.ts < c.ts", "b.ts < c.ts", "AND(…) binds both of them, OR(…) only one"),
        ("a.u = b.u = c.u", "b.u = c.u", "write a.u = c.u"),
        ("NOT (b.u = 1 AND c.u = 1)", "NOT (b.u = 1 AND c.u = 1)", "AND(…) binds both of them, OR(…) only one"),
    ],
)
def test_a_condition_over_two_alternatives(condition: str, shown: str, hint: str) -> None:
    (found,) = never(EITHER, condition)
    assert found.message == f"`{shown}` never applies: no match has both b and c"
    assert found.hint is not None
    assert found.hint.endswith(hint)
    text = f"PATTERN {EITHER} WHERE {condition} WITHIN 1 hour"
    assert found.span is not None
    assert text[found.span.start : found.span.end] == shown


@pytest.mark.parametrize(
    ("pattern", "condition"),
    [
        (EITHER, "a.u = b.u AND a.u = c.u"),
        (EITHER, "a.u = b.u"),
        (EITHER, "COALESCE(b.u, 0) = 1"),
        ("OR(SEQ(A a, B b), C c)", "a.u = b.u"),
        ("AND(OR(A a, B b), OR(C c, D d))", "a.u = c.u AND b.u = d.u"),
        ("SEQ(A a, !(OR(B b, C c), a.u = 1), D d)", ""),
    ],
)
def test_what_is_applied_is_not_told(pattern: str, condition: str) -> None:
    assert never(pattern, condition) == []


def test_alternatives_of_two_ors() -> None:
    assert never("AND(OR(A a, B b), OR(C c, D d))", "a.u = c.u OR a.u = d.u")
    assert never("AND(OR(A a, B b), OR(C c, D d))", "a.u = c.u OR c.s = 'x'") == []


def test_alternatives_inside_alternatives() -> None:
    (found,) = never("OR(SEQ(A a, OR(B b, C c)), D d)", "c.u = d.u")
    assert found.message.endswith("no match has both c and d")
    assert never("OR(SEQ(A a, OR(B b, C c)), D d)", "a.u = c.u") == []


def test_a_condition_in_one_alternative_that_speaks_of_another() -> None:
    (found,) = never("OR(SEQ(A a, b.u = 1), B b)")
    assert found.message.endswith("no match of its alternative has b")


def test_a_condition_of_a_negated_part_in_one_alternative_that_speaks_of_another() -> None:
    (found,) = never("OR(SEQ(A a, !(D d, d.u = b.u), C c), B b)")
    assert found.message == "`d.u = b.u` never applies: no match of its alternative has b"
    assert never("SEQ(OR(A a, B b), !(D d, d.u = b.u, d.u = a.u), C c)") == []


def test_alternatives_of_a_negated_part() -> None:
    (found,) = never("SEQ(A a, !(OR(B b, C c), a.u = b.u OR a.u = c.u), D d)")
    assert found.message.endswith("no match has both b and c")


def test_nothing_else_is_said_of_it() -> None:
    assert [d.code for d in advise(bound(EITHER, "b.ts > c.ts + 2 hours"))] == ["EC514"]


def test_no_step_and_no_key_has_it() -> None:
    query = bound(EITHER, "a.u = b.u AND b.u = c.u")
    (region,) = regions(query.region)
    assert [len(region.predicates), len(region.never_applied), query.key] == [1, 1, ()]


def test_explain_says_so() -> None:
    shown = explain(f"PATTERN {EITHER} WHERE a.u = b.u OR a.u = c.u WITHIN 1 hour", COLUMNS, type="kind")
    assert "  never     a.u = b.u OR a.u = c.u: not applied, as no match has both b and c\n" in shown
    assert shown.count("OR a.u = c.u") == 2, "in the query, and among the predicates, but in no step"
