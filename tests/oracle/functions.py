"""What functions and LIKE come to, one value at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any
from zoneinfo import ZoneInfo

from eventcube.language.syntax import Attribute, Value
from eventcube.nodes import children

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def called(function: str, values: list[Any], zone: ZoneInfo | None) -> Any:
    """A function of values, None standing for null; `zone` is that of its first argument."""
    if function == "COALESCE":
        known = next((v for v in values if v is not None), None)
        # Whole numbers among floats are floats.
        return float(known) if known is not None and any(isinstance(v, float) for v in values) else known
    if None in values:
        return None
    first = values[0]
    match function:
        case "ABS":
            return abs(first)
        case "ROUND":
            return _rounded(first, values[1] if len(values) > 1 else 0)
        case "LOWER":
            return first.lower()
        case "UPPER":
            return first.upper()
        case "LENGTH":
            return len(first)
    return _clock(function, _EPOCH + math.floor(first) * _MICROSECOND, zone)


def _rounded(number: int | float, digits: int) -> int | float:
    if isinstance(number, float) and math.isinf(number):
        return number
    if isinstance(number, int) and digits >= 0:
        return number
    exact = Decimal(repr(number)).quantize(Decimal(1).scaleb(-digits), context=Context(500, ROUND_HALF_UP))
    return type(number)(exact)


def _clock(function: str, instant: datetime, zone: ZoneInfo | None) -> int:
    local = instant.astimezone(zone or UTC)
    match function:
        case "YEAR":
            return local.year
        case "MONTH":
            return local.month
        case "DAY":
            return local.day
        case "HOUR":
            return local.hour
        case "MINUTE":
            return local.minute
        case "WEEKDAY":
            return local.isoweekday()
        case "DATE":
            midnight = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
            return (midnight.astimezone(UTC) - _EPOCH) // _MICROSECOND
    raise ValueError(f"unknown function {function!r}")


def zone_of(value: Value, zones: Mapping[str, str | None]) -> ZoneInfo | None:
    """The zone of the first time among the attributes of a value; `zones` has the times, each with its zone."""
    waiting: list[object] = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Attribute) and node.name in zones:
            zone = zones[node.name]
            return None if zone is None else ZoneInfo(zone)
        waiting += reversed(list(children(node)))
    return None


def fits(text: str, pattern: str, escape: str) -> bool:
    """Whether a text fits a pattern of LIKE, character by character."""
    if not pattern:
        return not text
    head, rest = pattern[0], pattern[1:]
    if head == escape:
        return text[:1] == rest[0] and fits(text[1:], rest[1:], escape)
    if head == "%":
        return any(fits(text[i:], rest, escape) for i in range(len(text) + 1))
    return bool(text) and head in ("_", text[0]) and fits(text[1:], rest, escape)
