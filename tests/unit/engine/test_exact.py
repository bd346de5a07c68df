"""Numbers that floats would round are told apart and ordered as they are."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.engine.ranks import Ranks

LARGE = 2**63 + 2**20
NINES = Decimal("12345678901234567890.12")
CENT = Decimal("0.01")


def pairs(column: pa.Array, condition: str, **settings: Any) -> list[tuple[int, int]]:
    """The rows of a and b for which a comes first and the condition holds."""
    events = pa.table({"ts": range(len(column)), "n": column, "i": range(len(column))})
    found = ec.match(events, f"PATTERN SEQ(a, b) WHERE {condition} WITHIN 1 hour RETURN a.i AS a, b.i AS b", **settings)
    return sorted((r["a"], r["b"]) for r in found.to_pylist())


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(pa.array([LARGE, LARGE + 1, LARGE, None, 5], pa.uint64()), id="uint64"),
        pytest.param(pa.array([LARGE, LARGE + 1, LARGE, None, 5], pa.uint64()).dictionary_encode(), id="dictionary"),
        pytest.param(pa.array([NINES, NINES + CENT, NINES, None, 5 * CENT], pa.decimal128(38, 2)), id="decimal128"),
        pytest.param(pa.array([NINES, NINES + CENT, NINES, None, 5 * CENT], pa.decimal256(60, 9)), id="decimal256"),
        pytest.param(
            pa.array([Decimal(10**17), Decimal(10**17 + 1), Decimal(10**17), None, Decimal(5)], pa.decimal64(18, 0)),
            id="decimal64",
        ),
    ],
)
def test_comparisons(column: pa.Array) -> None:
    assert pairs(column, "a.n = b.n") == [(0, 2)], "as a key"
    assert pairs(column, "a.n = b.n AND a.i < b.i + 0") == [(0, 2)]
    assert pairs(column, "NOT a.n != b.n") == [(0, 2)], "as a filter"
    assert pairs(column, "a.n < b.n") == [(0, 1)]
    assert pairs(column, "b.n < a.n") == [(0, 4), (1, 2), (1, 4), (2, 4)]
    assert pairs(column, "b.n BETWEEN a.n AND a.n") == [(0, 2)]
    with pytest.warns(ec.EventCubeWarning, match="EC510"):
        assert pairs(column, "b.n IN (a.n, NULL)") == [(0, 2)]
    assert pairs(column, "a.i < b.i", partition_by="n") == [(0, 2)]


def test_constants_and_whole_numbers() -> None:
    large = 2**62
    column = pa.array([large, large + 1, large - 1], pa.decimal128(30, 1))
    assert pairs(column, f"a.n = {large} AND b.n > {large}") == [(0, 1)]
    assert pairs(column, f"a.n >= {large} AND b.n < {large}.0") == [(0, 2), (1, 2)]
    assert pairs(column, f"a.n > -{large} AND b.n IN ({large + 1}, 0.5)") == [(0, 1)]
    tenths = pa.array([Decimal("0.1"), Decimal("0.3")], pa.decimal128(38, 18))
    assert pairs(tenths, "a.n = 0.1 AND b.n = 0.3") == [(0, 1)], "a constant is what is written"
    events = pa.table({"ts": [1, 2, 3], "x": [large + 1, 0, 0], "n": pa.array([0, large, large + 1], pa.uint64())})
    found = ec.match(events, "PATTERN SEQ(a, b) WHERE a.x = b.n WITHIN 1 s RETURN b.ts AS t")
    assert found.column("t").to_pylist() == [3], "a whole number with a sign against one without"


def test_each_option_is_compared_by_itself() -> None:
    column = pa.array([LARGE, LARGE + 1, LARGE], pa.uint64())
    assert pairs(column, "b.n IN (a.n, a.i / 2)") == [(0, 2)]
    assert pairs(column, "b.n BETWEEN a.i / 2 AND a.n") == [(0, 2), (1, 2)]


def test_a_long_number_in_a_nested_negation() -> None:
    column = pa.array([LARGE, LARGE + 1, LARGE], pa.uint64())
    events = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "C"], "n": column})
    query = "PATTERN SEQ(A a, !(B b, b.n = a.n), C c) WITHIN 1 s"
    assert ec.match(events, query, type="type").num_rows == 1


@pytest.mark.parametrize(
    "order",
    [
        pytest.param(pa.array([LARGE + 1, LARGE], pa.uint64()), id="uint64"),
        pytest.param(pa.array([NINES + CENT, NINES], pa.decimal128(38, 2)), id="decimals"),
        pytest.param(pa.array([1001, 1000], pa.timestamp("ns")), id="nanoseconds"),
        pytest.param(pa.array([1001, 1000], pa.duration("ns")), id="lengths in nanoseconds"),
        pytest.param(pa.array([1, None], pa.timestamp("ns")), id="null first"),
        pytest.param(pa.array([5, None], pa.uint64()), id="null first in uint64"),
    ],
)
def test_ties_are_broken_exactly(order: pa.Array) -> None:
    events = pa.table({"ts": [1, 1], "o": order, "i": [0, 1]})
    found = ec.match(events, "PATTERN SEQ(a, b) WITHIN 1 s RETURN a.i AS a, b.i AS b", order_by="o")
    assert found.select(["a", "b"]).to_pylist() == [{"a": 1, "b": 0}]


def test_times_in_nanoseconds_are_compared_to_the_microsecond() -> None:
    column = pa.array([1001, 1002, 2000], pa.timestamp("ns"))
    assert pairs(column, "a.n = b.n") == pairs(column, "NOT a.n != b.n") == [(0, 1)]


def test_times_and_lengths_too_far_for_microseconds_are_null() -> None:
    for type_ in (pa.timestamp("s"), pa.duration("s")):
        column = pa.array([2**62, 5, 5], type_)
        assert pairs(column, "a.n = b.n") == [(1, 2)]
        with pytest.warns(ec.EventCubeWarning, match="EC512"):
            assert pairs(column, "a.n IS NULL AND b.n >= b.n") == [(0, 1), (0, 2)]
        assert pairs(column, "a.n IS NULL", partition_by="i") == []


def test_too_many_digits_to_compare() -> None:
    events = pa.table(
        {
            "ts": [1, 2],
            "n": pa.array([Decimal(10) ** 60] * 2, pa.decimal256(76, 0)),
            "m": pa.array([Decimal("1e-30")] * 2, pa.decimal256(76, 30)),
        }
    )
    with pytest.raises(ec.InputError, match="EC309"):
        ec.match(events, "PATTERN SEQ(a, b) WHERE a.n > b.m WITHIN 1 s")


@pytest.mark.parametrize("digits", [18, 38], ids=["without sorting", "sorted"])
def test_constants_lie_between_numbers(digits: int) -> None:
    far = [] if digits == 18 else [Decimal(10) ** 30]
    column = pa.array([Decimal("-1.5"), Decimal("0.5"), *far, None], pa.decimal128(38, 1))
    ranks = Ranks([pa.chunked_array([column])])
    places, valid = ranks.columns[0]
    least, half = places[:2].tolist()
    assert valid.tolist()[-2:] == [True, False]
    assert ranks.place(Decimal("-2")) < least == ranks.place(Decimal("-1.50")) < ranks.place(Decimal("-1.45")) < half
    assert half == ranks.place(Decimal("0.5")) < ranks.place(Decimal("0.55")) <= ranks.place(Decimal("1e40"))
    assert ranks.place(Decimal("-1e400")) < least
