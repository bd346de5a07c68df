"""Compare what a query returns (RETURN's values, or the groups of AGG) with what the oracle says it returns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventcube.language.syntax import Query
from tests.differential.compare import DisagreementError, describe, engine_batches
from tests.oracle.brute import Event
from tests.oracle.generate import Options
from tests.oracle.results import Row, evaluate_rows
from tests.oracle.text import query_to_text

# How many of them a second has.
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def check_rows(
    query: Query,
    events: list[Event],
    options: Options,
    cut: Sequence[int] = (),
    restarts: Collection[int] = (),
    **settings: Any,
) -> int:
    """Compare the multisets of rows; gives how many there are, or raises DisagreementError."""
    batches = list(engine_batches(query, events, options, cut, restarts, **settings))
    return compare_rows(query, events, options, batches, cut, restarts)


def compare_rows(
    query: Query,
    events: list[Event],
    options: Options,
    batches: Sequence[pa.RecordBatch],
    cut: Sequence[int] = (),
    restarts: Collection[int] = (),
) -> int:
    """Compare the rows of the engine's batches with the oracle's; see `check_rows`."""
    expected = evaluate_rows(query, events, typed=options.typed, concepts=options.concepts)
    schemas = {b.schema for b in batches}
    assert len(schemas) <= 1, "all batches of a result have the same columns"
    types = [f.type for f in batches[0].schema] if batches else []
    skipped = 0 if query.agg else 2
    found = [row[skipped:] for b in batches for row in zip(*map(shown, b.columns), strict=True)]
    wanted = (
        [tuple(_rounded(v, t) for v, t in zip(row, types[skipped:], strict=True)) for row in expected]
        if types
        else expected
    )
    if Counter(found) != Counter(wanted):
        raise DisagreementError(_difference(query, events, options, cut, restarts, wanted, found))
    return len(expected)


def shown(column: pa.Array) -> list[Any]:
    """A column's values as the oracle has them: an event is its id, a time whole microseconds, NaN is null."""
    if pa.types.is_struct(column.type):
        return [None if v is None else v for v in pc.struct_field(column, "id").to_pylist()]
    numbers = column.cast(pa.int64()) if pa.types.is_temporal(column.type) else column
    if pa.types.is_timestamp(column.type):
        return [None if n is None else n * 10**6 // UNITS[column.type.unit] for n in numbers.to_pylist()]
    return [_rounded(v, column.type) for v in numbers.to_pylist()]


def _rounded(value: Any, type_: pa.DataType) -> Any:
    """Floats to nine digits, whatever the order of a sum, and 0 for what is left of a sum that cancels out.

    Times and durations to whole microseconds.
    """
    if value is None or isinstance(value, str | bool):
        return value
    if pa.types.is_temporal(type_):
        return math.trunc(value)
    if pa.types.is_floating(type_):
        return None if math.isnan(value) else 0.0 if abs(value) < 1e-12 else float(f"{value:.9g}")
    return value


def _difference(
    query: Query,
    events: list[Event],
    options: Options,
    cut: Sequence[int],
    restarts: Collection[int],
    expected: list[Row],
    found: list[Row],
) -> str:
    missing, extra = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
    return "\n".join(
        [
            f"{len(expected)} rows by the oracle, {len(found)} by the engine",
            f"query:    {query_to_text(query)}",
            f"options:  {options}",
            f"cut:      {list(cut)}, restarts before {sorted(restarts)}",
            f"missing:  {sorted(missing.elements(), key=repr)}",
            f"extra:    {sorted(extra.elements(), key=repr)}",
            "events:",
            *(f"  {describe(e)}" for e in events),
        ]
    )
