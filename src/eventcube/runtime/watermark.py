"""Watermarks as users give them: datetimes, or microseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

import pyarrow as pa

from eventcube.language.literals import UnreadableError, read_timestamp
from eventcube.options import UNITS_IN_MICROSECONDS, invalid_argument, is_whole
from eventcube.plan.zones import column_zone, instant, read_zone
from eventcube.schema import EventSchema

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The largest usable time, in microseconds before or after 1970.
_MAX_TIME = 2**62


def moment_of(micros: int, schema: EventSchema) -> datetime | int:
    """A time in microseconds as events have it: a datetime, or a number in the unit of whole numbers, rounded up.

    A time that no datetime can be stays a number of microseconds.
    """
    type_ = schema.columns.field(schema.time).type
    if pa.types.is_integer(type_):
        return ceil(micros / UNITS_IN_MICROSECONDS[schema.time_unit])
    zone = type_.tz if pa.types.is_timestamp(type_) else "UTC"
    try:
        moment: datetime = pa.scalar(micros, pa.timestamp("us", zone)).as_py()
    except OverflowError:
        return micros
    return moment


def microseconds_of(watermark: Any, schema: EventSchema | None) -> int:
    """A watermark in microseconds; a time without a zone is in that of the time column, if it has one."""
    # NaT of pandas is a datetime that does not equal itself.
    if isinstance(watermark, datetime) and watermark == watermark:
        zoned = watermark.tzinfo is not None
        micros = (watermark - (_EPOCH if zoned else _EPOCH.replace(tzinfo=None))) // timedelta(microseconds=1)
    elif isinstance(watermark, str):
        try:
            micros, zoned = read_timestamp(watermark)
        except UnreadableError:
            raise invalid_argument("a watermark", watermark, "a time such as '2024-01-31 12:00:00'") from None
    elif is_whole(watermark):
        return max(-_MAX_TIME, min(_MAX_TIME, int(watermark)))
    else:
        raise invalid_argument("a watermark", watermark, "microseconds since 1970, a datetime, or its text")
    zone = None if zoned or schema is None else column_zone(schema.time, schema)
    return micros if zone is None else _instant(micros, zone, watermark)


def _instant(micros: int, zone: str, watermark: Any) -> int:
    known = read_zone(zone)
    if known is None:
        raise invalid_argument(
            "a watermark", watermark, f"a datetime with a zone: that of the time column, {zone}, is not known"
        )
    return instant(micros, known)
