"""The columns of events, and which of them are the time, the type, the key and the order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import pyarrow as pa
import pyarrow.types as pat

from eventcube.errors import InputError, did_you_mean

# The prefix of columns for internal use, which queries and results do not see.
INTERNAL = "__eventcube_"
# The key of schema metadata with the names of a pandas frame's index levels, as JSON.
INDEX = b"eventcube_index"
# The key of schema metadata with the names of the queries that share a result, as JSON; of a pandas frame's `attrs`.
QUERIES = "eventcube_queries"
# With time slices: -1 and 1 mark events borrowed from the slice before or after.
HALO = INTERNAL + "halo"
# The extra column of skipped rows, with the reason.
REASON = "set_aside_reason"
# The reasons for skipping a row.
NO_TIME = "the time is null"
BAD_TIME = "the time cannot be read"
NO_TYPE = "the type is null"
LATE = "late: older than the watermark"
# The column with late rows in the result of a stream.
LATE_ROWS = "late"
# The column with what identifies a match of a stream.
MATCH_ID = "match_id"
# Why the time cannot be a partition's key where it is text, and what helps.
TEXT_TIME = "the time as text, and two texts can be one time"
TEXT_TIME_HINT = "give the events a column of timestamps"
# Decimals of up to this many digits are distinct as floats.
_FLOAT_DIGITS = 15


class Kind(Enum):
    """The kind of a value: which values can be compared with it."""

    INTEGER = "a whole number"
    FLOAT = "a number"
    TEXT = "text"
    BOOLEAN = "true or false"
    TIME = "a time"
    DURATION = "a duration"
    NULL = "null"
    OTHER = "a list, a struct or the like"

    @property
    def numeric(self) -> bool:
        return self in (Kind.INTEGER, Kind.FLOAT)


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The type of the values, also of a dictionary-encoded column."""
    return type_.value_type if pat.is_dictionary(type_) else type_


def kind_of(type_: pa.DataType) -> Kind:
    """The kind of a column's values."""
    type_ = plain_type(type_)
    if pat.is_boolean(type_):
        return Kind.BOOLEAN
    if pat.is_integer(type_) and not pat.is_uint64(type_):
        return Kind.INTEGER
    if pat.is_floating(type_) or pat.is_decimal(type_) or pat.is_uint64(type_):
        return Kind.FLOAT
    if pat.is_string(type_) or pat.is_large_string(type_) or pat.is_string_view(type_):
        return Kind.TEXT
    if pat.is_timestamp(type_) or pat.is_date(type_):
        return Kind.TIME
    if pat.is_duration(type_):
        return Kind.DURATION
    if pat.is_null(type_):
        return Kind.NULL
    return Kind.OTHER


def is_long(type_: pa.DataType) -> bool:
    """Whether a column can hold numbers that floats would round."""
    type_ = plain_type(type_)
    if pat.is_decimal(type_):
        return bool(type_.precision > _FLOAT_DIGITS or type_.scale < 0)
    return bool(pat.is_uint64(type_))


class TypedColumns(Protocol):
    """Columns to compute values from: those of events, or those of groups."""

    @property
    def columns(self) -> pa.Schema: ...

    @property
    def time(self) -> str: ...

    @property
    def time_unit(self) -> str: ...

    @property
    def time_is_text(self) -> bool: ...

    def kind(self, name: str) -> Kind: ...


@dataclass(frozen=True, slots=True)
class GroupColumns:
    """The columns of groups, none of which is the time."""

    columns: pa.Schema
    time: str = ""
    time_unit: str = "us"
    time_is_text: bool = False

    def kind(self, name: str) -> Kind:
        """The kind of a column."""
        return kind_of(self.columns.field(name).type)


