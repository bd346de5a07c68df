"""Reads events from files, and writes results: to folders in parallel, or to the driver as Arrow batches."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from eventcube.errors import InputError
from eventcube.plan.event_columns import plain_columns, struct_columns
from eventcube.schema import INTERNAL
from eventcube.spark.columns import ZONE_SETTING, arrow_schema, column, quoted
from eventcube.spark.wide import selected

CORRUPT = "_corrupt_record"
# The same for files with a given schema, under a name that events do not have.
_UNREAD = INTERNAL + "unread"
# How values are written as text.
WRITTEN = {
    "escape": '"',
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
# Quotes inside quotes are doubled. Malformed rows are errors, which Spark detects only without column pruning.
# Reads times in nanoseconds as numbers.
_NANOSECONDS = "spark.sql.legacy.parquet.nanosAsLong"
_CSV = {"header": "true", "escape": '"', "mode": "FAILFAST"}


def read_files(
    session: SparkSession,
    paths: Sequence[str],
    format_: str,
    columns: pa.Schema | None = None,
    nanoseconds: Mapping[str, bool] | None = None,
) -> DataFrame:
    """Events from Parquet, CSV with a header, or JSON lines; column types are inferred from all rows unless given.

    Spark cannot read times in nanoseconds, which pandas writes: `nanoseconds` names such columns of Parquet, and
    whether they have a zone. A line that is not JSON becomes a row of nulls, with the line in `_corrupt_record`.
    """
    return _in_microseconds(_read_files(session, paths, format_, columns, nanoseconds or {}), nanoseconds or {})


def stream_schema(
    session: SparkSession,
    paths: Sequence[str],
    format_: str,
    columns: pa.Schema | None = None,
    nanoseconds: Mapping[str, bool] | None = None,
) -> StructType:
    """The columns for `stream_files` to read files with, so that it reads them as `read_files` does."""
    schema = _read_files(session, paths, format_, columns, nanoseconds or {}).schema
    return StructType([field for field in schema if field.name != CORRUPT])


def read_schema(text: str) -> StructType:
    """Columns from Spark's JSON."""
    return StructType.fromJson(json.loads(text))


def read_ddl(columns: str) -> StructType:
    """Columns as in SQL: `ts timestamp, kind string`."""
    try:
        schema = DataType.fromDDL(columns)
    except PySparkException as error:
        raise InputError(
            f"cannot read the columns from {columns!r}: {str(error).strip().splitlines()[0]}",
            code="EC326",
            hint="write a name and a type for each: --columns 'ts timestamp, kind string, price double'",
        ) from None
    return schema if isinstance(schema, StructType) else StructType().add("value", schema)


def stream_files(
    session: SparkSession,
    path: str,
    format_: str,
    schema: StructType,
    nanoseconds: Mapping[str, bool],
    options: Mapping[str, str],
) -> DataFrame:
    """Events from the files at a path, and from those that come there.

    A CSV row that does not fit the schema is an error. A line of JSON that does not becomes a row of nulls, which is
    set aside; values of columns that are not used are not looked at.
    """
    if nanoseconds:
        session.conf.set(_NANOSECONDS, "true")
    reader = session.readStream.schema(schema).options(**options)
    match format_:
        case "csv":
            # Columns are read by their places: a file with others must not be taken for one with these.
            return reader.options(**_CSV, enforceSchema="false").csv(path)
        case "jsonl":
            read = reader.schema(StructType([*schema, StructField(_UNREAD, StringType())]))
            return _whole_rows(read.option("columnNameOfCorruptRecord", _UNREAD).json(path), schema)
        case _:
            return _in_microseconds(reader.parquet(path), nanoseconds)


def _whole_rows(rows: DataFrame, schema: StructType) -> DataFrame:
    """The columns of rows of JSON, all null where one has a value of another type: Spark nulls that value alone."""
    is_read = column(_UNREAD).isNull()
    return rows.select(*[f.when(is_read, column(name)).alias(name) for name in schema.names])


def _read_files(
    session: SparkSession,
    paths: Sequence[str],
    format_: str,
    columns: pa.Schema | None,
    nanoseconds: Mapping[str, bool],
) -> DataFrame:
    match format_:
        case "csv" if columns is not None:
            return session.read.options(**_CSV).schema(from_arrow_schema(columns)).csv(list(paths))
        case "csv":
            with _zoneless_times(session):
                return session.read.options(**_CSV, inferSchema="true", columnPruning="false").csv(list(paths))
        case "jsonl":
            with _zoneless_times(session):
                return session.read.option("inferTimestamp", "true").json(list(paths))
        case _:
            if nanoseconds:
                session.conf.set(_NANOSECONDS, "true")
            return session.read.parquet(*paths)


def _in_microseconds(events: DataFrame, nanoseconds: Mapping[str, bool]) -> DataFrame:
    """The events with times instead of numbers of nanoseconds."""
    for name, zoned in nanoseconds.items():
        nanos = quoted(name)
        micros = f"({nanos} - pmod({nanos}, 1000)) div 1000"
        # A time without a zone must not depend on the session's zone.
        plain = f"timestampadd(MICROSECOND, {micros}, TIMESTAMP_NTZ '1970-01-01 00:00:00')"
        events = events.withColumn(name, f.expr(f"timestamp_micros({micros})" if zoned else plain))
    return events


