"""Conditions that can hardly be meant are told, and nothing else is."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.concepts.concepts import Concepts
from eventcube.language.parse import parse
from eventcube.options import options
from eventcube.plan.advice import advise
from eventcube.plan.bind import bind

COLUMNS = pa.schema(
    {
        "ts": pa.timestamp("us"),
        "kind": pa.string(),
        "x": pa.int64(),
        "f": pa.float64(),
        "s": pa.string(),
        "b": pa.bool_(),
    }
)
SEQ = "SEQ(A a, B b, C c)"


def told(
    pattern: str, condition: str = "", within: str = "1 hour", columns: pa.Schema = COLUMNS, **settings: Any
) -> list[str]:
    """What is said of a query: the code and the message of each."""
    where = f" WHERE {condition}" if condition else ""
    query = parse(f"PATTERN {pattern}{where} WITHIN {within}")
    found = advise(bind(query, options(type="kind", **settings).schema(columns)))
    return [f"{d.code} {d.message}" for d in found]


@pytest.mark.parametrize(
    ("condition", "code", "words"),
    [
        ("a.x = NULL", "EC510", "`a.x = NULL` never holds: nothing compares with NULL"),
        ("a.x != NULL", "EC510", "`a.x != NULL` never holds"),
        ("NULL = a.x", "EC510", "never holds"),
        ("a.x IN (1, NULL)", "EC510", "NULL in `a.x IN (1, NULL)` finds nothing"),
        ("a.x NOT IN (1, NULL)", "EC510", "never holds"),
        ("a.x BETWEEN NULL AND 2", "EC510", "never holds"),
        ("a.x = 1 OR b.x = NULL", "EC510", "`b.x = NULL` never holds"),
        ("1 = 2", "EC511", "never holds, so nothing matches"),
        ("1 = 1", "EC512", "always holds, so it leaves nothing out"),
        ("'a' > 'b'", "EC511", "never"),
        ("FALSE", "EC511", "never"),
        ("NOT a.x = NULL", "EC510", "`NOT a.x = NULL` never holds"),
        (
            "a.x = a.x",
            "EC512",
            "always holds where a.x is not null: both sides are the same, so it only excludes nulls",
        ),
        ("NOT a.x != a.x", "EC512", "always holds where a.x is not null: both sides are the same"),
        ("a.ts = a.ts", "EC512", "always holds: both sides are the same, so it leaves nothing out"),
        ("a.s < a.s", "EC511", "both sides are the same"),
        ("a.ts IS NULL", "EC511", "never"),
        ("a.ts - c.ts < 5 minutes", "EC512", "a comes before c, so it leaves nothing out"),
        ("a.ts > c.ts", "EC511", "a comes before c, so nothing matches"),
        ("a.ts = b.ts", "EC511", "a comes before b"),
        ("c.ts - a.ts > 2 hours", "EC511", "they are within 1 hour"),
        ("c.ts - a.ts <= 1 day", "EC512", "they are within 1 hour"),
        ("c.ts > a.ts + 90 minutes", "EC511", "they are within 1 hour"),
        ("a.ts - 90 minutes < c.ts", "EC512", "a comes before c"),
        ("c.ts - a.ts BETWEEN -5 minutes AND -1 minute", "EC511", "a comes before c"),
        ("NOT c.ts >= a.ts", "EC511", "a comes before c"),
        ("a.x > 5 AND a.x < 3", "EC513", "`a.x > 5` and `a.x < 3` exclude each other, so nothing matches"),
        ("a.x = 1 AND a.x = 2", "EC513", "exclude each other"),
        ("a.s = 'x' AND a.s = 'y'", "EC513", "exclude each other"),
        ("a.x IN (1, 2) AND a.x >= 3", "EC513", "exclude each other"),
        ("a.x >= 1 AND a.x <= 1 AND a.x != 1", "EC513", "`a.x >= 1`, `a.x <= 1` and `a.x != 1` exclude each other"),
        ("a.b AND NOT a.b", "EC513", "exclude each other"),
        ("a.ts > '2024-01-02' AND a.ts < '2024-01-01'", "EC513", "exclude each other"),
        ("b.ts - a.ts > 10 minutes AND a.ts - b.ts > -5 minutes", "EC513", "exclude each other"),
        ("a.x BETWEEN 5 AND 1", "EC511", "never"),
        ("a.x > 1 OR a.x <= 1", "EC512", "always holds where a.x is not null"),
        ("a.x = 1 OR (a.s = 'x' AND a.ts > c.ts)", "EC511", "so only the rest of the OR counts"),
        ("WEEKDAY(a.ts) = 0", "EC511", "never holds: WEEKDAY gives 1 to 7, so nothing matches"),
        ("24 = HOUR(a.ts)", "EC511", "never holds: HOUR gives 0 to 23"),
        ("MONTH(a.ts) IN (0, 13)", "EC511", "never holds: MONTH gives 1 to 12"),
        ("DAY(a.ts + 1 day) > 31", "EC511", "never holds: DAY gives 1 to 31"),
        ("MINUTE(a.ts) = 30.5", "EC511", "never holds: MINUTE gives 0 to 59"),
        ("HOUR(a.ts) BETWEEN 5 AND 1", "EC511", "never holds, so"),
        ("HOUR(a.ts) >= 0", "EC512", "always holds where HOUR(a.ts) is not null: HOUR gives 0 to 23"),
        ("HOUR(a.ts) > 22 AND HOUR(a.ts) < 23", "EC513", "exclude each other"),
        ("LENGTH(a.s) < 0", "EC511", "never holds: LENGTH is never negative"),
        ("ABS(c.ts - a.ts) >= 0 seconds", "EC512", "ABS is never negative"),
        ("a.kind = 'C'", "EC511", "never holds: a is of type A, so nothing matches"),
        ("a.kind NOT IN ('A', 'B')", "EC511", "never holds: a is of type A"),
        ("a.kind = b.kind", "EC511", "never holds: a is of type A, and b is of type B"),
        ("a.kind IS NULL OR a.kind = 'B'", "EC511", "never holds"),
        ("a.s LIKE 'Ord*'", "EC516", "`a.s LIKE 'Ord*'` finds only the text 'Ord*' itself"),
        ("NOT (a.x = 1 AND a.s LIKE '?')", "EC516", "finds only the text '?' itself"),
    ],
)
def test_what_can_hardly_be_meant_is_told(condition: str, code: str, words: str) -> None:
    (found,) = told(SEQ, condition)
    assert found.startswith(code)
    assert words in found


@pytest.mark.parametrize(
    "condition",
    [
        "a.x IS NULL",
        "a.x = 1 AND b.x = 2",
        "a.x > 3 AND a.x < 5",
        "a.x = 1 OR a.x = 2",
        "c.ts - a.ts > 10 minutes",
        "c.ts - a.ts >= 1 hour",
        "c.ts - a.ts < 2 us",
        "a.x = 9007199254740993 AND a.x = 9007199254740992.0",
        "a.f + 1 = a.f",
        "a.s > 'a' AND a.s < 'b'",
        "TRUE",
        # Events are in that order, and of that type, anyway: it does no harm to say so.
        "c.ts > a.ts",
        "a.ts < b.ts < c.ts",
        "a.ts != b.ts",
        "a.kind = 'A'",
        "a.kind != 'C'",
        "a.kind != b.kind",
        "a.kind IN ('A', 'C')",
        "HOUR(a.ts) = 0",
        "HOUR(a.ts) < HOUR(b.ts)",
        "YEAR(a.ts) = 0",
        "MONTH(a.ts) = 12 OR WEEKDAY(a.ts) = 7",
        "a.s LIKE 'a*%'",
        "a.s LIKE 'a'",
        "a.s LIKE '5\\_*'",
    ],
)
def test_what_can_be_meant_is_not_told(condition: str) -> None:
    assert told(SEQ, condition) == []


def test_ties_can_be_in_order_of_another_column() -> None:
    assert told("SEQ(A a, B b)", "a.ts = b.ts")
    assert told("SEQ(A a, B b)", "a.ts = b.ts", order_by="x") == []
    assert told("SEQ(A a, B b)", "a.ts > b.ts", order_by="x")


def test_a_window_of_events_bounds_no_time() -> None:
    assert told("SEQ(A a, B b)", "b.ts - a.ts > 2 hours", within="5 events") == []


def test_events_of_an_and_come_in_any_order() -> None:
    assert told("AND(A a, B b)", "a.ts > b.ts") == []
    assert told("AND(A a, B b)", "a.ts - b.ts > 2 hours")
    assert told("SEQ(A a, AND(B b, C c))", "b.ts < a.ts")


def test_a_negated_part_removes_nothing() -> None:
    (found,) = told("SEQ(A a, !(B b, b.x > 5, b.x < 3), C c)")
    assert found.endswith("so the negated part removes nothing")
    (found,) = told("SEQ(A a, !(B b, b.ts < a.ts), C c)")
    assert found.endswith("a comes before b, so the negated part removes nothing")
    (found,) = told("SEQ(A a, !(SEQ(B b, D d), d.ts > c.ts), C c)")
    assert "d comes before c" in found
    assert told("SEQ(!(B b, c.ts - b.ts > 30 minutes), A a, C c)") == []
    assert told("SEQ(!(B b, c.ts - b.ts > 2 hours), A a, C c)")


def test_conditions_of_two_alternatives_do_not_meet() -> None:
    assert told("SEQ(A a, OR(SEQ(B b, a.x > 5), SEQ(C c, a.x < 3)))") == []
    (found,) = told("SEQ(A a, OR(B b, SEQ(C c, a.x > 5)))", "a.x < 3")
    assert found.endswith("so that alternative of OR has no match")
    (found,) = told("SEQ(A a, OR(B b, C c))", "b.x = 1 AND b.x = 2")
    assert found.endswith("so no match binds b")


@pytest.mark.parametrize(("unit", "hour"), [("s", 3600), ("ms", 3_600_000), ("us", 3_600_000_000)])
def test_whole_numbers_count_in_their_unit(unit: str, hour: int) -> None:
    columns = COLUMNS.set(0, pa.field("ts", pa.int64()))
    assert told("SEQ(A a, B b)", f"b.ts - a.ts > {hour}", columns=columns, time_unit=unit)
    assert told("SEQ(A a, B b)", f"b.ts - a.ts >= {hour}", columns=columns, time_unit=unit) == []
    assert told("SEQ(A a, B b)", "b.ts - a.ts < 1", columns=columns, time_unit=unit)


def test_nanoseconds_are_rounded_down_to_microseconds() -> None:
    columns = COLUMNS.set(0, pa.field("ts", pa.int64()))
    settings = {"columns": columns, "time_unit": "ns", "within": "1 us"}
    assert told("SEQ(A a, B b)", "b.ts - a.ts >= 1999", **settings) == []
    assert told("SEQ(A a, B b)", "b.ts - a.ts >= 2000", **settings)


def test_the_difference_the_other_way_round_is_proposed() -> None:
    query = parse("PATTERN SEQ(A a, C c) WHERE a.ts - c.ts < 5 minutes WITHIN 1 hour")
    (found,) = advise(bind(query, options(type="kind").schema(COLUMNS)))
    assert found.hint == "did you mean c.ts - a.ts < 5 minutes?"
    assert query.text[found.span.start : found.span.end] == "a.ts - c.ts < 5 minutes"


def hints(text: str, **settings: Any) -> list[str | None]:
    """The hints of what is said of a query."""
    return [d.hint for d in advise(bind(parse(text), options(type="kind", **settings).schema(COLUMNS)))]


def test_what_helps_is_told() -> None:
    assert hints("PATTERN A a WHERE WEEKDAY(a.ts) = 0") == ["Monday is 1, Sunday 7"]
    assert hints("PATTERN A a WHERE a.kind = 'C x'") == ["write the type in the pattern: `C x` a"]
    assert hints("PATTERN A a WHERE NOT a.x = NULL") == ["write a.x IS NOT NULL"]
    assert hints("PATTERN A a WHERE NOT a.x != NULL") == ["write a.x IS NULL"]
    assert hints("PATTERN A a WHERE a.s LIKE 'Ord.*'") == ["% stands for any characters, _ for one: LIKE 'Ord%'"]
    assert hints("PATTERN A a WHERE a.x = a.x") == ["compare it with another variable, or write a.x IS NOT NULL"]


class TestTypes:
    CONCEPTS = Concepts({"P": ["A", "B"], "R": ["P"]})

    def told(self, pattern: str, condition: str) -> list[str]:
        query = parse(f"PATTERN {pattern} WHERE {condition} WITHIN 1 hour")
        found = advise(bind(query, options(type="kind").schema(COLUMNS), self.CONCEPTS))
        return [d.message for d in found]

    def test_types_below_that_of_the_component_count(self) -> None:
        assert self.told("P p", "p.kind = 'A'") == []
        assert self.told("P p", "p.kind = 'P'") == []
        (found,) = self.told("P p", "p.kind = 'R'")
        assert "never holds: p is of type P or one below it" in found
        assert self.told("SEQ(P p, A a)", "p.kind = a.kind") == []
        assert self.told("SEQ(P p, C c)", "p.kind = c.kind") != []

    def test_events_of_any_type(self) -> None:
        assert self.told("ANY a", "a.kind = 'C'") == []

    def test_where_no_type_is_named(self) -> None:
        query = parse("PATTERN A a WHERE a.kind = 'C'")
        assert advise(bind(query, options().schema(COLUMNS))) == []


NANOSECONDS = pa.table(
    {"ts": pa.array([1500, 1200], pa.int64()), "kind": ["A", "B"], "o": [0, 1], "x": [None, 1], "y": [3, 4]}
)


@pytest.mark.parametrize("condition", ["b.ts < a.ts", "b.ts - a.ts < -100", "b.ts - a.ts >= 0"])
def test_finer_numbers_than_microseconds_may_fall_from_one_event_to_the_next(condition: str) -> None:
    query = f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 10 s"
    assert not ec.check(query, NANOSECONDS, type="kind", time_unit="ns", order_by="o").warnings


def test_a_value_equal_to_itself_may_be_null_beside_another_that_is_not() -> None:
    assert not ec.check("PATTERN A a WHERE a.x = a.x OR a.y > 5 WITHIN 1 s", NANOSECONDS, type="kind").warnings


def test_null_at_one_end_of_not_between_decides_nothing() -> None:
    (problem,) = ec.check("PATTERN A a WHERE a.y NOT BETWEEN 5 AND NULL WITHIN 1 s", NANOSECONDS, type="kind").warnings
    assert problem.message == "NULL in `a.y NOT BETWEEN 5 AND NULL` leaves nothing out"


def test_long_lists_of_conditions_are_looked_at_in_a_moment() -> None:
    many = " AND ".join(f"a.y != {i}" for i in range(2000))
    listed = ", ".join(map(str, range(5000)))
    assert not ec.check(f"PATTERN A a WHERE {many} AND a.x IN ({listed}) WITHIN 1 s", NANOSECONDS, type="kind").warnings
