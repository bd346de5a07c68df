"""The rows of a DataFrame that `match` cannot use, each with the reason."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from eventcube.options import Options
from eventcube.runtime.read_columns import read_times
from eventcube.schema import BAD_TIME, NO_TIME, NO_TYPE, REASON, EventSchema
from eventcube.spark.columns import arrow_schema, check_readable, column, map_batches, microseconds
from eventcube.spark.workers import check_workers


def skipped_rows(events: DataFrame, options: Options) -> DataFrame:
    """The rows without a readable time or without a type, with the reason in an extra column."""
    schema = options.schema(arrow_schema(events))
    micros = microseconds(events, schema.time, schema.time_unit)
    if micros is None:
        return _read_by_engine(events, schema)
    reason = F.when(column(schema.time).isNull(), NO_TIME).when(micros.isNull(), BAD_TIME)
    if schema.type is not None:
        reason = reason.when(column(schema.type).isNull(), NO_TYPE)
    return events.withColumn(REASON, reason).where(F.col(REASON).isNotNull())


def _read_by_engine(events: DataFrame, schema: EventSchema) -> DataFrame:
    """Times in text are read by the engine, as Spark would read them differently."""
    check_workers(events.sparkSession)
    check_readable(schema.columns, events.columns)
    result = schema.columns.append(pa.field(REASON, pa.string()))

    def unusable_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            times = batch.column(schema.time)
            _, valid = read_times(pa.chunked_array([times]), schema)
            no_time = np.asarray(times.is_null())
            no_type = np.zeros(len(no_time), np.bool_)
            if schema.type is not None:
                no_type = np.asarray(batch.column(schema.type).is_null())
            unreadable = np.zeros(len(no_time), np.bool_) if valid is None else ~valid
            index = np.flatnonzero(unreadable | no_type)
            if len(index):
                reasons = np.where(no_time, NO_TIME, np.where(unreadable, BAD_TIME, NO_TYPE))[index]
                yield batch.take(pa.array(index)).append_column(REASON, pa.array(reasons.tolist(), pa.string()))

    return map_batches(events, unusable_rows, result)
