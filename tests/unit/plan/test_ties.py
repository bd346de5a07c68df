"""Events that only a negated event ties to each other are told."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from eventcube.language.parse import parse
from eventcube.options import options
from eventcube.plan.advice import advise
from eventcube.plan.bind import bind

COLUMNS = pa.schema({"ts": pa.timestamp("us"), "kind": pa.string(), "u": pa.int64(), "v": pa.int64()})


def loose(pattern: str, condition: str, **settings: Any) -> list[str]:
    query = parse(f"PATTERN {pattern} WHERE {condition} WITHIN 1 hour")
    found = advise(bind(query, options(type="kind", **settings).schema(COLUMNS)))
    return [f"{d.message}; {d.hint}" for d in found if d.code == "EC515"]


def test_a_chain_through_a_negated_event() -> None:
    (found,) = loose("SEQ(A a, !B x, C c)", "a.u = x.u = c.u")
    assert found == (
        "`a.u = x.u` and `x.u = c.u` are conditions of the negated x, so nothing compares a.u with c.u; "
        "add a.u = c.u; in a chain the negated variable comes last: a.u = c.u = x.u"
    )


@pytest.mark.parametrize(
    ("pattern", "condition"),
    [
        ("SEQ(A a, !B x, C c)", "x.u = a.u AND x.u = c.v"),
        ("SEQ(A a, !(B x, x.u = a.u, x.u = c.u), C c)", "a.v = 1"),
        ("SEQ(A a, !SEQ(B x, D y), C c)", "x.u = a.u AND y.u = c.u AND x.u = y.u"),
        ("SEQ(A a, B b, !B x, C c)", "a.u = b.u AND b.u = x.u = c.u"),
        ("AND(A a, C c, !B x)", "a.u = x.u = c.u"),
        ("SEQ(A a, !B x, C c)", "a.u = x.u = c.u AND a.v = c.v"),
        ("SEQ(A a, !SEQ(B x, !D y, C z), C c)", "x.u = y.u AND y.u = z.u"),
    ],
)
def test_other_ways_to_write_it(pattern: str, condition: str) -> None:
    assert len(loose(pattern, condition)) == 1


@pytest.mark.parametrize(
    ("pattern", "condition"),
    [
        ("SEQ(A a, !B x, C c)", "a.u = c.u = x.u"),
        ("SEQ(A a, !B x, C c)", "a.u = x.u = c.u AND a.u = c.u"),
        ("SEQ(A a, !B x, C c)", "a.u = x.u = c.u AND a.u = 5 AND c.u = 5"),
        ("SEQ(A a, !B x, C c)", "a.u = x.u = c.u AND ABS(a.u) = ABS(c.u)"),
        ("SEQ(A a, B b, !B x, C c)", "a.u = b.u = c.u AND a.u = x.u = c.u"),
        ("SEQ(A a, !B x, C c)", "a.u = x.u AND x.v = c.u"),
        ("SEQ(A a, !B x, C c)", "a.u = x.u AND x.u < c.u"),
        ("SEQ(A a, !B x, !B y, C c)", "a.u = x.u AND y.u = c.u"),
        ("SEQ(OR(A a, B b), !B x, C c)", "x.u = a.u AND x.u = b.u"),
        ("SEQ(A a, !B x, C c)", "a.u = x.u AND a.v = x.u"),
    ],
)
def test_what_is_tied_otherwise_or_not_at_all(pattern: str, condition: str) -> None:
    assert loose(pattern, condition) == []


def test_events_of_one_partition_agree_on_its_column() -> None:
    assert loose("SEQ(A a, !B x, C c)", "a.u = x.u = c.u", partition_by="u") == []
    assert loose("SEQ(A a, !B x, C c)", "a.u = x.u = c.u PARTITION BY u") == []
    assert loose("SEQ(A a, !B x, C c)", "a.u = x.u = c.u", partition_by="v") != []