def use_zone(session: SparkSession, zone: str) -> None:
    """Make this the session's zone, to read times without a zone and to show times."""
    try:
        session.conf.set(ZONE_SETTING, zone)
    except PySparkException:
        raise InputError(
            f"the times are in the zone {zone!r}, which Spark does not know",
            code="EC309",
            hint=f"--conf {ZONE_SETTING}=UTC has them in UTC",
        ) from None


def stored_schema(events: DataFrame) -> pa.Schema | None:
    """The Arrow schema in the metadata of the first Parquet file; None if it has none."""
    session = events.sparkSession
    jvm = session.sparkContext._jvm
    file = next(iter(events.inputFiles()), None)
    if jvm is None or file is None:
        return None
    configuration = session._jsparkSession.sessionState().newHadoopConf()
    path = jvm.org.apache.hadoop.fs.Path(file)
    reader = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(
        jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(path, configuration)
    )
    try:
        encoded = reader.getFooter().getFileMetaData().getKeyValueMetaData().get("ARROW:schema")
    finally:
        reader.close()
    return None if encoded is None else pa.ipc.read_schema(pa.py_buffer(base64.b64decode(encoded)))


@contextmanager
def _zoneless_times(session: SparkSession) -> Iterator[None]:
    """Let Spark infer times without a zone, instead of times in the session's zone."""
    setting = "spark.sql.timestampType"
    before = session.conf.get(setting)
    session.conf.set(setting, "TIMESTAMP_NTZ")
    try:
        yield
    finally:
        session.conf.set(setting, before or "TIMESTAMP_LTZ")


def first_rows(frame: DataFrame, order: Sequence[str], most: int) -> tuple[pa.Table, int]:
    """The first rows in an order, and the number of all rows, in one job."""
    observation = Observation()
    observed = frame.observe(observation, f.count(f.lit(1)).alias("rows"))
    rows = observed.orderBy(*(quoted(n) for n in order)).limit(most).toArrow()
    return rows, int(observation.get["rows"])


@contextmanager
def computed(frame: DataFrame) -> Iterator[Iterator[pa.RecordBatch]]:
    """All rows, computed in parallel and stored on the executors' disks; the block reads them batch by batch."""
    schema = arrow_schema(frame)
    packed = frame.mapInArrow(_pack, "batch binary").persist(StorageLevel.DISK_ONLY)

    def batches() -> Iterator[pa.RecordBatch]:
        for row in packed.toLocalIterator():
            for batch in pa.ipc.open_stream(row["batch"]):
                yield batch.cast(schema) if batch.schema != schema else batch

    try:
        packed.count()
        yield batches()
    except (KeyboardInterrupt, SystemExit):
        # `unpersist` would wait for the running job; ending the JVM clears its disks, too.
        raise
    except BaseException:
        with suppress(Py4JError, OSError):
            packed.unpersist()
        raise
    packed.unpersist()


def _pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()], pa.binary())], ["batch"])


def write_folder(frame: DataFrame, path: str, format_: str) -> int:
    """Write all rows into a folder, a file for each task, and return their number."""
    observation = Observation()
    observed = frame.observe(observation, f.count(f.lit(1)).alias("rows"))
    match format_:
        case "parquet":
            observed.write.mode("overwrite").parquet(path)
        case "csv":
            _csv_frame(observed).write.mode("overwrite").options(header="true", **WRITTEN).csv(path)
        case _:
            observed.select(*json_columns(frame)).write.mode("overwrite").options(**WRITTEN).json(path)
    return int(observation.get["rows"])


def _csv_frame(frame: DataFrame) -> DataFrame:
    """The frame for CSV: an event's columns as `r.id`, `r.room`, …; durations in seconds."""
    schema = arrow_schema(frame)
    plain = frame.select(*selected(plain_columns(schema, struct_columns(schema), ".")))
    return plain.select(*[_text_ready(quoted(x.name), x.dataType, x.name) for x in plain.schema])


def json_columns(frame: DataFrame) -> list[Column]:
    """The columns for JSON: durations in seconds."""
    return [
        _text_ready(quoted(x.name), x.dataType, x.name)
        if isinstance(x.dataType, DayTimeIntervalType)
        else f.col(quoted(x.name))
        for x in frame.schema
    ]


def _text_ready(column: str, type_: DataType, name: str) -> Column:
    if isinstance(type_, DayTimeIntervalType):
        seconds = f"extract(DAY FROM {column}) * 86400D + extract(HOUR FROM {column}) * 3600D"
        return f.expr(f"{seconds} + extract(MINUTE FROM {column}) * 60D + extract(SECOND FROM {column})").alias(name)
    if isinstance(type_, StructType | ArrayType | MapType):
        return f.to_json(f.col(column)).alias(name)
    return f.col(column).alias(name)
