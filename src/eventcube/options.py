"""The settings of a run, the same for every way of running."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import pyarrow as pa

from eventcube.errors import OptionError
from eventcube.schema import EventSchema, names

UNITS_IN_MICROSECONDS = {"us": 1, "ms": 1_000, "s": 1_000_000}


AUTO, ITERATIVE = "auto", "iterative"


@dataclass(frozen=True, slots=True)
class Ways:
    """The strategy for all nested parts, and others for parts named by a variable in them."""

    default: str = AUTO
    parts: Mapping[str, str] = field(default_factory=dict)

    def of(self, variables: Iterable[str]) -> str:
        """The strategy of the part with these variables."""
        return next((self.parts[v] for v in sorted(variables) if v in self.parts), self.default)


@dataclass(frozen=True, slots=True)
class Options:
    """How events are read and queries are run; made once, never changed."""

    time: str = "ts"
    type: str | None = None
    partition_by: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    lateness: int = 0
    time_unit: str = "us"
    strategy: Ways = field(default_factory=Ways)
    limit: int | None = None

    def schema(self, columns: pa.Schema) -> EventSchema:
        """The schema of events with these columns, checked."""
        return EventSchema(columns, self.time, self.type, self.partition_by, self.order_by, self.time_unit)


def options(
    *,
    time: str = "ts",
    type: str | None = None,
    partition_by: str | Sequence[str] | None = None,
    order_by: str | Sequence[str] | None = None,
    lateness: int | str | timedelta = 0,
    time_unit: str = "us",
    strategy: str | Mapping[str, str] | Ways = AUTO,
    limit: int | None = None,
) -> Options:
    """Options from what a user writes: one name or several, `"5 seconds"` or a timedelta."""
    if time_unit not in UNITS_IN_MICROSECONDS:
        raise OptionError(
            f"unknown time_unit {time_unit!r}", code="EC401", hint=f"one of {', '.join(UNITS_IN_MICROSECONDS)}"
        )
    if limit is not None and limit < 1:
        raise OptionError(f"limit must be at least 1, not {limit}", code="EC402")
    return Options(
        time, type, names(partition_by), names(order_by), microseconds(lateness), time_unit, ways(strategy), limit
    )


def ways(strategy: str | Mapping[str, str] | Ways) -> Ways:
    """Strategies as a user writes them: one for all nested parts, or by a variable of each part."""
    if isinstance(strategy, Ways):
        return strategy
    return Ways(strategy) if isinstance(strategy, str) else Ways(parts=dict(strategy))


_UNIT = {
    **dict.fromkeys(("us", "microsecond", "microseconds"), 1),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1_000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000_000),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60_000_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000_000),
}


def microseconds(value: int | str | timedelta) -> int:
    """A length of time in microseconds: a number of them, a timedelta, or text such as `1 hour 30 min`.

    >>> microseconds("1 hour 30 min")
    5400000000
    """
    if isinstance(value, timedelta):
        value = value // timedelta(microseconds=1)
    if isinstance(value, str):
        parts = re.findall(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*", value)
        whole = "".join(re.sub(r"\s", "", n + u) for n, u in parts)
        if not parts or whole != re.sub(r"\s", "", value) or any(u.lower() not in _UNIT for _, u in parts):
            raise OptionError(f"cannot read the length of time {value!r}", code="EC403", hint="write, say, '5 seconds'")
        value = sum(round(float(n) * _UNIT[u.lower()]) for n, u in parts)
    if value < 0:
        raise OptionError("a length of time cannot be negative", code="EC403")
    return value
