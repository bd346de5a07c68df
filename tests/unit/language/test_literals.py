"""Constants, one at a time."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eventcube.language.literals import (
    UnreadableError,
    read_duration,
    read_number,
    read_timestamp,
    write_duration,
    write_number,
    write_timestamp,
)
from eventcube.runtime.read_columns import read_times
from eventcube.schema import EventSchema


@pytest.mark.parametrize("written", ["9" * 19, "1" * 5000, "1e400"])
def test_numbers_too_large(written: str) -> None:
    with pytest.raises(UnreadableError, match="too large"):
        read_number(written)


def test_the_largest_whole_number() -> None:
    assert read_number(str(2**63 - 1)) == 2**63 - 1


@pytest.mark.parametrize("amount", ["1e999999999", "1e400", "16000000", "9" * 400])
def test_durations_too_long_are_refused_at_once(amount: str) -> None:
    with pytest.raises(UnreadableError, match="too long"):
        read_duration(amount, "weeks")


@pytest.mark.parametrize("amount", ["1e-7", "1e-20", "0.0000001", "1.0000001"])
def test_durations_too_fine(amount: str) -> None:
    with pytest.raises(UnreadableError, match="finer than a microsecond"):
        read_duration(amount, "s")


def test_durations_of_very_many_digits_are_refused() -> None:
    with pytest.raises(UnreadableError, match="too many digits"):
        read_duration("0." + "9" * 1_000_000, "s")


@pytest.mark.parametrize("unit", ["month", "Months", "quarter", "YEARS"])
def test_units_of_the_calendar_have_no_length(unit: str) -> None:
    with pytest.raises(UnreadableError, match="has no fixed length"):
        read_duration("1", unit)


def test_durations_are_exact() -> None:
    assert read_duration("0.1", "s") == 100_000
    assert read_duration("1.000001", "Hours") == 3_600_003_600
    assert read_duration("9007199254740993", "us") == 9_007_199_254_740_993


@pytest.mark.parametrize("text", ["", "yesterday", "2024-13-01", "2024-01-31 12:00:00+24:00", "12:00"])
def test_moments_that_are_none(text: str) -> None:
    with pytest.raises(UnreadableError, match="is not a timestamp"):
        read_timestamp(text)


def test_a_moment_comes_back() -> None:
    written = write_timestamp(1_706_702_400_000_001, zoned=False)
    assert written == "TIMESTAMP '2024-01-31 12:00:00.000001'"
    assert read_timestamp("2024-01-31 12:00:00.000001") == (1_706_702_400_000_001, False)


@pytest.mark.parametrize("zone", ["Z", "+00:00", "+02:00", "-2359", "+23"])
@pytest.mark.parametrize("day", ["0001-01-01", "2024-01-31", "9999-12-31"])
def test_a_moment_with_a_zone_comes_back_with_one(day: str, zone: str) -> None:
    moment = read_timestamp(f"{day} 12:00:00.5{zone}")
    written = write_timestamp(*moment)
    assert moment[1]
    assert read_timestamp(written.removeprefix("TIMESTAMP '").removesuffix("'")) == moment


def test_a_negative_duration() -> None:
    assert write_duration(-61_000_000) == "-1 minute 1 second"


def test_what_has_no_written_form() -> None:
    with pytest.raises(ValueError, match="nan cannot be written"):
        write_number(float("nan"))


@pytest.mark.parametrize(
    "text",
    [
        *("2024-01-31", "2024-01-31 12", "2024-01-31T12:00", " 2024-01-31 12:00:00.5 ", "2024-01-31 12:00:00.123456"),
        *("2024-01-31 12:00Z", "2024-01-31T12:00:00+02:00", "2024-01-31 12:00:00+0200", "2024-01-31 12:00:00-02"),
        *("20240131", "20240131T120000", "2024-W05-3", "2024-01-31x12:00:00", "2024-01-31 12:00:00,5"),
        *(
            "2024-01-31 12:00:00 +02:00",
            "2024-01-31 1200",
            "2024-1-5 1:2:3",
            "2024-01-31Z",
            "2024-01-31 12:00:00.1234567",
        ),
    ],
)
def test_a_moment_is_written_as_in_a_column_of_text(text: str) -> None:
    schema = EventSchema(pa.schema([("ts", pa.string())]), "ts")
    times, valid = read_times(pa.chunked_array([[text]]), schema)
    if valid is None or valid[0]:
        assert read_timestamp(text)[0] == times[0]
    else:
        with pytest.raises(UnreadableError, match="is not a timestamp"):
            read_timestamp(text)
