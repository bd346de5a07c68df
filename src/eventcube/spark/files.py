"""Reads events from files, and hands results on: to folders in parallel, or to the driver as Arrow batches."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, DataType, DayTimeIntervalType, MapType, StructType

from eventcube.spark.columns import arrow_schema, quoted

CORRUPT = "_corrupt_record"
_WRITE = {
    "escape": '"',
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
# Quotes inside quotes are doubled. A row that does not fit is a mistake, and seen only if all of it is read.
_CSV = {"header": "true", "escape": '"', "mode": "FAILFAST"}


def read_files(
    session: SparkSession,
    paths: Sequence[str],
    format_: str,
    columns: pa.Schema | None = None,
    nanoseconds: Iterable[str] = (),
) -> DataFrame:
    """Events from Parquet, CSV with a header, or JSON lines; types of text are found in all rows unless given.

    Spark reads no times in nanoseconds, which pandas writes: the columns named are read as numbers and turned into
    times. A line that is not JSON becomes a row of nulls, with the line itself in `_corrupt_record`.
    """
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
            return _read_parquet(session, paths, nanoseconds)


def _read_parquet(session: SparkSession, paths: Sequence[str], nanoseconds: Iterable[str]) -> DataFrame:
    in_nanoseconds = tuple(nanoseconds)
    if in_nanoseconds:
        session.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
    events = session.read.parquet(*paths)
    for name in in_nanoseconds:
        micros = f.expr(f"timestamp_micros({quoted(name)} div 1000)")
        events = events.withColumn(name, micros)
    return events


@contextmanager
def _zoneless_times(session: SparkSession) -> Iterator[None]:
    """Let Spark find times without a zone, which it would otherwise take to be in the session's."""
    setting = "spark.sql.timestampType"
    before = session.conf.get(setting)
    session.conf.set(setting, "TIMESTAMP_NTZ")
    try:
        yield
    finally:
        session.conf.set(setting, before or "TIMESTAMP_LTZ")


def first_rows(frame: DataFrame, order: Sequence[str], most: int) -> tuple[pa.Table, int]:
    """The first rows in an order, and the number of all, in one job."""
    seen = Observation()
    watched = frame.observe(seen, f.count(f.lit(1)).alias("rows"))
    rows = watched.orderBy(*(quoted(n) for n in order)).limit(most).toArrow()
    return rows, int(seen.get["rows"])


def collect_batches(frame: DataFrame) -> Generator[pa.RecordBatch]:
    """All rows at the driver, a batch at a time; computed in parallel and kept on the executors' disks meanwhile."""
    schema = arrow_schema(frame)
    packed = frame.mapInArrow(_pack, "batch binary").persist(StorageLevel.DISK_ONLY)
    try:
        packed.count()
        for row in packed.toLocalIterator():
            for batch in pa.ipc.open_stream(row["batch"]):
                yield batch.cast(schema) if batch.schema != schema else batch
    finally:
        packed.unpersist()


def _pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()], pa.binary())], ["batch"])


def write_folder(frame: DataFrame, path: str, format_: str) -> int:
    """Write all rows into a folder, a file for each task, and give their number."""
    seen = Observation()
    watched = frame.observe(seen, f.count(f.lit(1)).alias("rows"))
    match format_:
        case "parquet":
            watched.write.mode("overwrite").parquet(path)
        case "csv":
            watched.select(*_flat(frame)).write.mode("overwrite").options(header="true", **_WRITE).csv(path)
        case _:
            watched.select(*_plain(frame)).write.mode("overwrite").options(**_WRITE).json(path)
    return int(seen.get["rows"])


def _flat(frame: DataFrame) -> list[Column]:
    """Columns as CSV can hold them: an event's as `r.id`, `r.room`, …; lengths of time in seconds."""
    columns: list[Column] = []
    for field in frame.schema:
        if isinstance(field.dataType, StructType):
            columns += [
                _text_ready(f"{quoted(field.name)}.{quoted(inner.name)}", inner.dataType, f"{field.name}.{inner.name}")
                for inner in field.dataType
            ]
        else:
            columns.append(_text_ready(quoted(field.name), field.dataType, field.name))
    return columns


def _plain(frame: DataFrame) -> list[Column]:
    """Columns as JSON should hold them: lengths of time in seconds."""
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
