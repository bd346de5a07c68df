"""Moments of a query in the zones of the columns they stand against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from eventcube.language.syntax import Arithmetic, Attribute, Call, Duration, Literal, Minus, Timestamp, Value
from tests.oracle.event import Event

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR = 3_600_000_000
DAY = 24 * HOUR
_MONDAY = (datetime(2000, 1, 3, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)

Bound = Mapping[str, Event]


def beside(values: Sequence[Value], bound: Bound, around: Attribute | None = None) -> list[Value]:
    """Values that are compared or computed with each other, their moments counted in UTC.

    A moment without a zone is in that of the first column of times among the values beside it, else in that of
    `around`; where there is none, or it has no zone, it is taken as it stands. Text beside a time is a moment.
    """
    read = []
    for i, value in enumerate(values):
        others = [other for k, other in enumerate(values) if k != i]
        column = next((c for other in others for c in _time_columns(other, bound)), around)
        text = isinstance(value, Literal) and isinstance(value.value, str)
        if text and any(_is_time(other, bound) for other in others):
            value = _moment(str(value.value))
        read.append(_read(value, bound, column))
    return read


def _read(value: Value, bound: Bound, column: Attribute | None) -> Value:
    match value:
        case Timestamp(microseconds=us, zoned=False):
            zone = None if column is None else _zones(bound)[column.name]
            return value if zone is None else Timestamp(first_instant(us, zone), zoned=True)
        case Arithmetic(op=op, left=left, right=right):
            return Arithmetic(op, *beside([left, right], bound, column))
        case Minus(value=inner):
            return Minus(_read(inner, bound, column))
        case Call(function=function, arguments=arguments):
            return Call(function, tuple(beside(arguments, bound, column)))
    return value


def bucket_start(instant: int, length: int, zone: str | None) -> int:
    """When the bucket of so many microseconds begins that an instant lies in.

    Buckets follow each other from a Monday on, as clocks show it. In a zone those of up to an hour that divide it are
    cut from the hour that is; others begin when clocks first show their start, or the first time after it.
    """
    shown = instant if zone is None else instant + offset_at(instant, zone)
    into = (shown - _MONDAY) % length
    if zone is None or HOUR % length == 0:
        return instant - into
    return first_at_least(shown - into, zone)


def first_at_least(shown: int, zone: str) -> int:
    """When clocks of a zone first show a time, or the first one after it where they skip it."""
    offsets = [offset_at(shown + shift, zone) for shift in (-2 * DAY, 2 * DAY)]
    showing = [shown - offset for offset in offsets if offset_at(shown - offset, zone) == offset]
    if showing:
        return min(showing)
    # The end of the gap, by bisection: before it the clock is behind, from then on ahead.
    low, high = shown - max(offsets), shown - min(offsets)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if middle + offset_at(middle, zone) >= shown else (middle, high)
    return high


def first_instant(shown: int, zone: str) -> int:
    """When clocks of a zone first show a time.

    Where they skip it, it is when clocks that had not been changed would show it.
    """
    before, after = (offset_at(shown + shift, zone) for shift in (-2 * DAY, 2 * DAY))
    showing = [shown - offset for offset in (before, after) if offset_at(shown - offset, zone) == offset]
    return min(showing, default=shown - before)


def offset_at(instant: int, zone: str) -> int:
    """By how much the clocks of a zone are ahead of UTC at an instant, in microseconds."""
    there = (EPOCH + timedelta(microseconds=instant)).astimezone(ZoneInfo(zone))
    return (there.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1) - instant


def _moment(text: str) -> Timestamp:
    moment = datetime.fromisoformat(text)
    zoned = moment.tzinfo is not None
    return Timestamp(((moment if zoned else moment.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1), zoned)


def _time_columns(value: Value, bound: Bound) -> Iterator[Attribute]:
    match value:
        case Attribute(name=name) if name in _zones(bound):
            yield value
        case Call(arguments=arguments):
            for argument in arguments:
                yield from _time_columns(argument, bound)
        case Arithmetic(left=left, right=right):
            yield from _time_columns(left, bound)
            yield from _time_columns(right, bound)
        case Minus(value=inner):
            yield from _time_columns(inner, bound)


def _zones(bound: Bound) -> Mapping[str, str | None]:
    """The columns of times and their zones, the same for all events."""
    return next((event.zones for event in bound.values()), {})


def _is_time(value: Value, bound: Bound) -> bool:
    match value:
        case Attribute(name=name):
            return name in _zones(bound)
        case Call(function="DATE"):
            return True
        case Call(function="COALESCE", arguments=arguments):
            return any(_is_time(argument, bound) for argument in arguments)
        case Arithmetic(op="+" | "-", left=left, right=Duration()):
            return _is_time(left, bound)
    return isinstance(value, Timestamp)
