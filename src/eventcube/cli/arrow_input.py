"""Reads events from files into Arrow, without Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyarrow.types as pat

from eventcube.cli.inputs import Inputs
from eventcube.errors import InputError

FOOTERS_CHECKED = 1000
LONGEST_REASON = 200


def open_dataset(inputs: Inputs) -> ds.Dataset:
    """The files as one dataset; its columns are those of the first file."""
    if inputs.remote:
        raise InputError(
            f"{inputs.shown} can be read only on Spark", code="EC325", hint="leave out --no-spark, or copy it here"
        )
    refuse_empty(inputs)
    with readable(inputs):
        return ds.dataset(list(inputs.files), format=_FORMATS[inputs.format], partitioning="hive")


def read_events(inputs: Inputs) -> pa.Table:
    """All the events of the files."""
    with readable(inputs):
        table = open_dataset(inputs).to_table()
    # Times in text say their unit by how many digits they have, which should not show in the result.
    for i, field in enumerate(table.schema):
        if inputs.format != "parquet" and pat.is_timestamp(field.type) and field.type.unit != "us":
            table = table.set_column(i, field.name, table.column(i).cast(pa.timestamp("us", field.type.tz), safe=False))
    return table


def check_parquet(inputs: Inputs) -> tuple[str, ...]:
    """Refuse files that are not Parquet, and give the columns whose times are in nanoseconds."""
    if inputs.format != "parquet" or inputs.remote:
        return ()
    nanoseconds: dict[str, None] = {}
    for file in inputs.files[:FOOTERS_CHECKED]:
        with readable(Inputs((file,), (file,), "parquet")):
            schema = pq.read_schema(file)
        nanoseconds |= dict.fromkeys(f.name for f in schema if pat.is_timestamp(f.type) and f.type.unit == "ns")
    return tuple(nanoseconds)


def refuse_empty(inputs: Inputs) -> None:
    """Say so if there is not one byte in the files."""
    with readable(inputs):
        if inputs.files and not inputs.remote and not any(Path(f).stat().st_size for f in inputs.files):
            raise InputError(f"{inputs.shown} is empty", code="EC327", hint="not even the columns are known")


@contextmanager
def readable(inputs: Inputs) -> Iterator[None]:
    """Tell what could not be read, and why, in one line."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        file, reason = _told(error, inputs)
        raise InputError(
            f"cannot read {file} as {_NAMES[inputs.format]}: {reason}", code="EC321", hint=_hint(reason)
        ) from None


# An empty field is null, as on Spark.
_FORMATS = {
    "parquet": "parquet",
    "csv": ds.CsvFileFormat(convert_options=pa_csv.ConvertOptions(strings_can_be_null=True)),
    "jsonl": "json",
}
_NAMES = {"parquet": "Parquet", "csv": "CSV", "jsonl": "JSON lines"}


def _told(error: Exception, inputs: Inputs) -> tuple[str, str]:
    """The file that an error names, or else the input, and the reason without what Arrow says around it."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror
    file = next((f for f in inputs.files if f in text), inputs.files[0] if len(inputs.files) == 1 else inputs.shown)
    reason = re.sub(r"^.*input source '.*?': (Invalid: )?", "", text)
    reason = re.sub(r"(: |^)Could not open .*?'\.?$", "", reason)
    readable = "".join(c if c.isprintable() and c != "\ufffd" else "?" for c in reason)[:LONGEST_REASON]
    return file, readable.rstrip(".")


def _hint(reason: str) -> str | None:
    if "conversion error" in reason or "changed from" in reason:
        return "without Spark a column's type is taken from its first rows; Spark looks at all: leave out --no-spark"
    if "parse error" in reason:
        return "on Spark such rows are read as far as they go, and set aside if they have no time: leave out --no-spark"
    if "not a parquet file" in reason or "magic bytes" in reason:
        return "is it another format? say --input-format csv or jsonl"
    return None
