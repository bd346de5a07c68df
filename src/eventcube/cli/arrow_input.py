"""Reads events from files into Arrow, without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyarrow.types as pat

from eventcube.cli.csv_input import csv_columns, in_microseconds, read_options
from eventcube.cli.inputs import Inputs
from eventcube.cli.json_input import read_json
from eventcube.cli.readable import readable
from eventcube.errors import InputError

FOOTERS_CHECKED = 1000


def input_schema(inputs: Inputs) -> pa.Schema:
    """The columns of the events, of which only those in Parquet are known without reading them."""
    if inputs.format == "jsonl":
        return read_events(inputs).schema
    return pa.schema([f.with_type(_shown_type(f.type, inputs)) for f in _dataset(inputs).schema])


def read_events(inputs: Inputs) -> pa.Table:
    """All the events of the files."""
    _refuse_remote(inputs)
    with readable(inputs.files, inputs.format):
        if inputs.format == "jsonl":
            return read_json(_with_content(inputs))
        table = _dataset(inputs).to_table()
    # Times in text say their unit by how many digits they have, which should not show in the result.
    for i, field in enumerate(table.schema):
        wanted = _shown_type(field.type, inputs)
        if field.type != wanted:
            table = table.set_column(i, field.name, table.column(i).cast(wanted, safe=False))
    return table


def text_columns(inputs: Inputs) -> pa.Schema | None:
    """The columns of CSV files that can be looked at from here, for Spark to read; None for all other input."""
    if inputs.format != "csv" or inputs.remote:
        return None
    with readable(inputs.files, inputs.format):
        return pa.schema([f.with_type(_shown_type(f.type, inputs)) for f in csv_columns(_with_content(inputs))])


def _shown_type(type_: pa.DataType, inputs: Inputs) -> pa.DataType:
    return type_ if inputs.format == "parquet" else in_microseconds(type_)


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
            return ds.dataset(files, format="parquet", partitioning="hive")
        format_ = ds.CsvFileFormat(convert_options=read_options(csv_columns(files)))
        return ds.dataset(files, format=format_, partitioning="hive")


def _with_content(inputs: Inputs) -> list[str]:
    """The files, without those that are empty: they have no header, and no events."""
    return [file for file in inputs.files if Path(file).stat().st_size]


def check_parquet(inputs: Inputs) -> tuple[str, ...]:
    """Refuse files that are not Parquet, and give the columns whose times are in nanoseconds."""
    if inputs.format != "parquet" or inputs.remote:
        return ()
    nanoseconds: dict[str, None] = {}
    for file in inputs.files[:FOOTERS_CHECKED]:
        with readable([file], "parquet"):
            schema = pq.read_schema(file)
        nanoseconds |= dict.fromkeys(f.name for f in schema if pat.is_timestamp(f.type) and f.type.unit == "ns")
    return tuple(nanoseconds)


def refuse_empty(inputs: Inputs) -> None:
    """Say so if there is not one byte in the files."""
    with readable(inputs.files, inputs.format):
        if inputs.files and not inputs.remote and not any(Path(f).stat().st_size for f in inputs.files):
            raise InputError(f"{inputs.shown} is empty", code="EC327", hint="not even the columns are known")
