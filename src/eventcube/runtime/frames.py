"""Conversion of events and results between Arrow, pandas and polars."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable
from itertools import chain, islice
from os import PathLike
from pathlib import PurePath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventcube.errors import InputError
from eventcube.schema import INDEX, QUERIES, plain_layout

_READERS = {
    ".csv": "pandas.read_csv({})",
    ".json": "pandas.read_json({}, lines=True)",
    ".jsonl": "pandas.read_json({}, lines=True)",
}


def is_spark(events: Any) -> bool:
    """Whether events are a Spark DataFrame, without importing Spark."""
    return type(events).__module__.startswith("pyspark.sql.")


def is_stream(events: Any) -> bool:
    """Whether events are a streaming DataFrame of Spark."""
    return is_spark(events) and getattr(events, "isStreaming", False) is True


def _is_pandas_on_spark(events: Any) -> bool:
    """Whether events are a frame of `pyspark.pandas`, whose Arrow interface would collect all of it."""
    return any(kind.__module__.startswith("pyspark.pandas.") for kind in type(events).__mro__)


def to_arrow(events: Any) -> pa.Table:
    """Events as an Arrow table."""
    try:
        return _with_plain_layout(_as_table(events))
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InputError(
            f"cannot read events: {', '.join(map(str, error.args))}",
            code="EC307",
            hint="give each column a name of its own and values of one plain type, as with frame.astype",
        ) from None


def _with_plain_layout(table: pa.Table) -> pa.Table:
    columns = plain_layout(table.schema)
    if columns.equals(table.schema):
        return table
    for i, field in enumerate(table.schema):
        if pa.types.is_run_end_encoded(field.type):
            decoded = [pc.run_end_decode(chunk) for chunk in table.column(i).chunks]
            table = table.set_column(i, field.name, pa.chunked_array(decoded, field.type.value_type))
    return table.cast(columns)


def _as_table(events: Any) -> pa.Table:
    if _is_pandas_on_spark(events):
        raise InputError(
            "pandas-on-Spark frames are not read as they are",
            code="EC307",
            hint="give frame.to_spark(); .pandas_api() turns the result back",
        )
    if is_spark(events):
        raise InputError(
            "a runtime runs in this process, and a DataFrame of Spark does not",
            code="EC307",
            hint="ec.match and Cube.match take it; or give frame.toArrow(), if it fits into memory",
        )
    if isinstance(events, pa.Table):
        return events
    if isinstance(events, pa.RecordBatch):
        return pa.Table.from_batches([events])
    module = type(events).__module__.split(".")[0]
    if module == "pandas" and type(events).__name__.endswith("Frame"):
        table = pa.Table.from_pandas(events, preserve_index=False)
        names = {QUERIES: json.dumps(events.attrs[QUERIES])} if QUERIES in events.attrs else {}
        return table.replace_schema_metadata({**(table.schema.metadata or {}), INDEX: _index_names(events), **names})
    if module == "polars" and type(events).__name__.endswith("Frame"):
        return events.collect().to_arrow() if hasattr(events, "collect") else events.to_arrow()
    if hasattr(events, "__arrow_c_stream__"):
        return pa.table(events)
    if isinstance(events, str | PathLike):
        reader = _READERS.get(PurePath(events).suffix.lower(), "pandas.read_parquet({})")
        raise InputError(
            f"the name of a file is not read: {reprlib.repr(str(events))}",
            code="EC307",
            hint=f"read it first, as with {reader.format(repr(str(events)))}; eventcube run, on the command line, does",
        )
    raise InputError(
        f"cannot read events from {type(events).__module__}.{type(events).__qualname__}",
        code="EC307",
        hint="give a Spark DataFrame, an Arrow table, or a pandas or polars frame",
    )


def as_frame(columns: Any) -> Any:
    """A frame without rows, for the schema of polars or the dtypes of pandas; anything else as it is."""
    kind = f"{type(columns).__module__.split('.')[0]}.{type(columns).__name__}"
    if kind == "polars.Schema":
        import polars as pl

        return pl.DataFrame(schema=columns)
    if kind == "pandas.Series":
        import pandas as pd

        return pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in columns.items()})
    return columns


def _index_names(frame: Any) -> str:
    """The names of a pandas frame's index levels, as JSON; "" for unnamed times."""
    levels = [frame.index.get_level_values(i) for i in range(frame.index.nlevels)]
    return json.dumps([str(i.name or "") for i in levels if i.name is not None or i.dtype.kind == "M"])


def _set_times(rows: Iterable[Any], array: pa.Array) -> None:
    """Restore the times and durations of struct fields that pandas turned into whole numbers (nanoseconds)."""
    type_ = array.type
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        if pa.types.is_nested(type_.value_type):
            _set_times(chain.from_iterable(row for row in rows if row is not None), array.flatten())
        return
    if not pa.types.is_struct(type_):
        return
    rows = list(rows)
    for field, inner in zip(type_, array.flatten(), strict=True):
        if pa.types.is_nested(field.type):
            _set_times([None if row is None else row[field.name] for row in rows], inner)
        elif (pa.types.is_timestamp(field.type) or pa.types.is_duration(field.type)) and field.type.unit == "ns":
            times = inner.to_pandas().astype(object)
            for row, time, valid in zip(rows, times, inner.is_valid(), strict=True):
                if row is not None and valid:
                    row[field.name] = time


def query_names(schema: pa.Schema) -> list[str]:
    """The names of the queries that share a result with these columns, as far as they are known."""
    names: list[str] = json.loads((schema.metadata or {}).get(QUERIES.encode(), b"[]"))
    return names


def from_arrow(table: pa.Table, like: Any) -> Any:
    """A result as the kind of frame that the events were."""
    module = type(like).__module__.split(".")[0]
    if module == "pandas":
        frame = table.to_pandas()
        if query_names(table.schema):
            frame.attrs[QUERIES] = query_names(table.schema)
        for name, column in zip(table.column_names, table.columns, strict=True):
            if pa.types.is_nested(column.type):
                rows = iter(frame[name])
                for chunk in column.chunks:
                    _set_times(islice(rows, len(chunk)), chunk)
        return frame
    if module == "polars":
        import polars as pl

        frame = pl.DataFrame(table)
        return frame.lazy() if hasattr(like, "collect") else frame
    return table
