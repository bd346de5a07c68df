"""Constants: how numbers, texts, durations and moments are read from a query and written to it."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from eventcube.errors import did_you_mean

_SECOND = 1_000_000
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_WEEK = 7 * _DAY

UNITS = {
    **dict.fromkeys(("us", "microsecond", "microseconds"), 1),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1_000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), _SECOND),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), _MINUTE),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), _HOUR),
    **dict.fromkeys(("d", "day", "days"), _DAY),
    **dict.fromkeys(("w", "week", "weeks"), _WEEK),
}
EVENT_UNITS = ("event", "events")

_SPOKEN_UNITS = ("microseconds", "milliseconds", "seconds", "minutes", "hours", "days", "weeks")
_LARGEST = 2**63 - 1
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d(?::\d\d(?::\d\d(?:\.\d{1,6})?)?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class UnreadableError(ValueError):
    """A constant that cannot be read: an error code, what is wrong, and a hint."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


def is_unit(word: str) -> bool:
    """Whether the word measures time or counts events."""
    return word.lower() in UNITS or word.lower() in EVENT_UNITS


def read_number(written: str) -> int | float:
    """The number, an int if it has neither a point nor an exponent."""
    if written.isdigit():
        if len(written) > 30 or int(written) > _LARGEST:
            raise UnreadableError("EC111", "this number is too large", f"the largest whole number is {_LARGEST}")
        return int(written)
    number = float(written)
    if math.isinf(number):
        raise UnreadableError("EC111", "this number is too large", "the largest number is about 1.8e308")
    return number


def write_number(number: int | float) -> str:
    """The number as it stands in a query; nan and the infinities have no such form."""
    if isinstance(number, float) and not math.isfinite(number):
        raise ValueError(f"{number} cannot be written in a query")
    return repr(number)


def read_text(written: str) -> str:
    """The text between the quotes, doubled quotes made single."""
    quote = written[0]
    return written[1:-1].replace(quote * 2, quote)


def write_text(text: str) -> str:
    """The text in single quotes."""
    return "'" + text.replace("'", "''") + "'"


def read_duration(amount: str, unit: str) -> int:
    """Microseconds in so many units, exactly."""
    scale = UNITS.get(unit.lower())
    if scale is None:
        raise UnreadableError("EC109", f"unknown unit of time '{unit}'", did_you_mean(unit, _SPOKEN_UNITS))
    rough = float(amount) * scale
    # Exact arithmetic only on what is near the range: on 1e-999999999 it would never end.
    if rough > 2 * _LARGEST:
        return check_duration(2 * _LARGEST)
    exact = Fraction(amount) * scale if rough > 1e-6 else Fraction(rough)
    if exact.denominator != 1:
        raise UnreadableError("EC111", "a duration finer than a microsecond", "time is counted in whole microseconds")
    return check_duration(int(exact))


def check_duration(microseconds: int) -> int:
    """The duration itself, if it is not too long to be counted in 64 bits."""
    if microseconds > _LARGEST:
        raise UnreadableError("EC111", "this duration is too long", f"the longest is about {_LARGEST // _WEEK} weeks")
    return microseconds


def write_duration(microseconds: int) -> str:
    """The duration in the largest units that fit, as `1 hour 30 minutes`.

    >>> write_duration(5_400_000_000), write_duration(2_500_000), write_duration(0)
    ('1 hour 30 minutes', '2 seconds 500 milliseconds', '0 seconds')
    """
    if microseconds == 0:
        return "0 seconds"
    parts, rest = [], abs(microseconds)
    for unit in reversed(_SPOKEN_UNITS):
        amount, rest = divmod(rest, UNITS[unit])
        if amount:
            parts.append(f"{amount} {unit if amount > 1 else unit.removesuffix('s')}")
    return ("-" if microseconds < 0 else "") + " ".join(parts)


def read_timestamp(text: str) -> int:
    """Microseconds since 1970 UTC of a moment, written as in a column of text; one without a zone is in UTC."""
    try:
        if not _MOMENT.fullmatch(text.strip()):
            raise ValueError
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise UnreadableError(
            "EC112", f"'{text}' is not a moment", "write TIMESTAMP '2024-01-31 12:00:00' or '2024-01-31T12:00:00+02:00'"
        ) from None
    return (moment - _EPOCH) // timedelta(microseconds=1)


def write_timestamp(microseconds: int) -> str:
    """The moment as `TIMESTAMP '2024-01-31 12:00:00'`, in UTC."""
    moment = (_EPOCH + timedelta(microseconds=microseconds)).replace(tzinfo=None)
    return f"TIMESTAMP '{moment.isoformat(sep=' ')}'"
