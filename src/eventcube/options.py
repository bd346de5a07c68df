"""The settings of a run, the same for every way of running."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from numbers import Integral
from pathlib import PurePath
from typing import Any

import pyarrow as pa

from eventcube.errors import OptionError
from eventcube.language.literals import UNITS
from eventcube.schema import EventSchema, check_names, names

NANOSECONDS = "ns"
# What whole numbers in the time column can count.
UNITS_IN_MICROSECONDS = {
    NANOSECONDS: Fraction(1, 1000),
    "us": Fraction(1),
    "ms": Fraction(1_000),
    "s": Fraction(1_000_000),
}


AUTO, ITERATIVE, REWRITE = "auto", "iterative", "rewrite"


@dataclass(frozen=True, slots=True)
class StrategyChoice:
    """The strategy for all nested parts, and others for parts named by a variable in them."""

    default: str = AUTO
    parts: Mapping[str, str] = field(default_factory=dict)

    def of(self, variables: Iterable[str]) -> str:
        """The strategy of the part with these variables."""
        return next((self.parts[v] for v in variables if v in self.parts), self.default)


@dataclass(frozen=True, slots=True)
class Options:
    """How events are read and queries are run; made once, never changed."""

    time: str = "ts"
    type: str | None = None
    partition_by: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    lateness: int = 0
    time_unit: str = "us"
    strategy: StrategyChoice = field(default_factory=StrategyChoice)
    limit: int | None = None

    def schema(self, columns: pa.Schema, *, internal: bool = False) -> EventSchema:
        """The schema of events with these columns, checked; `internal`: a runner has added columns of its own."""
        if not internal:
            check_names(columns.names, "the events have")
        return EventSchema(columns, self.time, self.type, self.partition_by, self.order_by, self.time_unit)


def options(
    *,
    time: str = "ts",
    type: str | None = None,
    partition_by: str | Sequence[str] | None = None,
    order_by: str | Sequence[str] | None = None,
    lateness: int | str | timedelta = 0,
    time_unit: str = "us",
    strategy: str | Mapping[str, str] | StrategyChoice = AUTO,
    limit: int | None = None,
) -> Options:
    """Options from what a user writes: one name or several, `"5 seconds"` or a timedelta."""
    for name, value in (("time", time), ("time_unit", time_unit)):
        if not isinstance(value, str):
            raise invalid_argument(name, value, "a text")
    if type is not None and not isinstance(type, str):
        raise invalid_argument("type", type, "the name of a column, or None")
    if time_unit not in UNITS_IN_MICROSECONDS:
        raise OptionError(
            f"unknown time_unit {time_unit!r}", code="EC401", hint=f"one of {', '.join(UNITS_IN_MICROSECONDS)}"
        )
    if limit is not None:
        if not is_whole(limit):
            raise invalid_argument("limit", limit, "a whole number, or None")
        if limit < 1:
            raise OptionError(f"limit must be at least 1, not {limit}", code="EC402")
    key, order = _column_names("partition_by", partition_by), _column_names("order_by", order_by)
    return Options(time, type, key, order, microseconds(lateness), time_unit, strategy_choice(strategy), limit)


def strategy_choice(strategy: str | Mapping[str, str] | StrategyChoice) -> StrategyChoice:
    """Strategies as a user writes them: one for all nested parts, or by a variable of each part."""
    if isinstance(strategy, StrategyChoice):
        return strategy
    if isinstance(strategy, Mapping):
        if all(isinstance(text, str) for pair in strategy.items() for text in pair):
            return StrategyChoice(parts=dict(strategy))
    elif isinstance(strategy, str):
        return StrategyChoice(strategy)
    raise invalid_argument("strategy", strategy, "the name of a strategy, or names by a variable of each nested part")


def _column_names(setting: str, value: Any) -> tuple[str, ...]:
    listed = isinstance(value, Sequence) and not isinstance(value, bytes | bytearray)
    if value is not None and not (listed and all(isinstance(name, str) for name in value)):
        raise invalid_argument(setting, value, "the name of a column, or a list of names")
    return names(value)


def invalid_argument(setting: str, value: object, expected: str) -> OptionError:
    """The error that a setting, or an argument, is of another kind than it has to be."""
    shown = reprlib.repr(value)
    named = isinstance(value, PurePath) and "quer" in setting
    text = f"; Path({str(value)!r}).read_text() is that of a file" if named else ""
    return OptionError(f"{setting} cannot be {shown}", code="EC414", hint=f"give {expected}{text}")


def is_whole(value: object) -> bool:
    """Whether a value is a whole number, of Python or of NumPy."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def microseconds(value: int | str | timedelta) -> int:
    """A length of time in microseconds: a number of them, a timedelta, or text such as `1 hour 30 min`.

    >>> microseconds("1 hour 30 min")
    5400000000
    """
    if isinstance(value, timedelta):
        value = value // timedelta(microseconds=1)
    if isinstance(value, str):
        value = _read(value)
    if not is_whole(value):
        raise OptionError(
            f"cannot read the length of time {value!r}", code="EC403", hint="write, say, '5 seconds', or a timedelta"
        )
    if value < 0:
        raise OptionError("a length of time cannot be negative", code="EC403")
    return int(value)


def _read(text: str) -> int:
    parts = re.findall(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*", text)
    whole = "".join(re.sub(r"\s", "", n + u) for n, u in parts)
    if not parts or whole != re.sub(r"\s", "", text) or any(u.lower() not in UNITS for _, u in parts):
        raise OptionError(f"cannot read the length of time {text!r}", code="EC403", hint="write, say, '5 seconds'")
    return sum(round(float(n) * UNITS[u.lower()]) for n, u in parts)
