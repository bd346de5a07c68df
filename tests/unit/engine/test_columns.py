"""Arrow columns of every type as numbers: values, nulls, and codes that are equal where values are."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eventcube.engine.columns import Columns, codes_of, text_ranks, to_column, to_microseconds
from eventcube.engine.expressions import valid_mask
from eventcube.plan.dictionary import Dictionary
from eventcube.plan.expressions import ColumnRef, Encoding
from eventcube.schema import Kind

SECOND = 1_000_000
DAY = 86_400 * SECOND


def chunked(values: list[Any], type_: pa.DataType | None = None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, type_)])


def shown(array: pa.ChunkedArray) -> list[Any]:
    """The column's numbers, None where it is null."""
    column = to_column(array)
    return [v if ok else None for v, ok in zip(column.values.tolist(), valid_mask(column).tolist(), strict=True)]


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("signed", [True, False])
def test_whole_numbers_of_every_width(bits: int, signed: bool) -> None:
    name = f"{'' if signed else 'u'}int{bits}"
    type_ = getattr(pa, name)()
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    column = chunked([low, None, 1, high], type_)
    if name == "uint64":
        assert shown(column) == [0.0, None, 1.0, float(2**64 - 1)], "what does not fit 64 bits with a sign is a float"
    else:
        assert shown(column) == [low, None, 1, high]
        assert to_column(column).values.dtype == np.int64


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        pytest.param(chunked([0.5, None, float("nan"), -0.0]), [0.5, None, None, 0.0], id="float64: NaN is null"),
        pytest.param(chunked([0.5, None], pa.float32()), [0.5, None], id="float32"),
        pytest.param(chunked([0.5, None], pa.float16()), [0.5, None], id="float16"),
        pytest.param(chunked([Decimal("1.25"), None, Decimal("-3")]), [1.25, None, -3.0], id="decimal128"),
        pytest.param(chunked([Decimal("1.25")], pa.decimal256(50, 2)), [1.25], id="decimal256"),
        pytest.param(chunked([True, None, False]), [1, None, 0], id="booleans"),
        pytest.param(chunked([None, None], pa.null()), [None, None], id="a column of nothing"),
        pytest.param(chunked([date(1970, 1, 2), None, date(1969, 12, 31)]), [DAY, None, -DAY], id="date32"),
        pytest.param(chunked([date(1970, 1, 2)], pa.date64()), [DAY], id="date64"),
        pytest.param(chunked([5, None, -5], pa.duration("s")), [5 * SECOND, None, -5 * SECOND], id="durations in s"),
        pytest.param(chunked([5], pa.duration("ms")), [5000], id="durations in ms"),
        pytest.param(chunked([5], pa.duration("us")), [5], id="durations in us"),
        pytest.param(chunked([5000], pa.duration("ns")), [5], id="durations in ns"),
        pytest.param(chunked([7, None, 7]).cast(pa.int32()).dictionary_encode(), [7, None, 7], id="dictionary of ints"),
        pytest.param(chunked([0.5, None]).dictionary_encode(), [0.5, None], id="dictionary of floats"),
        pytest.param(chunked([], pa.int64()), [], id="empty"),
        pytest.param(pa.chunked_array([], pa.int64()), [], id="no chunk at all"),
        pytest.param(pa.chunked_array([[1, None], [], [3]], pa.int64()), [1, None, 3], id="several chunks"),
        pytest.param(pa.chunked_array([[0.5], [None]]), [0.5, None], id="several chunks of floats"),
        pytest.param(chunked([9, 1, None, 3, 9]).slice(1, 3), [1, None, 3], id="a slice"),
        pytest.param(chunked([True, True, None, False, True]).slice(2, 2), [None, 0], id="a slice of booleans"),
    ],
)
def test_values(column: pa.ChunkedArray, expected: list[Any]) -> None:
    assert shown(column) == expected


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "+05:30"])
@pytest.mark.parametrize(
    ("unit", "raw", "expected"),
    [
        ("s", [1, -1, None], [SECOND, -SECOND, None]),
        ("ms", [1, -1, None], [1000, -1000, None]),
        ("us", [1, -1, None], [1, -1, None]),
        ("ns", [1999, -1, -1000, -1001, None], [1, -1, -1, -2, None]),
    ],
)
def test_timestamps_are_rounded_down_to_microseconds_since_1970_utc(
    unit: str, raw: list[int | None], expected: list[int | None], zone: str | None
) -> None:
    assert shown(chunked(raw, pa.int64()).cast(pa.timestamp(unit, zone))) == expected


