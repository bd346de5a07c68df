"""The rows of a DataFrame that `match` cannot use, each with the reason."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from eventcube.options import Options
from eventcube.runtime.ingest import read_times
from eventcube.schema import BAD_TIME, NO_TIME, NO_TYPE, REASON, EventSchema
from eventcube.spark.columns import arrow_schema, check_readable, column, map_batches, microseconds
from eventcube.spark.workers import check_workers


def set_aside_rows(events: DataFrame, options: Options) -> DataFrame:
    """The rows without a time that can be read or without a type, with the reason in an extra column."""
    schema = options.schema(arrow_schema(events))
    micros = microseconds(events, schema.time, schema.time_unit)
    if micros is None:
        return _read_by_engine(events, schema)
    reason = F.when(column(schema.time).isNull(), NO_TIME).when(micros.isNull(), BAD_TIME)
    if schema.type is not None:
        reason = reason.when(column(schema.type).isNull(), NO_TYPE)
    return events.withColumn(REASON, reason).where(F.col(REASON).isNotNull())


def _read_by_engine(events: DataFrame, schema: EventSchema) -> DataFrame:
    """Only the engine can say which text is a time."""
    check_workers(events.sparkSession)
    check_readable(schema.columns, events.columns)
    result = schema.columns.append(pa.field(REASON, pa.string()))

    def pick(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            times = batch.column(schema.time)
            _, valid = read_times(pa.chunked_array([times]), schema)
            null = np.asarray(times.is_null())
            typeless = np.zeros(len(null), np.bool_)
            if schema.type is not None:
                typeless = np.asarray(batch.column(schema.type).is_null())
            bad = np.zeros(len(null), np.bool_) if valid is None else ~valid
            index = np.flatnonzero(bad | typeless)
            if len(index):
                reasons = np.where(null, NO_TIME, np.where(bad, BAD_TIME, NO_TYPE))[index]
                yield batch.take(pa.array(index)).append_column(REASON, pa.array(reasons.tolist(), pa.string()))

    return map_batches(events, pick, result)
