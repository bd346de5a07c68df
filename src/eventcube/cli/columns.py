"""The columns of events, from files or from a column list as in SQL."""

from __future__ import annotations

import re

import pyarrow as pa

from eventcube.cli.inputs import Inputs
from eventcube.errors import InputError, did_you_mean

TYPES = {
    **dict.fromkeys(("string", "text", "varchar"), pa.string()),
    **dict.fromkeys(("int", "integer", "smallint", "tinyint"), pa.int32()),
    **dict.fromkeys(("bigint", "long"), pa.int64()),
    **dict.fromkeys(("double", "float", "real", "decimal"), pa.float64()),
    **dict.fromkeys(("boolean", "bool"), pa.bool_()),
    **dict.fromkeys(("timestamp", "timestamp_ntz", "datetime"), pa.timestamp("us")),
    "date": pa.date32(),
}
_COLUMN = re.compile(r"\s*(`(?:[^`]|``)+`|[^\s,:`]+)(?:\s*:\s*|\s+)([A-Za-z_]+)\s*(?:\([\d\s,]*\))?\s*(,|$)")


def parse_columns(text: str) -> pa.Schema:
    """Columns as written in SQL: `ts timestamp, kind string, price double`."""
    fields, at = [], 0
    while at < len(text):
        matched = _COLUMN.match(text, at)
        if matched is None:
            raise InputError(
                f"cannot read the columns from {text[at:].strip()!r} on",
                code="EC326",
                hint="write a name and a type for each: --columns 'ts timestamp, kind string, price double'",
            )
        name, type_ = matched[1], matched[2].lower()
        if name.startswith("`"):
            name = name[1:-1].replace("``", "`")
        if type_ not in TYPES:
            raise InputError(f"unknown column type {matched[2]!r}", code="EC326", hint=did_you_mean(type_, TYPES))
        fields.append(pa.field(name, TYPES[type_]))
        at = matched.end()
    return pa.schema(fields)


def input_columns(inputs: Inputs, time: str) -> pa.Schema:
    """The columns of files, read without Spark: from Parquet's footer, or inferred from all values of text."""
    from eventcube.cli.arrow_input import input_schema

    return input_schema(inputs, time)
