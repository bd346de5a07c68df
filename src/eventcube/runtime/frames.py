"""Events and results as whatever frames people use."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventcube.errors import InputError
from eventcube.schema import plain_layout


def is_spark(events: Any) -> bool:
    """Whether events are a Spark DataFrame, without importing Spark."""
    return type(events).__module__.startswith("pyspark.sql.")


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
    if isinstance(events, pa.Table):
        return events
    if isinstance(events, pa.RecordBatch):
        return pa.Table.from_batches([events])
    module = type(events).__module__.split(".")[0]
    if module == "pandas" and type(events).__name__.endswith("Frame"):
        return pa.Table.from_pandas(events, preserve_index=False)
    if module == "polars" and type(events).__name__.endswith("Frame"):
        return events.collect().to_arrow() if hasattr(events, "collect") else events.to_arrow()
    if hasattr(events, "__arrow_c_stream__"):
        return pa.table(events)
    raise InputError(
        f"cannot read events from {type(events).__module__}.{type(events).__qualname__}",
        code="EC307",
        hint="give a Spark DataFrame, an Arrow table, or a pandas or polars frame",
    )


def from_arrow(table: pa.Table, like: Any) -> Any:
    """A result as the kind of frame that the events were."""
    module = type(like).__module__.split(".")[0]
    if module == "pandas":
        return table.to_pandas()
    if module == "polars":
        import polars as pl

        frame = pl.DataFrame(table)
        return frame.lazy() if hasattr(like, "collect") else frame
    return table