def test_times_beyond_the_years_of_microseconds_are_null() -> None:
    column = chunked([2**62, -(2**62), 0], pa.int64()).cast(pa.timestamp("s"))
    assert to_microseconds(column).to_pylist() == [None, None, 0]


def test_a_time_of_any_unit_is_the_same_number() -> None:
    moment = datetime(1955, 11, 5, 6, 15)
    assert len({shown(chunked([moment], pa.timestamp(u)))[0] for u in ("s", "ms", "us", "ns")}) == 1


@pytest.mark.parametrize(
    "type_", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())], ids=str
)
def test_text_of_every_layout_has_one_set_of_codes(type_: pa.DataType) -> None:
    left = pa.chunked_array([pa.array(["b", None], pa.string()).cast(type_), pa.array(["é"], pa.string()).cast(type_)])
    table = pa.table({"left": left, "right": pa.array(["é", "a", "b"])})
    columns = Columns(table, Dictionary(("left", "right"), ("a", "zz"), ordered=True))
    left_ref, right_ref = (ColumnRef(0, name, Kind.TEXT, Encoding.TEXT) for name in ("left", "right"))
    left_codes, right_codes = columns[left_ref].values, columns[right_ref].values
    assert left_codes[0] == right_codes[2]
    assert left_codes[2] == right_codes[0]
    assert columns[left_ref].valid is not None
    assert columns[left_ref].valid.tolist() == [True, False, True]
    assert columns.code("a") == right_codes[1]
    assert columns.code("a") < right_codes[2] < columns.code("zz") < right_codes[0], "codes sort as UTF-8 does"


def test_columns_can_be_read_in_another_order() -> None:
    columns = Columns(pa.table({"x": [10, 20, 30], "s": ["a", "b", "c"]}), Dictionary(("s",)), np.array([2, 0, 1]))
    assert columns[ColumnRef(0, "x", Kind.INTEGER, Encoding.NUMBER)].values.tolist() == [30, 10, 20]
    assert np.unique(columns[ColumnRef(0, "s", Kind.TEXT, Encoding.TEXT)].values).size == 3


@pytest.mark.parametrize("nulls_match", [True, False])
def test_codes_are_equal_where_all_columns_are(nulls_match: bool) -> None:
    rng = np.random.default_rng(5)
    count = 4000
    numbers = pa.array(rng.integers(-3, 3, count), mask=rng.random(count) < 0.2)
    floats = pa.array(rng.choice([0.0, -0.0, 1.5, np.nan], count), mask=rng.random(count) < 0.1)
    texts = pa.array(rng.choice(["a", "b", "é"], count), mask=rng.random(count) < 0.1).dictionary_encode()
    wide = pa.array(rng.choice([-(2**62), 0, 2**62], count))
    columns = [pa.chunked_array([c[:1000], c[1000:]]) for c in (numbers, floats, texts, wide)]
    codes, groups = codes_of(columns, nulls_match=nulls_match)
    keys = [
        tuple(None if v != v else v for v in row)
        for row in zip(*(c.to_pylist() for c in (numbers, floats, texts, wide)), strict=True)
    ]
    assert codes.max() < groups
    if not nulls_match:
        assert [c < 0 for c in codes] == [None in k for k in keys]
        keys, codes = [k for k in keys if None not in k], codes[codes >= 0]
    assert len(set(zip(keys, codes.tolist(), strict=True))) == len(set(keys)) == len(set(codes.tolist()))


def test_text_sorts_with_null_first() -> None:
    column = pa.chunked_array([["b", None], ["a", "b"]])
    ranks = text_ranks(column)
    assert ranks[1] < ranks[2] < ranks[0] == ranks[3]
    assert text_ranks(column.dictionary_encode()).tolist() == ranks.tolist()
