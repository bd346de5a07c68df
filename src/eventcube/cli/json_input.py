"""Reads JSON lines into Arrow, with times as Spark infers them."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from eventcube.cli.csv_input import MOMENT, ZONE
from eventcube.cli.read_errors import plain_read_errors

HEAD_BYTES = 1 << 20
BLOCK_BYTES = 4 << 20


def read_json(files: Sequence[str]) -> pa.Table:
    """All rows of the files, with the union of their columns; a column without values is text."""
    tables = []
    for file in files:
        with plain_read_errors([file], "jsonl"):
            tables.append(_read_file(file))
    table = pa.concat_tables(tables, promote_options="permissive")
    # Fields of JSON objects have no order; Spark sorts them.
    table = table.select(sorted(table.column_names))
    for i, field in enumerate(table.schema):
        column = table.column(i)
        if pa.types.is_null(field.type):
            table = table.set_column(i, field.name, column.cast(pa.string()))
        elif pa.types.is_string(field.type):
            table = table.set_column(i, field.name, _with_times(column))
    return table


def _read_file(file: str) -> pa.Table:
    """The file's rows; times stay text, as Arrow would drop their zone."""
    with pa.input_stream(file, compression="detect") as stream:
        head = stream.read(HEAD_BYTES)
    if len(head) == HEAD_BYTES and b"\n" in head:
        head = head[: head.rindex(b"\n") + 1]
    first = pa_json.read_json(io.BytesIO(head)).schema
    times = pa.schema([(f.name, pa.string()) for f in first if pa.types.is_timestamp(f.type)])
    return pa_json.read_json(
        pa.input_stream(file, compression="detect"),
        pa_json.ReadOptions(block_size=BLOCK_BYTES),
        pa_json.ParseOptions(explicit_schema=times),
    )


def _with_times(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column as times, if all its values are times; those with a zone are in UTC."""
    if text.null_count == len(text):
        return text
    for zone, type_ in (("", pa.timestamp("ns")), (ZONE, pa.timestamp("ns", "UTC"))):
        if pc.all(pc.match_substring_regex(text, f"{MOMENT}{zone}$")).as_py():
            try:
                return text.cast(type_).cast(pa.timestamp("us", type_.tz), safe=False)
            except pa.ArrowInvalid:
                return text
    return text
