"""Time zones: of columns, by name or offset, and the instants of local times."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from eventcube.language.syntax import Attribute, Value
from eventcube.language.tree import attributes
from eventcube.schema import Kind, TypedColumns, plain_type

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d\d?)(?::?(\d\d)(?::?(\d\d))?)?")


def is_counted(name: str, schema: TypedColumns) -> bool:
    """Whether a column is the time column as whole numbers, which count from 1970 in UTC."""
    return name == schema.time and schema.kind(name) is Kind.INTEGER


def column_zone(name: str, schema: TypedColumns) -> str | None:
    """The zone of a time column; None if it has none."""
    if is_counted(name, schema):
        return "UTC"
    type_ = plain_type(schema.columns.field(name).type)
    return str(type_.tz) if pat.is_timestamp(type_) and type_.tz else None


def time_column(value: Value, schema: TypedColumns) -> Attribute | None:
    """The first time column in a value."""
    return next((a for a in attributes(value) if _is_time(a.name, schema)), None)


def _is_time(name: str, schema: TypedColumns) -> bool:
    return name in schema.columns.names and schema.kind(name) is Kind.TIME


@cache
def read_zone(name: str) -> tzinfo | None:
    """The zone of that name, or of an offset such as +05:30; None if there is no such zone."""
    if name.upper() in ("Z", "UTC"):
        return UTC
    if offset := _OFFSET.fullmatch(name):
        sign, hours, minutes, seconds = offset.groups(default="0")
        length = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
        return timezone(-length if sign == "-" else length) if length < timedelta(days=1) else None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def instant(microseconds: int, zone: tzinfo) -> int:
    """The instant of a local time in the zone, both in microseconds since 1970.

    A local time that is skipped is moved on by the gap; one that comes twice is the first of the two.

    >>> berlin = ZoneInfo("Europe/Berlin")
    >>> skipped = datetime(2024, 3, 31, 2, 30)
    >>> _EPOCH + timedelta(microseconds=instant((skipped - _EPOCH) // _MICROSECOND, berlin))
    datetime.datetime(2024, 3, 31, 1, 30)
    """
    offset = zone.utcoffset(_EPOCH + timedelta(microseconds=microseconds)) or timedelta()
    return microseconds - offset // _MICROSECOND


def known_zone(zone: str) -> str | None:
    """The zone as Arrow names it, None for an unknown one.

    >>> known_zone("Europe/Oslo"), known_zone("GMT+3"), known_zone("Z"), known_zone("Mars")
    ('Europe/Oslo', '+03:00', 'UTC', None)
    """
    if offset := _OFFSET.fullmatch(zone):
        zone = f"{offset[1]}{int(offset[2]):02}:{offset[3] or '00'}"
    elif zone == "Z":
        zone = "UTC"
    try:
        pc.local_timestamp(pa.array([0], pa.timestamp("us", zone)))
    except pa.ArrowInvalid:
        return None
    return zone
