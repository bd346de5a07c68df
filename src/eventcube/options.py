"""The settings of a run, shared by all interfaces: their meaning, and the options read from them."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from numbers import Integral
from os import PathLike
from pathlib import PurePath
from typing import Annotated, Any, TypedDict, Unpack

import pyarrow as pa

from eventcube.concepts.concepts import Concepts
from eventcube.errors import OptionError
from eventcube.language.literals import UNITS
from eventcube.schema import EventSchema, check_names, names
from eventcube.settings import Setting, settings_of, takes_settings

NANOSECONDS = "ns"
# Units of whole numbers in the time column.
UNITS_IN_MICROSECONDS = {
    NANOSECONDS: Fraction(1, 1000),
    "us": Fraction(1),
    "ms": Fraction(1_000),
    "s": Fraction(1_000_000),
}


AUTO, ITERATIVE, REWRITE = "auto", "iterative", "rewrite"
# How sequences of events are searched, beside auto.
SASE, FLA, PRC = "sase", "fla", "prc"
# How aggregates are computed, beside auto.
ENUMERATE = "enumerate"
# How several queries share work.
INDEPENDENT, TOP_DOWN, BOTTOM_UP, CHASE = "independent", "top-down", "bottom-up", "chase"
SHARINGS = (AUTO, INDEPENDENT, TOP_DOWN, BOTTOM_UP, CHASE)


@dataclass(frozen=True, slots=True)
class StrategyChoice:
    """The strategy of nested parts: a default, and strategies of single parts by a variable in them."""

    default: str = AUTO
    parts: Mapping[str, str] = field(default_factory=dict)

    def of(self, variables: Iterable[str]) -> str:
        """The strategy of the part with these variables."""
        return next((self.parts[v] for v in variables if v in self.parts), self.default)


class RowSettings(TypedDict, total=False):
    """Settings that say how rows are read as events."""

    time: Annotated[str, Setting("ts", "The column that holds the time.", "the name of a column")]
    type: Annotated[
        str | None,
        Setting(
            None,
            "The column that holds the type; without one, every event fits every component.",
            "the name of a column, or None",
        ),
    ]
    time_unit: Annotated[
        str,
        Setting("us", "The unit of whole numbers in the time column.", f"one of {', '.join(UNITS_IN_MICROSECONDS)}"),
    ]


class MeaningSettings(RowSettings, total=False):
    """Settings that say what a query means."""

    partition_by: Annotated[
        str | Sequence[str] | None,
        Setting(
            None,
            "Columns that all events of a match share, as PARTITION BY in the query.",
            "the name of a column, or a list of names",
        ),
    ]
    order_by: Annotated[
        str | Sequence[str] | None,
        Setting(None, "Columns that order events of the same time.", "the name of a column, or a list of names"),
    ]
    concepts: Annotated[
        Concepts | Mapping[str, Any] | str | PathLike[str] | None,
        Setting(
            None,
            "The hierarchy of types: a type in a query stands for those below it, too.",
            "a mapping of each concept to the types below it, an ec.Concepts, or the path of a YAML or JSON file",
        ),
    ]


class MatchSettings(MeaningSettings, total=False):
    """Settings of queries over a whole table."""

    strategy: Annotated[
        str | Mapping[str, str],
        Setting(
            AUTO,
            "How nested parts are answered: iterative, rewrite, aggressive (= object), semantic, passive or balanced, "
            "or auto for the cheapest.",
            "the name of a strategy, or names by a variable of each nested part",
        ),
    ]
    flat_strategy: Annotated[
        str,
        Setting(
            AUTO,
            "How a sequence of events is searched: sase (event by event, from the one that makes a match due), fla "
            "(events with the same link at once), prc (from partial matches kept between batches), or auto for the "
            "cheapest.",
            "the name of a flat strategy",
        ),
    ]
    sharing: Annotated[
        str,
        Setting(
            AUTO,
            "How several queries share work: independent (each by itself), top-down (from coarser queries), bottom-up "
            "(from finer ones), chase (from whichever costs least), or auto, which today is the same as chase.",
            f"one of {', '.join(SHARINGS)}",
        ),
    ]
    aggregates: Annotated[
        str,
        Setting(
            AUTO,
            "How AGG is computed: auto counts and adds up without making the matches where it can, enumerate makes "
            "them all.",
            f"{AUTO} or {ENUMERATE}",
        ),
    ]
    limit: Annotated[
        int | None, Setting(None, "The maximum number of matches; the earliest are kept.", "a whole number, or None")
    ]


class Settings(MatchSettings, total=False):
    """Settings of queries over a table or a stream of events."""

    lateness: Annotated[
        int | str | timedelta,
        Setting(
            0,
            "In a stream, how far behind the latest event others may come; those further behind are skipped.",
            "a duration such as '5 seconds', a timedelta, or microseconds",
        ),
    ]


class StreamSettings(Settings, total=False):
    """All settings: those of queries over a table, or a stream of Spark."""

    idle_timeout: Annotated[
        int | str | timedelta | None,
        Setting(
            None,
            "In a stream of Spark whose events are live: how far the watermark may be behind the clock, beside the "
            "lateness; an event that is read later than that is late, as in a backlog that is read piece by piece.",
            "a duration such as '1 minute', a timedelta, or microseconds, or None for never",
        ),
    ]
    keep_late: Annotated[
        bool,
        Setting(
            False,
            "In a stream of Spark: also give the late rows, in a column `late`, for `ec.late_rows`.",
            "True or False",
        ),
    ]
    match_id: Annotated[
        bool,
        Setting(
            False,
            "In a stream of Spark: also give a column `match_id`, the same for a match whenever it is written again.",
            "True or False",
        ),
    ]
    until: Annotated[
        int | str | datetime | None,
        Setting(
            None,
            "Over a table: only the matches that a stream gives up to this watermark, which decides what is final.",
            "a time such as '2026-01-31 12:00', a datetime, microseconds since 1970, or None for all matches",
        ),
    ]


SETTINGS = settings_of(StreamSettings)
# Those that say what a query means.
MEANING_SETTINGS = tuple(settings_of(MeaningSettings))


@dataclass(frozen=True, slots=True)
class Options:
    """Settings after reading and checking by `options`; immutable."""

    time: str
    type: str | None
    time_unit: str
    partition_by: tuple[str, ...]
    order_by: tuple[str, ...]
    concepts: Concepts | None
    strategy: StrategyChoice
    flat_strategy: str
    sharing: str
    aggregates: str
    limit: int | None
    lateness: int
    idle_timeout: int | None = None
    keep_late: bool = False
    match_id: bool = False
    until: int | str | datetime | None = None

    def schema(self, columns: pa.Schema, *, internal: bool = False) -> EventSchema:
        """The schema of events with these columns, checked; `internal` allows columns for internal use."""
        if not internal:
            check_names(columns.names, "the events have")
        return EventSchema(columns, self.time, self.type, self.partition_by, self.order_by, self.time_unit)


@takes_settings
def options(**settings: Unpack[StreamSettings]) -> Options:
    """The options from settings as a user writes them; missing ones have their defaults."""
    values: dict[str, Any] = {name: setting.default for name, setting in SETTINGS.items()} | {**settings}
    return Options(
        time=_text("time", values["time"]),
        type=None if values["type"] is None else _text("type", values["type"]),
        time_unit=_time_unit(values["time_unit"]),
        partition_by=_column_names("partition_by", values["partition_by"]),
        order_by=_column_names("order_by", values["order_by"]),
        concepts=_concepts(values["concepts"]),
        strategy=_strategy_choice(values["strategy"]),
        flat_strategy=_text("flat_strategy", values["flat_strategy"]),
        sharing=_sharing(values["sharing"]),
        aggregates=_aggregates(values["aggregates"]),
        limit=_limit(values["limit"]),
        lateness=microseconds(values["lateness"]),
        idle_timeout=None if values["idle_timeout"] is None else microseconds(values["idle_timeout"]),
        keep_late=_is_true("keep_late", values["keep_late"]),
        match_id=_is_true("match_id", values["match_id"]),
        until=values["until"],
    )


def _text(setting: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _invalid_setting(setting, value)
    return value


def _is_true(setting: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _invalid_setting(setting, value)
    return value


def _time_unit(value: Any) -> str:
    unit = _text("time_unit", value)
    if unit not in UNITS_IN_MICROSECONDS:
        raise OptionError(f"unknown time_unit {unit!r}", code="EC401", hint=SETTINGS["time_unit"].accepts)
    return unit


def _column_names(setting: str, value: Any) -> tuple[str, ...]:
    listed = isinstance(value, Sequence) and not isinstance(value, bytes | bytearray)
    if value is not None and not (listed and all(isinstance(name, str) for name in value)):
        raise _invalid_setting(setting, value)
    return names(value)


def _concepts(value: Any) -> Concepts | None:
    if isinstance(value, Mapping):
        return Concepts(value)
    if isinstance(value, str | PathLike):
        return Concepts.from_file(value)
    if value is not None and not isinstance(value, Concepts):
        raise _invalid_setting("concepts", value)
    return value


def _strategy_choice(value: Any) -> StrategyChoice:
    if isinstance(value, Mapping):
        if all(isinstance(text, str) for pair in value.items() for text in pair):
            return StrategyChoice(parts=dict(value))
    elif isinstance(value, str):
        return StrategyChoice(value)
    raise _invalid_setting("strategy", value)


def _sharing(value: Any) -> str:
    if _text("sharing", value) not in SHARINGS:
        raise OptionError(f"unknown sharing {value!r}", code="EC401", hint=SETTINGS["sharing"].accepts)
    return str(value)


def _aggregates(value: Any) -> str:
    if _text("aggregates", value) not in (AUTO, ENUMERATE):
        raise OptionError(
            f"unknown way to compute aggregates: {value!r}", code="EC401", hint=SETTINGS["aggregates"].accepts
        )
    return str(value)


def _limit(value: Any) -> int | None:
    if value is None:
        return None
    if not is_whole(value):
        raise _invalid_setting("limit", value)
    if value < 1:
        raise OptionError(f"limit must be at least 1, not {value}", code="EC402")
    return int(value)


def _invalid_setting(setting: str, value: object) -> OptionError:
    return invalid_argument(setting, value, SETTINGS[setting].accepts)


def invalid_argument(setting: str, value: object, expected: str) -> OptionError:
    """The error for a setting or argument of a wrong type."""
    shown = reprlib.repr(value)
    is_query_path = isinstance(value, PurePath) and "quer" in setting
    advice = f"; Path({str(value)!r}).read_text() is that of a file" if is_query_path else ""
    return OptionError(f"{setting} cannot be {shown}", code="EC414", hint=f"give {expected}{advice}")


def is_whole(value: object) -> bool:
    """Whether a value is a whole number, of Python or of NumPy."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def microseconds(value: int | str | timedelta) -> int:
    """A duration in microseconds, from a number of them, a timedelta, or text such as `1 hour 30 min`.

    >>> microseconds("1 hour 30 min")
    5400000000
    """
    if isinstance(value, timedelta):
        value = value // timedelta(microseconds=1)
    if isinstance(value, str):
        value = _read(value)
    if not is_whole(value):
        raise OptionError(
            f"cannot read the duration {value!r}", code="EC403", hint="write, say, '5 seconds', or a timedelta"
        )
    if value < 0:
        raise OptionError("a duration cannot be negative", code="EC403")
    return int(value)


def _read(text: str) -> int:
    parts = re.findall(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*", text)
    joined = "".join(re.sub(r"\s", "", n + u) for n, u in parts)
    if not parts or joined != re.sub(r"\s", "", text) or any(u.lower() not in UNITS for _, u in parts):
        raise OptionError(f"cannot read the duration {text!r}", code="EC403", hint="write, say, '5 seconds'")
    return sum(round(float(n) * UNITS[u.lower()]) for n, u in parts)
