"""`match`: one call for every kind of events; the same kind comes back."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from eventcube.concepts.concepts import Concepts
from eventcube.engine.counters import Counters, Counts
from eventcube.errors import EventCubeWarning
from eventcube.language.syntax import Component, Query
from eventcube.options import wrong
from eventcube.runtime.frames import from_arrow, is_spark, to_arrow
from eventcube.runtime.ingest import read_times
from eventcube.runtime.runtime import Queries, Runtime, check_limit, hierarchy, named

BATCH_ROWS = 1 << 20


def match(
    events: Any,
    queries: Queries,
    *,
    time: str = "ts",
    type: str | None = None,
    partition_by: str | Sequence[str] | None = None,
    order_by: str | Sequence[str] | None = None,
    concepts: Concepts | Mapping[str, Any] | None = None,
    time_unit: str = "us",
    strategy: str | Mapping[str, str] = "auto",
    limit: int | None = None,
    counters: Counts | None = None,
) -> Any:
    """All matches of a query (or of several) over events.

    Events are a Spark DataFrame, an Arrow table or record batch, or a pandas or polars frame; the result is of the
    same kind. On Spark nothing runs until the result is used. `strategy` names how nested parts are answered, for all
    or by a variable of each part. `counters` tells afterwards what was done.
    """
    read = named(queries)
    queries = read["q1"] if isinstance(queries, str | Query) else read
    check_limit(read, limit)
    if counters is not None and not isinstance(counters, Counts):
        raise wrong("counters", counters, "an ec.Counts()")
    warn_unbounded(queries, stacklevel=2)
    settings: dict[str, Any] = {
        "time": time,
        "type": type,
        "partition_by": partition_by,
        "order_by": order_by,
        "concepts": hierarchy(concepts),
        "time_unit": time_unit,
        "strategy": strategy,
        "limit": limit,
    }
    if is_spark(events):
        from eventcube.spark.batch import match_dataframe

        return match_dataframe(events, queries, counters=counters, **settings)
    table = to_arrow(events)
    runtime = Runtime(queries, schema=table.schema, **settings)
    if counters is not None:
        counters.follow(lambda: Counters(**runtime.counters))
    return from_arrow(pa.Table.from_batches(run(runtime, table), runtime.schema), events)


def warn_unbounded(queries: Queries, stacklevel: int = 1) -> None:
    """Warn of each query without WITHIN: where input ends that is allowed, but seldom meant."""
    for name, query in named(queries).items():
        if query.within is None and not isinstance(query.pattern, Component):
            which = "the query" if isinstance(queries, str | Query) else f"query {name}"
            warnings.warn(
                f"{which} has no WITHIN, so every event can match with every other, however far apart: "
                "this can be slow and find very much\nhint: add, say, WITHIN 10 minutes",
                EventCubeWarning,
                stacklevel=stacklevel + 1,
            )


def run(runtime: Runtime, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The matches over a whole table, which need not be in order, as they are found."""
    # Those who have all events at hand have heard of it, or had no need to.
    runtime.warned = True
    for piece in _in_order(table, runtime):
        yield from runtime.push(piece)
    yield from runtime.finish()


def _in_order(table: pa.Table, runtime: Runtime) -> Iterator[pa.Table]:
    """The table in pieces, each later in time than the one before."""
    schema = runtime.options.schema(table.schema)
    ts, valid = read_times(table.column(schema.time), schema)
    if valid is not None:
        yield table.filter(pa.array(~valid))
        table, ts = table.filter(pa.array(valid)), ts[valid]
    order = None if (ts[1:] >= ts[:-1]).all() else np.argsort(ts, kind="stable")
    at = 0
    while at < len(ts):
        # Larger pieces where much is kept from one to the next, so that what is kept is not gone over too often.
        size = max(BATCH_ROWS, runtime.kept)
        yield table.slice(at, size) if order is None else table.take(pa.array(order[at : at + size]))
        at += size


def set_aside(
    events: Any,
    *,
    time: str = "ts",
    type: str | None = None,
    time_unit: str = "us",
) -> Any:
    """The rows that `match` cannot use (no time that can be read, no type), each with the reason."""
    if is_spark(events):
        from eventcube.spark.aside import set_aside_rows

        return set_aside_rows(events, time=time, type=type, time_unit=time_unit)
    table = to_arrow(events)
    runtime = Runtime("PATTERN `any` WITHIN 1 us", schema=table.schema, time=time, type=type, time_unit=time_unit)
    for _ in run(runtime, table):
        pass
    return from_arrow(runtime.set_aside, events)
