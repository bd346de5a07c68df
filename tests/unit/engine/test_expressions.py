"""Values and quals over columns: three-valued logic, arithmetic that does not wrap, text in order."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import eventcube as ec

NULL = None


def holds(qual: str, **row: Any) -> bool:
    """Whether a qual holds for one event with these attributes."""
    columns = {name: pa.array([value], _type(value)) for name, value in row.items()}
    table = pa.table({"ts": [1], "type": ["A"], **columns})
    # Some of them never hold, or always: that is what is asked here.
    runtime = ec.Runtime(f"PATTERN A a WHERE {qual}", type="type", advise=False)
    return sum(batch.num_rows for batch in (*runtime.push(table), *runtime.finish())) == 1


def value(expression: str, **row: Any) -> Any:
    """What an expression comes to for one event with these attributes."""
    columns = {name: pa.array([v], _type(v)) for name, v in row.items()}
    table = pa.table({"ts": [1], "type": ["A"], **columns})
    return ec.match(table, f"PATTERN A a RETURN {expression} AS v", type="type").column("v").to_pylist()[0]


def _type(example: Any) -> pa.DataType | None:
    return pa.int64() if example is None else None


TRUTH = {True: "a.x = 1", False: "a.x = 2", NULL: "a.n = 1"}


@pytest.mark.parametrize(("left", "right"), list(product(TRUTH, TRUTH)))
def test_three_valued_logic(left: bool | None, right: bool | None) -> None:
    def known(qual: str) -> bool | None:
        row = {"x": 1, "n": NULL}
        true, false = holds(qual, **row), holds(f"NOT ({qual})", **row)
        assert not (true and false)
        return True if true else False if false else NULL

    both = False if left is False or right is False else NULL if NULL in (left, right) else True
    either = True if left is True or right is True else NULL if NULL in (left, right) else False
    assert known(f"({TRUTH[left]}) AND ({TRUTH[right]})") is both
    assert known(f"({TRUTH[left]}) OR ({TRUTH[right]})") is either
    assert known(f"NOT ({TRUTH[left]})") is (None if left is NULL else not left)


@pytest.mark.parametrize(
    ("qual", "expected"),
    [
        ("a.n = a.n", False),
        ("a.n != 1", False),
        ("NOT (a.n = 1)", False),
        ("a.n IS NULL", True),
        ("NOT (a.n IS NULL)", False),
        ("a.n IS NOT NULL", False),
        ("a.n + 1 IS NULL", True),
        ("a.y IS NULL", True),
        ("a.y = a.y", False),
        ("a.y != a.y", False),
        ("a.y < 1 OR a.y >= 1", False),
        ("a.n IN (1, 2)", False),
        ("a.n NOT IN (1, 2)", False),
        ("a.x IN (2, NULL)", False),
        ("a.x NOT IN (2, NULL)", False),
        ("a.x IN (1, NULL)", True),
        ("a.x NOT IN (2, 3)", True),
        ("a.x BETWEEN 1 AND 1", True),
        ("a.x BETWEEN NULL AND 0", False),
        ("a.x NOT BETWEEN NULL AND 0", True),
        ("a.x NOT BETWEEN NULL AND 2", False),
        ("a.x NOT BETWEEN 2 AND 3", True),
        ("a.b", True),
        ("NOT a.b", False),
        ("a.x = 1.0", True),
        ("a.x < 1.5", True),
    ],
)
def test_nulls_and_nan(qual: str, expected: bool) -> None:
    assert holds(qual, x=1, n=NULL, y=math.nan, b=True) is expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a.x + 1", 8),
        ("a.x * 2 - 1", 13),
        ("-a.x", -7),
        ("a.x / 2", 3.5),
        ("a.x / 0", None),
        ("a.y / 0.0", None),
        ("a.x % 4", 3),
        ("-a.x % 4", -3),
        ("a.x % -4", 3),
        ("a.x % 0", None),
        ("a.y % 1", 0.5),
        ("-a.y % 1", -0.5),
        ("a.y % 0", None),
        ("a.x + a.n", None),
        ("a.y * a.n", None),
        ("a.n % 2", None),
        ("a.x + NULL", None),
        ("NULL", None),
        ("'it''s'", "it's"),
        ("TRUE", True),
    ],
)
def test_arithmetic(expression: str, expected: Any) -> None:
    assert value(expression, x=7, y=2.5, n=NULL) == expected


@pytest.mark.parametrize(
    "qual",
    [
        "a.x + a.x > a.x",
        "a.x * 2 > a.x",
        "a.x + 1 > 9000000000000000000",
        "-a.least > 9000000000000000000",
        "a.least - 1 < a.least + 9000000000000000000",
        "a.x * a.x > 1.0e37",
    ],
)
def test_what_64_bits_cannot_hold_is_null_and_never_wraps(qual: str) -> None:
    assert not holds(qual, x=2**63 - 1, least=-(2**63))
    assert not holds(f"NOT ({qual})", x=2**63 - 1, least=-(2**63))


def test_exact_whole_numbers_beyond_the_exactness_of_floats() -> None:
    assert holds("a.x + 1 != a.x", x=2**60)
    assert holds("a.x - 1 = 1152921504606846975", x=2**60)


@pytest.mark.parametrize(
    ("qual", "expected"),
    [
        ("a.s < 'b'", True),
        ("a.s > 'Z'", True),
        ("a.s < 'aa'", True),
        ("a.s >= ''", True),
        ("a.e > 'z'", True),
        ("a.e < 'ê'", True),
        ("a.s BETWEEN 'a' AND 'a'", True),
        ("a.s IN ('x', 'a')", True),
        ("a.s = 'A'", False),
        ("a.m < '😀'", True),
    ],
)
def test_text_is_ordered_by_code_point(qual: str, expected: bool) -> None:
    assert holds(qual, s="a", e="é", m="\uffee") is expected


@pytest.mark.parametrize(
    ("qual", "expected"),
    [
        ("a.t > '2024-01-31 20:59:59.999999'", True),
        ("a.t = '2024-01-31 21:00:00'", True),
        ("a.t = '2024-01-31T13:00:00+01:00'", True),
        ("a.t < '2024-01-31'", False),
        ("a.t - TIMESTAMP '2024-01-31' = 21 hours", True),
        ("a.t - TIMESTAMP '2024-01-31 00Z' = 12 hours", True),
        ("a.t + 1 day > '2024-02-01'", True),
        ("a.d < a.n", True),
        ("a.d = '2024-01-31'", True),
        ("a.n = '2024-01-31 12:00'", True),
        ("a.l > 89 seconds", True),
        ("a.l / 2 = 45 seconds", True),
        ("a.l / 30 seconds = 3", True),
        ("a.t IN ('2024-01-31 21:00:00', '2025-01-01')", True),
        ("a.t BETWEEN '2024-01-01' AND '2024-02-01'", True),
    ],
)
def test_times_and_lengths_of_time(qual: str, expected: bool) -> None:
    noon = pa.scalar(1_706_702_400, pa.timestamp("s"))
    table = pa.table(
        {
            "ts": [1],
            "t": pa.array([noon.as_py()], pa.timestamp("ns", "Asia/Tokyo")),
            "n": pa.array([noon.as_py()], pa.timestamp("ms")),
            "d": pa.array([noon.as_py().date()]),
            "l": pa.array([90], pa.duration("s")),
        }
    )
    assert (ec.match(table, f"PATTERN A a WHERE {qual}").num_rows == 1) is expected


def test_a_large_number_elsewhere_in_the_batch_changes_nothing() -> None:
    events = pa.table(
        {"ts": [1, 2, 900, 901], "type": ["A", "B", "A", "A"], "x": [2**53 + 1, 2**53, 2**63 - 1, 2**63 - 1]}
    )
    query = "PATTERN SEQ(A a, B b, a.x + 0 = b.x) WITHIN 5 us"
    at_once = ec.match(events, query, type="type").num_rows
    runtime = ec.Runtime(query, type="type")
    found = [
        *runtime.push(events.slice(0, 2)),
        *runtime.advance(800),
        *runtime.push(events.slice(2)),
        *runtime.finish(),
    ]
    assert at_once == sum(b.num_rows for b in found) == 0
