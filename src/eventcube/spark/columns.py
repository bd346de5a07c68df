"""Columns of Spark DataFrames: their Arrow schema, quoted names, and times in microseconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows it by
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type
from pyspark.sql.types import DataType, DateType, IntegralType, StructType, TimestampNTZType, TimestampType

from eventcube.engine.time_text import MOMENT
from eventcube.errors import InputError
from eventcube.options import NANOSECONDS, UNITS_IN_MICROSECONDS

ZONE_SETTING = "spark.sql.session.timeZone"
# Times beyond this are not usable: adding a window to them could overflow.
EXTREME = 2**62
_DAY = 86_400_000_000
# Text that the engine reads as a time; blanks are those of Python.
_BLANKS = r"[\s\x1c-\x1f\p{IsWhite_Space}]*"
_TEXT = rf"\A{_BLANKS}{MOMENT}{_BLANKS}\z"
_UTC = {"UTC", "GMT", "Z", "ETC/UTC", "ETC/GMT", "+00:00", "ZULU", "UNIVERSAL"}


def column(name: str) -> Column:
    """The column of that name, whatever characters it has."""
    return F.col(quoted(name))


def quoted(name: str) -> str:
    """The name as SQL takes it."""
    return "`" + name.replace("`", "``") + "`"


def session_zone(frame: DataFrame) -> str:
    """The session's time zone, which timestamps have in Arrow."""
    return frame.sparkSession.conf.get(ZONE_SETTING) or "UTC"


def arrow_schema(frame: DataFrame | StructType) -> pa.Schema:
    """The Arrow schema of a frame or of its schema (then in UTC); types without an Arrow type are `Unreadable`."""
    fields, zone = (frame, "UTC") if isinstance(frame, StructType) else (frame.schema, session_zone(frame))
    return pa.schema([pa.field(f.name, _arrow_type(f.dataType, zone), f.nullable) for f in fields])


class Unreadable(pa.ExtensionType):  # type: ignore[misc]
    """The placeholder for a Spark type without an Arrow type."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        super().__init__(pa.binary(), "eventcube.unreadable")

    def __arrow_ext_serialize__(self) -> bytes:
        return self.name.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Unreadable:
        return cls(serialized.decode())

    def __str__(self) -> str:
        return self.name


def _arrow_type(type_: DataType, zone: str) -> pa.DataType:
    try:
        return to_arrow_type(type_, timezone=zone)
    except PySparkTypeError:
        return Unreadable(type_.simpleString())


def check_unambiguous(frame: DataFrame, needed: list[str]) -> None:
    """Refuse needed columns that Spark cannot tell from another, as it ignores case."""
    for name in needed:
        same = [c for c in frame.columns if c.lower() == name.lower()]
        if len(same) > 1 and frame.sparkSession.conf.get("spark.sql.caseSensitive") != "true":
            raise InputError(
                f"Spark takes the columns {' and '.join(map(repr, same))} for the same",
                code="EC301",
                hint="rename one, or set spark.sql.caseSensitive to true",
            )


def check_readable(schema: pa.Schema, needed: list[str]) -> None:
    """Refuse needed columns without an Arrow type."""
    for name in needed:
        type_ = schema.field(name).type
        if isinstance(type_, Unreadable):
            raise InputError(
                f"column {name!r} of type {type_} cannot be handed to Python",
                code="EC308",
                hint="drop or cast it before matching, or RETURN only what is needed",
            )


def microseconds(frame: DataFrame, time: str, unit: str) -> Column | None:
    """The time in microseconds, null where it cannot be used; None for text, which only the engine reads."""
    type_ = frame.schema[time].dataType
    times = column(time)
    if isinstance(type_, IntegralType):
        whole = times.cast("bigint")
        if unit == NANOSECONDS:
            # Rounded down, also before 1970.
            down = F.when(whole > F.lit(1000 - 2**63), whole - F.pmod(whole, F.lit(1000)))
            return F.call_function("div", down, F.lit(1000))
        factor = int(UNITS_IN_MICROSECONDS[unit])
        bound = EXTREME // factor
        return F.when((whole > -bound) & (whole < bound), whole * F.lit(factor))
    if isinstance(type_, DateType):
        return F.unix_date(times).cast("bigint") * F.lit(_DAY)
    if isinstance(type_, TimestampType):
        return _not_extreme(F.unix_micros(times))
    if isinstance(type_, TimestampNTZType):
        return _not_extreme(_wall_clock(frame, times))
    return None


def unreadable(frame: DataFrame, time: str, unit: str) -> Column:
    """For each row, whether it has a time that cannot be read."""
    times = column(time)
    micros = microseconds(frame, time, unit)
    if micros is not None:
        return times.isNotNull() & micros.isNull()
    return times.isNotNull() & ~times.cast("string").rlike(_TEXT)


def _wall_clock(frame: DataFrame, times: Column) -> Column:
    """A time without a zone, read as UTC whatever the session's zone is."""
    if not is_connect(frame) and session_zone(frame).upper() in _UTC:
        return F.unix_micros(times.cast("timestamp"))
    # A cast would shift times, and merge some where clocks change.
    seconds = F.expr("CAST(0 AS BIGINT)")
    for part, length in ((F.hour(times), 3_600_000_000), (F.minute(times), 60_000_000)):
        seconds = seconds + part.cast("bigint") * F.lit(length)
    fraction = (F.extract(F.lit("SECOND"), times) * F.lit(1_000_000)).cast("bigint")
    return F.unix_date(times.cast("date")).cast("bigint") * F.lit(_DAY) + seconds + fraction


def _not_extreme(micros: Column) -> Column:
    return F.when((micros > -EXTREME) & (micros < EXTREME), micros)


def is_connect(frame: Any) -> bool:
    """Whether a frame or session belongs to Spark Connect, which has no JVM in this process."""
    return type(frame).__module__.startswith("pyspark.sql.connect")


Batches = Iterator[pa.RecordBatch]


def map_batches(frame: DataFrame, function: Callable[[Batches], Batches], result: pa.Schema) -> DataFrame:
    """The frame mapped by a function of each partition's batches."""
    names = list(frame.columns)
    odd = any("." in name or "`" in name for name in names)

    def eventcube(batches: Batches) -> Batches:
        return function(batch.rename_columns(names) for batch in batches) if odd else function(batches)

    # mapInArrow would split such names at the dots.
    plain = frame.toDF(*(f"c{i}" for i in range(len(names)))) if odd else frame
    return plain.mapInArrow(eventcube, from_arrow_schema(result))