@dataclass(frozen=True, slots=True)
class EventSchema:
    """The columns of events and their roles.

    `type` is None where events have no type column; `partition_by` and `order_by` may be empty.
    """

    columns: pa.Schema
    time: str
    type: str | None = None
    partition_by: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    time_unit: str = "us"

    def __post_init__(self) -> None:
        duplicates = sorted({n for n in self.columns.names if self.columns.names.count(n) > 1})
        if duplicates:
            raise InputError(f"column {duplicates[0]!r} occurs twice", code="EC301", hint="rename one of the two")
        if REASON in self.columns.names:
            raise InputError(
                f"column {REASON!r} is reserved for the reason why a row is skipped",
                code="EC316",
                hint="drop it, or rename it",
            )
        for role, name in [
            ("time", self.time),
            *([("type", self.type)] if self.type is not None else []),
            *[("partition_by", n) for n in self.partition_by],
            *[("order_by", n) for n in self.order_by],
        ]:
            if name not in self.columns.names:
                hint = _index_hint(name, role, self.columns) or did_you_mean(name, self.columns.names, "the input")
                times = [f.name for f in self.columns if pat.is_timestamp(f.type)]
                if role == "time" and len(times) == 1 and hint and hint.startswith("the input has"):
                    hint = f"name the column of the time: time={times[0]!r} (--time {times[0]}); {hint}"
                raise InputError(f"no column {name!r} for {role}", code="EC302", hint=hint)
        if self.kind(self.time) not in (Kind.TIME, Kind.INTEGER, Kind.TEXT, Kind.NULL):
            raise InputError(
                f"column {self.time!r} cannot be the time: it is {self.columns.field(self.time).type}",
                code="EC303",
                hint="use a timestamp, a whole number (see time_unit) or ISO text such as 2024-01-31 12:00:00",
            )
        if self.type is not None and self.kind(self.type) not in (Kind.TEXT, Kind.NULL):
            raise InputError(
                f"column {self.type!r} cannot be the type: it is {self.columns.field(self.type).type}, not text",
                code="EC304",
                hint="cast it to text, or leave the type column out and let every event be every component",
            )
        for name in (*self.partition_by, *self.order_by):
            if self.kind(name) is Kind.OTHER:
                raise InputError(
                    f"column {name!r} cannot be sorted by: it is {self.columns.field(name).type}", code="EC305"
                )
        if self.time in self.partition_by and self.time_is_text:
            raise InputError(
                f"column {self.time!r} cannot be partitioned by: it is {TEXT_TIME}", code="EC305", hint=TEXT_TIME_HINT
            )

    def kind(self, name: str) -> Kind:
        """The kind of a column; the time column is a time even if it is text."""
        return Kind.TIME if name == self.time and self.time_is_text else kind_of(self.columns.field(name).type)

    @property
    def time_is_text(self) -> bool:
        """Whether times have to be read from text."""
        return kind_of(self.columns.field(self.time).type) is Kind.TEXT

    @property
    def visible(self) -> pa.Schema:
        """The columns that queries and results see."""
        return pa.schema([f for f in self.columns if not f.name.startswith(INTERNAL)])

    @property
    def time_type(self) -> pa.DataType:
        """The type of `start` and `end`: that of the time column, or a timestamp if it is text or a date."""
        stored = plain_type(self.columns.field(self.time).type)
        return stored if pat.is_timestamp(stored) or pat.is_integer(stored) else pa.timestamp("us")


def _index_hint(name: str, role: str, columns: pa.Schema) -> str | None:
    """A hint for a missing column that is in the index of a pandas frame; None if it is not."""
    names = json.loads((columns.metadata or {}).get(INDEX, b"[]"))
    if name in names:
        return f"{name!r} is in the index of the frame: give frame.reset_index()"
    if role == "time" and "" in names:
        return f"the index of the frame holds times: give frame.reset_index(names={name!r})"
    return None


_PLAIN = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def plain_layout(columns: pa.Schema) -> pa.Schema:
    """The columns without view and run-end encoded types, which Arrow cannot take rows of."""
    if not any(t in _PLAIN or pat.is_run_end_encoded(t) for t in columns.types):
        return columns
    types = [f.type.value_type if pat.is_run_end_encoded(f.type) else f.type for f in columns]
    return pa.schema([f.with_type(_PLAIN.get(t, t)) for f, t in zip(columns, types, strict=True)])


def check_names(columns: Iterable[str], whose: str) -> None:
    """Refuse columns with the prefix of internal ones."""
    for name in columns:
        if name.casefold().startswith(INTERNAL):
            raise InputError(
                f"{whose} a column {name!r}, but names that begin with {INTERNAL!r} are kept for eventcube's own",
                code="EC317",
                hint="give it another name",
            )


def names(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """One column name, several, or none, as a tuple."""
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)
