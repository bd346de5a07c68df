"""Reads events from files into Arrow, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from eventcube.cli.csv_input import csv_columns, in_microseconds, read_options
from eventcube.cli.inputs import Inputs
from eventcube.cli.json_input import read_json
from eventcube.cli.parquet_times import ParquetTimes, parquet_times
from eventcube.cli.read_errors import plain_read_errors
from eventcube.errors import InputError

FOOTERS_CHECKED = 1000
# Times of 96 bits have a wider range than nanoseconds in 64 bits.
_PARQUET = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))


def input_schema(inputs: Inputs, time: str = "ts") -> pa.Schema:
    """The columns of the events; CSV and JSON are read to find their types."""
    if inputs.format == "jsonl":
        return read_events(inputs).schema
    return _event_schema(_dataset(inputs).schema, inputs, time)


def read_events(inputs: Inputs, time: str = "ts") -> pa.Table:
    """All events of the files; times with a zone are in the zone of the time column."""
    _refuse_remote(inputs)
    with plain_read_errors(inputs.files, inputs.format):
        if inputs.format == "jsonl":
            return read_json(_with_content(inputs))
        table = _dataset(inputs).to_table()
    # Arrow infers the unit of times in text from their digits; results should not depend on that.
    return _cast(table, _event_schema(table.schema, inputs, time))


def scan_events(inputs: Inputs, columns: list[str], time: str = "ts") -> Iterator[pa.Table]:
    """The events of the files with some of their columns; Parquet is read in batches."""
    if inputs.format != "parquet":
        yield read_events(inputs).select(columns)
        return
    dataset = _dataset(inputs)
    schema = _event_schema(dataset.schema, inputs, time)
    with plain_read_errors(inputs.files, inputs.format):
        for batch in dataset.to_batches(columns=columns):
            yield _cast(pa.Table.from_batches([batch]), pa.schema([schema.field(name) for name in columns]))


def _cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    for i, field in enumerate(schema):
        if table.schema.field(i).type != field.type:
            table = table.set_column(i, field.name, table.column(i).cast(field.type, safe=False))
    return table


def text_columns(inputs: Inputs, observe: Callable[[pa.RecordBatch], None] | None = None) -> pa.Schema | None:
    """The columns of local CSV files, for Spark to read; None for all other input.

    `observe` is called with all rows, as text.
    """
    if inputs.format != "csv" or inputs.remote:
        return None
    with plain_read_errors(inputs.files, inputs.format):
        columns = csv_columns(_with_content(inputs), observe)
        return pa.schema([f.with_type(in_microseconds(f.type)) for f in columns])


def _event_schema(columns: pa.Schema, inputs: Inputs, time: str) -> pa.Schema:
    """The columns with the types that events have in queries and results."""
    if inputs.format != "parquet":
        return pa.schema([f.with_type(in_microseconds(f.type)) for f in columns])
    times = parquet_times(_with_content(inputs)[:1], time)
    return pa.schema([f.with_type(times.event_type(f)) for f in columns])


def _refuse_remote(inputs: Inputs) -> None:
    if inputs.remote:
        raise InputError(
            f"{inputs.shown} can be read only on Spark", code="EC325", hint="leave out --no-spark, or copy it here"
        )
    refuse_empty(inputs)


def _dataset(inputs: Inputs) -> ds.Dataset:
    _refuse_remote(inputs)
    with plain_read_errors(inputs.files, inputs.format):
        files = _with_content(inputs)
        if inputs.format == "parquet":
            return ds.dataset(files, format=_PARQUET, partitioning="hive")
        format_ = ds.CsvFileFormat(convert_options=read_options(csv_columns(files)))
        return ds.dataset(files, format=format_, partitioning="hive")


def _with_content(inputs: Inputs) -> list[str]:
    """The files that are not empty; others have no header and no events."""
    return [file for file in inputs.files if Path(file).stat().st_size]


def check_parquet(inputs: Inputs, time: str) -> ParquetTimes:
    """The times of Parquet files; refuses files that are not Parquet."""
    if inputs.format != "parquet" or inputs.remote:
        return ParquetTimes()
    return parquet_times(_with_content(inputs)[:FOOTERS_CHECKED], time)


def refuse_empty(inputs: Inputs) -> None:
    """Refuse files that are all empty."""
    with plain_read_errors(inputs.files, inputs.format):
        if inputs.files and not inputs.remote and not any(Path(f).stat().st_size for f in inputs.files):
            raise InputError(f"{inputs.shown} is empty", code="EC327", hint="not even the columns are known")
