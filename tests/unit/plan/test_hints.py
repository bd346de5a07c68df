"""What helps where two values cannot be compared or computed with."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eventcube.errors import BindError
from eventcube.language.parse import parse
from eventcube.options import options
from eventcube.plan.bind import bind

COLUMNS = pa.schema(
    {
        "ts": pa.timestamp("us"),
        "kind": pa.string(),
        "x": pa.int64(),
        "ok": pa.bool_(),
        "s": pa.string(),
        "t": pa.timestamp("us"),
        "d": pa.duration("us"),
        "l": pa.list_(pa.int64()),
    }
)
COUNTED = COLUMNS.set(0, pa.field("ts", pa.int64()))


def hint(condition: str, columns: pa.Schema = COLUMNS, unit: str = "us") -> str | None:
    query = parse(f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 1 hour")
    with pytest.raises(BindError) as caught:
        bind(query, options(type="kind", time_unit=unit).schema(columns))
    (problem,) = caught.value.diagnostics
    return problem.hint


@pytest.mark.parametrize(
    ("unit", "number", "counted"),
    [
        ("s", "900", "seconds"),
        ("ms", "900000", "milliseconds"),
        ("us", "900000000", "microseconds"),
        ("ns", "900000000000", "nanoseconds"),
    ],
)
def test_a_length_of_time_beside_times_that_are_whole_numbers(unit: str, number: str, counted: str) -> None:
    told = f"write {number}: 'ts' counts {counted} (see time_unit)"
    for condition in ("b.ts - a.ts < 15 minutes", "15 minutes > b.ts - a.ts", "b.ts < a.ts + 15 minutes"):
        assert hint(condition, COUNTED, unit) == told


def test_a_length_of_time_that_is_no_whole_number_of_the_unit() -> None:
    assert hint("b.ts - a.ts < 1500 ms", COUNTED, "s") == "write 1.5: 'ts' counts seconds (see time_unit)"
    computed = "'ts' counts seconds: write a number of seconds, without a unit"
    assert hint("b.ts - a.ts < 2 * 5 minutes", COUNTED, "s") == computed


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("a.x < 15 minutes", "a.x is a plain number: compare it with one, without a unit"),
        ("b.ts - a.ts < 15", "give the duration a unit, as in 5 minutes"),
        ("a.ok = 'true'", "a.ok is true or false by itself: write a.ok, or NOT a.ok"),
        ("1 = a.ok", "a.ok is true or false by itself: write a.ok, or NOT a.ok"),
        ("a.s = DATE(a.ts)", "a.s is text: convert it to a time column beforehand"),
        ("a.t > b.s", "b.s is text: convert it to a time column beforehand"),
        ("a.x = 'x'", "a.x holds numbers: compare it with one, or name a column of text"),
        ("a.x = '5'", "write the number without quotes: 5"),
        ("a.s = 5", "write the text in quotes: '5'"),
        ("a.s = b.x", "convert both columns to numbers, or both to text, beforehand"),
        ("a.d > '5 minutes'", "write the duration without quotes: 5 minutes"),
        ("a.l = b.l", "a.l is a list, a struct or the like: name a column of plain values"),
        ("a.ts > 5", "write the timestamp in quotes: '2024-01-31 12:00:00'"),
        ("a.ts > 5 minutes", "compare the time between two events: b.ts - a.ts < 5 minutes"),
    ],
)
def test_values_that_cannot_be_compared(condition: str, told: str) -> None:
    assert hint(condition) == told


@pytest.mark.parametrize(
    ("written", "clock"),
    [
        ("2024-01-31 12:00 Europe/Berlin", "2024-01-31 12:00"),
        ("2024-01-31 12:00:00 CET", "2024-01-31 12:00:00"),
        ("2024-01-31T12:00:00[Europe/Berlin]", "2024-01-31T12:00:00"),
        ("2024-01-31 CET", "2024-01-31 12:00"),
    ],
)
def test_names_of_zones(written: str, clock: str) -> None:
    told = f"write the offset from UTC, not the name of a zone: '{clock}+01:00', for example"
    assert hint(f"a.ts > '{written}'") == told


def test_other_words_after_a_moment() -> None:
    assert hint("a.ts > '2024-01-31 09:00 PM'") == "hours go from 00 to 23, without AM or PM"
    assert hint("a.ts > '31.01.2024 CET'") == "write, say, '2024-01-31 12:00:00'"
