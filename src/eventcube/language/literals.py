"""Constants: reads and writes numbers, texts, durations and timestamps."""

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
_CALENDAR = ("month", "months", "quarter", "quarters", "year", "years")

_UNIT_NAMES = ("microseconds", "milliseconds", "seconds", "minutes", "hours", "days", "weeks")
_LARGEST = 2**63 - 1
# The magnitude of the smallest int64: it fits 64 bits only with a minus sign.
MIN_INT64_MAGNITUDE = 2**63
_MOST_DIGITS = 1000
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d(?::\d\d(?::\d\d(?:\.\d{1,6})?)?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?")
# A timestamp followed by a word, such as the name of a zone.
_NAMED_ZONE = re.compile(r"(.*?)\s*\[?([A-Za-z]{2,}(?:/[A-Za-z_]+)*)\]?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class UnreadableError(ValueError):
    """A constant that cannot be read: an error code, what is wrong, and a hint."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


def is_unit(word: str) -> bool:
    """Whether the word is a unit of time or events."""
    return word.lower() in UNITS or word.lower() in EVENT_UNITS


def read_number(written: str) -> int | float:
    """The number, an int if it has neither a point nor an exponent."""
    if written.isdigit():
        if len(written) > 30 or int(written) > _LARGEST:
            raise too_large()
        return int(written)
    number = float(written)
    if math.isinf(number):
        raise UnreadableError("EC111", "this number is too large", "the largest number is about 1.8e308")
    return number


def is_min_int64_magnitude(written: str) -> bool:
    """Whether the number is 2**63, the magnitude of the smallest int64."""
    return written.isdigit() and len(written) <= 30 and int(written) == MIN_INT64_MAGNITUDE


def too_large() -> UnreadableError:
    """The error for a whole number that does not fit 64 bits."""
    return UnreadableError(
        "EC111", "this number is too large", f"whole numbers go from {-MIN_INT64_MAGNITUDE} to {_LARGEST}"
    )


def write_number(number: int | float) -> str:
    """The number as written in a query; raises ValueError for nan and infinities."""
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
    """The exact number of microseconds of an amount of units."""
    scale = UNITS.get(unit.lower())
    if scale is None and unit.lower() in _CALENDAR:
        hint = "write 30 days or 365 days, or compare the times themselves"
        raise UnreadableError("EC109", f"a {unit.lower().removesuffix('s')} has no fixed length", hint)
    if scale is None:
        raise UnreadableError("EC109", f"unknown unit of time '{unit}'", did_you_mean(unit, _UNIT_NAMES))
    rough = float(amount) * scale
    # Use exact arithmetic only near the range: on 1e-999999999 it would never end.
    if rough > 2 * _LARGEST:
        return check_duration(2 * _LARGEST)
    if len(amount) > _MOST_DIGITS:
        raise UnreadableError("EC111", "this number has too many digits", "time is counted in whole microseconds")
    exact = Fraction(amount) * scale if rough > 1e-6 else Fraction(rough)
    if exact.denominator != 1:
        raise UnreadableError(
            "EC111", "this duration is finer than a microsecond", "time is counted in whole microseconds"
        )
    return check_duration(int(exact))


def check_duration(microseconds: int) -> int:
    """The duration itself; raises UnreadableError if it does not fit 64 bits."""
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
    for unit in reversed(_UNIT_NAMES):
        amount, rest = divmod(rest, UNITS[unit])
        if amount:
            parts.append(f"{amount} {unit if amount > 1 else unit.removesuffix('s')}")
    return ("-" if microseconds < 0 else "") + " ".join(parts)


def read_timestamp(text: str) -> tuple[int, bool]:
    """The microseconds since 1970 of a timestamp text, and whether it has a zone.

    With a zone they are in UTC, without one in local time.
    """
    try:
        if not _TIMESTAMP.fullmatch(text.strip()):
            raise ValueError
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        hint = timestamp_hint(text) or "write TIMESTAMP '2024-01-31 12:00:00' or '2024-01-31T12:00:00+02:00'"
        raise UnreadableError("EC112", f"'{text}' is not a timestamp", hint) from None
    zoned = moment.tzinfo is not None
    return ((moment if zoned else moment.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1), zoned


def timestamp_hint(text: str) -> str | None:
    """The hint for a text that is a timestamp followed by a word; None for other text.

    >>> timestamp_hint("2024-01-31 12:00 Europe/Berlin"), timestamp_hint("noon")
    ("write the offset from UTC, not the name of a zone: '2024-01-31 12:00+01:00', for example", None)
    """
    found = _NAMED_ZONE.fullmatch(text.strip())
    if found is None or not _TIMESTAMP.fullmatch(found[1]):
        return None
    if found[2].upper() in ("AM", "PM"):
        return "hours go from 00 to 23, without AM or PM"
    clock = found[1] if ":" in found[1] else f"{found[1][:10]} 12:00"
    return f"write the offset from UTC, not the name of a zone: '{clock}+01:00', for example"


def write_timestamp(microseconds: int, zoned: bool) -> str:
    """The timestamp as `TIMESTAMP '2024-01-31 12:00:00'`, or as `TIMESTAMP '2024-01-31 12:00:00Z'` if it has a zone."""
    zone = "Z" if zoned else ""
    try:
        moment = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        # Just outside the years 1 to 9999 in UTC, but inside them in another zone.
        sign = -1 if microseconds > 0 else 1
        moment = _EPOCH + (timedelta(microseconds=microseconds) + sign * timedelta(hours=23, minutes=59))
        zone = f"{'-' if sign < 0 else '+'}23:59"
    return f"TIMESTAMP '{moment.replace(tzinfo=None).isoformat(sep=' ')}{zone}'"
