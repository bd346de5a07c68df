"""Answers of Spark, the engine and the oracle in one form, so that they can be compared."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession


def to_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The table as a frame with its types."""
    return spark.createDataFrame(table)


def rows_of(found: DataFrame | pa.Table) -> Counter[Any]:
    """The rows as a multiset; NaN equals NaN."""
    table = found if isinstance(found, pa.Table) else found.toArrow()
    return Counter(map(_plain, table.to_pylist()))


def list_of(found: pa.Table) -> list[Any]:
    """The rows in their order; NaN equals NaN."""
    return list(map(_plain, found.to_pylist()))


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return tuple((k, _plain(v)) for k, v in value.items())
        case list():
            return tuple(map(_plain, value))
        case float() if math.isnan(value):
            return "nan"
        case _:
            return value
