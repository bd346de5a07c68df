"""Reads events from files into Arrow, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from eventcube.cli.csv_input import csv_columns, in_microseconds, read_options
from eventcube.cli.inputs import Inputs
from eventcube.cli.json_input import read_json
from eventcube.cli.readable import readable
from eventcube.cli.stored_times import StoredTimes, stored_times
from eventcube.errors import InputError

FOOTERS_CHECKED = 1000
# Nanoseconds would not hold all that times of 96 bits can be.
_PARQUET = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))


def input_schema(inputs: Inputs, time: str = "ts") -> pa.Schema:
    """The columns of the events, of which only those in Parquet are known without reading them."""
    if inputs.format == "jsonl":
        return read_events(inputs).schema
    return _shown(_dataset(inputs).schema, inputs, time)


def read_events(inputs: Inputs, time: str = "ts") -> pa.Table:
    """All the events of the files; times that have a zone are in that of the time column."""
    _refuse_remote(inputs)
    with readable(inputs.files, inputs.format):
        if inputs.format == "jsonl":
            return read_json(_with_content(inputs))
        table = _dataset(inputs).to_table()
    # Times in text say their unit by how many digits they have, which should not show in the result.
    return _as_shown(table, _shown(table.schema, inputs, time))


def scan_events(inputs: Inputs, columns: list[str], time: str = "ts") -> Iterator[pa.Table]:
    """The events of the files with some of their columns; Parquet is read piece by piece."""
    if inputs.format != "parquet":
        yield read_events(inputs).select(columns)
        return
    found = _dataset(inputs)
    shown = _shown(found.schema, inputs, time)
    with readable(inputs.files, inputs.format):
        for batch in found.to_batches(columns=columns):
            yield _as_shown(pa.Table.from_batches([batch]), pa.schema([shown.field(name) for name in columns]))


def _as_shown(table: pa.Table, shown: pa.Schema) -> pa.Table:
    for i, field in enumerate(shown):
        if table.schema.field(i).type != field.type:
            table = table.set_column(i, field.name, table.column(i).cast(field.type, safe=False))
    return table


def text_columns(inputs: Inputs, look_at: Callable[[pa.RecordBatch], None] | None = None) -> pa.Schema | None:
    """The columns of CSV files that can be looked at from here, for Spark to read; None for all other input.

    `look_at` is shown all rows, as text.
    """
    if inputs.format != "csv" or inputs.remote:
        return None
    with readable(inputs.files, inputs.format):
        found = csv_columns(_with_content(inputs), look_at)
        return pa.schema([f.with_type(in_microseconds(f.type)) for f in found])


def _shown(columns: pa.Schema, inputs: Inputs, time: str) -> pa.Schema:
    """The columns as events have them."""
    if inputs.format != "parquet":
        return pa.schema([f.with_type(in_microseconds(f.type)) for f in columns])
    stored = stored_times(_with_content(inputs)[:1], time)
    return pa.schema([f.with_type(stored.shown(f)) for f in columns])


def _refuse_remote(inputs: Inputs) -> None:
    if inputs.remote:
        raise InputError(
            f"{inputs.shown} can be read only on Spark", code="EC325", hint="leave out --no-spark, or copy it here"
        )
    refuse_empty(inputs)


def _dataset(inputs: Inputs) -> ds.Dataset:
    _refuse_remote(inputs)
    with readable(inputs.files, inputs.format):
        files = _with_content(inputs)
        if inputs.format == "parquet":
            return ds.dataset(files, format=_PARQUET, partitioning="hive")
        format_ = ds.CsvFileFormat(convert_options=read_options(csv_columns(files)))
        return ds.dataset(files, format=format_, partitioning="hive")


def _with_content(inputs: Inputs) -> list[str]:
    """The files, without those that are empty: they have no header, and no events."""
    return [file for file in inputs.files if Path(file).stat().st_size]


def check_parquet(inputs: Inputs, time: str) -> StoredTimes:
    """How the files hold times; files that are not Parquet are refused."""
    if inputs.format != "parquet" or inputs.remote:
        return StoredTimes()
    return stored_times(_with_content(inputs)[:FOOTERS_CHECKED], time)


def refuse_empty(inputs: Inputs) -> None:
    """Say so if there is not one byte in the files."""
    with readable(inputs.files, inputs.format):
        if inputs.files and not inputs.remote and not any(Path(f).stat().st_size for f in inputs.files):
            raise InputError(f"{inputs.shown} is empty", code="EC327", hint="not even the columns are known")
