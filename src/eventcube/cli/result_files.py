"""Writes batches of matches to one file or to standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pyarrow.types as pat

from eventcube.cli.temporary import temporary_file, temporary_folder
from eventcube.errors import OptionError
from eventcube.plan.event_columns import plain_batch, plain_columns, struct_columns
from eventcube.plan.zones import known_zone


def write_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema, format_: str, path: Path | None) -> int:
    """Write all batches to the file, or to standard output, and return the number of rows.

    A file appears only when it is complete; an existing one is replaced.
    """
    with plain_write_errors(path), _sink(path) as sink:
        rows = 0
        for batch in _write_each(batches, schema, format_, sink):
            rows += batch.num_rows
        return rows


@contextmanager
def plain_write_errors(path: Path | None) -> Iterator[None]:
    """Raise an OptionError with the reason if the block cannot write; a closed pipe is no error."""
    try:
        yield
    except ConnectionError:
        raise
    except OSError as error:
        where = path or "standard output"
        raise OptionError(
            f"cannot write to {where}: {error.strerror or error}", code="EC425", hint="choose another place: --out PATH"
        ) from None


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to write to, which replaces the path when it is complete."""
    with plain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(path) as folder:
            yield folder


@contextmanager
def _sink(path: Path | None) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with temporary_file(path) as temporary, temporary.open("wb") as file:
        yield file


def _write_each(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, format_: str, sink: BinaryIO
) -> Iterator[pa.RecordBatch]:
    match format_:
        case "parquet":
            with pq.ParquetWriter(sink, schema) as parquet:
                for batch in batches:
                    parquet.write_batch(batch)
                    yield batch
        case "csv":
            flat = flattened(pa.RecordBatch.from_pylist([], schema)).schema
            with pa_csv.CSVWriter(sink, flat, write_options=pa_csv.WriteOptions(quoting_style="needed")) as csv:
                for batch in batches:
                    csv.write_batch(flattened(batch))
                    yield batch
        case _:
            for batch in batches:
                for row in batch.to_pylist():
                    sink.write(json.dumps(row, default=_json_value, ensure_ascii=False).encode() + b"\n")
                yield batch


def flattened(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch for CSV: an event's columns as `r.id`, `r.room`, …; durations in seconds."""
    plain = plain_batch(batch, plain_columns(batch.schema, struct_columns(batch.schema), "."))
    return pa.RecordBatch.from_arrays([_csv_ready(c) for c in plain.columns], plain.schema.names)


def _csv_ready(column: pa.Array) -> pa.Array:
    type_ = column.type
    if pat.is_duration(type_):
        return pc.divide(column.cast(pa.duration("us"), safe=False).cast(pa.int64()).cast(pa.float64()), 1e6)
    if pat.is_timestamp(type_) and type_.tz not in (None, "UTC"):
        return _with_offset(column)
    if pat.is_nested(type_):
        values = (v.as_py() for v in column)
        return pa.array([None if v is None else json.dumps(v, default=_json_value) for v in values], pa.string())
    return column


def _with_offset(times: pa.Array) -> pa.Array:
    """Local times in the zone with their offset: 2026-03-29 03:00:00.000000+02:00."""
    zone = known_zone(str(times.type.tz))
    if zone is None:
        return times.cast(pa.timestamp(times.type.unit, "UTC"))
    return pc.strftime(times.cast(pa.timestamp(times.type.unit, zone)), format="%Y-%m-%d %H:%M:%S%Ez")


def _json_value(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
