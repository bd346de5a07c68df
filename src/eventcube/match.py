"""`match`, `match_all` and `set_aside` for every kind of frame; the result is of the same kind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from eventcube.cube.levels import in_columns, levels_queries, levels_schema
from eventcube.engine.counters import Counters, within_limit
from eventcube.engine.counts import Counts
from eventcube.engine.kernels import Ints
from eventcube.engine.order_kernels import time_span
from eventcube.errors import OptionError, warn
from eventcube.language.syntax import Aggregate, Query
from eventcube.options import Options, RowSettings, StreamSettings, invalid_argument, options
from eventcube.plan.event_columns import PlainColumn, event_columns, flat_columns, plain_batch, plain_schema
from eventcube.plan.suspicions import missing_window
from eventcube.runtime.frames import from_arrow, is_spark, is_stream, to_arrow
from eventcube.runtime.ingest import Ingest
from eventcube.runtime.queries import Queries, check_options, queries_by_name
from eventcube.runtime.read_columns import check_columns, read_times
from eventcube.runtime.runtime import Runtime
from eventcube.runtime.watermark import microseconds_of
from eventcube.schema import LATE_ROWS, QUERIES
from eventcube.settings import takes_settings

BATCH_ROWS = 1 << 20


@takes_settings
def match(
    events: Any,
    queries: Queries,
    *,
    flat: bool = False,
    counters: Counts | None = None,
    **settings: Unpack[StreamSettings],
) -> Any:
    """All matches of a query (or of several) over events.

    Events are a Spark DataFrame, an Arrow table or record batch, or a pandas or polars frame; the result is of the
    same kind. A SparkSession stands for the table or view that FROM names. On Spark nothing runs until the result is
    used; over a streaming DataFrame the result is one, too. `lateness` changes nothing where the events are a table.
    `flat` gives a column `a_ts` for each column of each event instead of a struct `a`. `counters` receives the
    counters of the run.
    """
    return find_matches(events, queries, options(**settings), flat=flat, counters=counters)


# Makes a runtime as `Runtime.from_options` does.
Start = Callable[..., Runtime]


def find_matches(
    events: Any,
    queries: Queries,
    options: Options,
    *,
    flat: bool = False,
    counters: Counts | None = None,
    start: Start = Runtime.from_options,
) -> Any:
    """`match` with its settings as options; `start` makes the runtime for events in this process."""
    _check_arguments(events, flat)
    parsed = queries_by_name(queries)
    queries = parsed["q1"] if isinstance(queries, str | Query) else parsed
    if flat and not isinstance(queries, Query):
        raise OptionError(
            "several queries share one result, which has no flat form",
            code="EC434",
            hint="ec.match_all(events, queries, flat=True) gives each query a flat table of its own",
        )
    _check_counters(counters)
    if is_spark(events):
        from eventcube.spark.batch import match_dataframe

        if not is_stream(events):
            warn_unbounded(queries)
        return match_dataframe(events, queries, options, flat=flat, counters=counters)
    table = to_arrow(events)
    runtime = start(queries, options, schema=table.schema)
    if counters is not None:
        _count(runtime, counters)
    columns = flat_columns(runtime.schema, event_columns(parsed["q1"]) if flat else ())
    found = _table(run(runtime, table), runtime.schema, columns)
    if not runtime.single:
        found = found.replace_schema_metadata({QUERIES: json.dumps(list(parsed))})
    return from_arrow(found, events)


@takes_settings
def match_all(
    events: Any,
    queries: Queries,
    *,
    flat: bool = False,
    counters: Counts | None = None,
    **settings: Unpack[StreamSettings],
) -> dict[str, Any]:
    """The matches of several queries, by name: each has a result with columns of its own.

    Every query may have RETURN, AGG and LIMIT. In process they share one pass over the events. On Spark each result is
    a DataFrame, which reads the events when it is used. `flat` and `counters` are as in `match`.
    """
    _check_arguments(events, flat)
    return match_each(events, queries_by_name(queries), options(**settings), flat=flat, counters=counters)


def match_each(
    events: Any,
    queries: Mapping[str, Query],
    options: Options,
    *,
    flat: bool = False,
    counters: Counts | None = None,
    start: Start = Runtime.from_options,
) -> dict[str, Any]:
    """`match_all` with parsed queries, and its settings as options."""
    _check_counters(counters)
    if is_spark(events):
        from eventcube.spark.batch import match_dataframes

        if not is_stream(events):
            warn_unbounded(queries)
        return match_dataframes(events, queries, options, flat=flat, counters=counters)
    table = to_arrow(events)
    runtime = start(queries, options, schema=table.schema, separate=True)
    if counters is not None:
        _count(runtime, counters)
    schemas = runtime.schemas
    columns = {n: flat_columns(schemas[n], event_columns(query) if flat else ()) for n, query in queries.items()}
    batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in queries}
    for name, batch in run(runtime, table):
        batches[name].append(batch)
    return {name: from_arrow(_table(batches[name], schemas[name], columns[name]), events) for name in queries}


COUNTED = pa.schema([pa.field("query", pa.string(), nullable=False), pa.field("matches", pa.int64(), nullable=False)])


def count_matches(
    events: Any,
    queries: Mapping[str, Query],
    options: Options,
    *,
    counters: Counts | None = None,
    start: Start = Runtime.from_options,
) -> Any:
    """How many matches each query has, as a frame with a row for each; those with LIMIT have no more than that."""
    _check_arguments(events, flat=False)
    _check_counters(counters)
    limits, options = limits_of(queries, options.limit), replace(options, limit=None)
    if is_spark(events):
        from eventcube.spark.batch import count_dataframe

        warn_unbounded(queries)
        return count_dataframe(events, counting_queries(queries), limits, options, counters=counters)
    table = to_arrow(events)
    runtime = start(counting_queries(queries), options, schema=table.schema, separate=True)
    if counters is not None:
        _count(runtime, counters)
    found = run_counts(runtime, table, limits)
    return from_arrow(pa.table([list(found), list(found.values())], schema=COUNTED), events)


def count_levels(
    events: Any,
    queries: Mapping[str, Query],
    options: Options,
    *,
    counters: Counts | None = None,
    start: Start = Runtime.from_options,
) -> Any:
    """The cells of each query, as a frame with a row for each; those with LIMIT count no more matches than that."""
    _check_arguments(events, flat=False)
    _check_counters(counters)
    asked = queries_at_levels(queries, options)
    limits, options = limits_of(queries, options.limit), replace(options, limit=None)
    if is_spark(events):
        from eventcube.spark.batch import levels_dataframe

        warn_unbounded(queries)
        return levels_dataframe(events, asked, limits, options, counters=counters)
    table = to_arrow(events)
    runtime = start(asked, options, schema=table.schema, separate=True)
    if counters is not None:
        _count(runtime, counters)
    return from_arrow(run_levels(runtime, table, limits), events)


def queries_at_levels(queries: Mapping[str, Query], options: Options) -> dict[str, Query]:
    """The queries whose results are their cells."""
    if options.concepts is None:
        hint = "give one: concepts={'Computer': ['Dell', 'Lenovo']}, or --concepts kinds.yaml"
        raise OptionError("there is no hierarchy of types", code="EC458", hint=hint)
    check_options(queries, options)
    return levels_queries(queries)


def run_levels(runtime: Runtime, table: pa.Table, limits: Mapping[str, int]) -> pa.Table:
    """The cells of each query of a runtime of `levels_queries`, over a whole table."""
    schema, names = levels_schema(runtime.queries, runtime.schemas), [*runtime.queries]
    found = sorted(run(runtime, table), key=lambda result: names.index(result[0]))
    return pa.Table.from_batches([in_columns(name, b, schema, limits.get(name)) for name, b in found], schema)


def run_counts(runtime: Runtime, table: pa.Table, limits: Mapping[str, int]) -> dict[str, int | None]:
    """The number of matches of each query of a runtime of counting queries, over a whole table.

    One that 64 bits cannot hold is None.
    """
    found = {name: batch.column(0)[0].as_py() for name, batch in run(runtime, table)}
    return {name: within_limit(found[name], limits.get(name)) for name in runtime.queries}


def counting_queries(queries: Mapping[str, Query]) -> dict[str, Query]:
    """The queries whose results are the numbers of matches."""
    return {name: counting_query(query) for name, query in queries.items()}


def counting_query(query: Query) -> Query:
    """The query whose result is the number of matches."""
    count = (Aggregate("COUNT", alias="matches"),)
    return replace(query, agg=count, per=None, group_by=(), having=(), returns=(), limit=None)


def limits_of(queries: Mapping[str, Query], limit: int | None = None) -> dict[str, int]:
    """The limits of the queries that have one, with one for all of them if it is given."""
    limits = {name: [n for n in (query.limit, limit) if n is not None] for name, query in queries.items()}
    return {name: min(given) for name, given in limits.items() if given}


def _check_arguments(events: Any, flat: Any) -> None:
    """Refuse a query in place of the events, and a `flat` that is neither true nor false."""
    if isinstance(events, Query) or (isinstance(events, str) and events.lstrip()[:7].upper() == "PATTERN"):
        raise invalid_argument("events", events, "the events first, then the query: ec.match(events, query)")
    if not isinstance(flat, bool):
        raise invalid_argument("flat", flat, "True or False")


def _check_counters(counters: Counts | None) -> None:
    if counters is not None and not isinstance(counters, Counts):
        raise invalid_argument("counters", counters, "an ec.Counts()")


def _count(runtime: Runtime, counters: Counts) -> None:
    """Connect the counters with those of the runtime."""
    counters.follow(lambda: Counters(**runtime.counters))
    counters.follow_rows(lambda: runtime.row_findings, told=True)


def _table(batches: Iterable[pa.RecordBatch], schema: pa.Schema, columns: Sequence[PlainColumn]) -> pa.Table:
    return pa.Table.from_batches((plain_batch(b, columns) for b in batches), plain_schema(schema, columns))


def warn_unbounded(queries: Queries) -> None:
    """Warn of each query without WITHIN, which is allowed over a whole table, but seldom intended."""
    for name, query in queries_by_name(queries).items():
        for problem in missing_window(query, "the query" if isinstance(queries, str | Query) else f"query {name}"):
            warn(problem)


def run(runtime: Runtime, table: pa.Table) -> Iterator[Any]:
    """The matches over a whole table, in any order of rows, as they are found."""
    runtime.bounded = True
    schema = runtime.options.schema(table.schema)
    ts, valid = read_times(table.column(schema.time), schema)
    until = None if runtime.options.until is None else microseconds_of(runtime.options.until, schema)
    if until is None and valid is None and (not len(ts) or time_span(ts)[2]):
        at = 0
        while at < len(ts):
            # Pieces no smaller than the retained events, so that these are not scanned too often.
            size = max(BATCH_ROWS, runtime.kept)
            yield from runtime.push(table.slice(at, size))
            at += size
    else:
        # Only what is released is sorted, and of it only the events that some query can use.
        runtime.hold(table)
        for watermark in _cuts(ts if valid is None else ts[valid]):
            if until is None or watermark < until:
                yield from runtime.advance(watermark)
    yield from runtime.finish() if until is None else runtime.advance(until)


def _cuts(ts: Ints) -> list[int]:
    """Times between which about `BATCH_ROWS` events lie."""
    pieces = len(ts) // BATCH_ROWS
    sample = np.sort(ts[:: max(1, len(ts) // (pieces * 1000 + 1))])
    places = [len(sample) * i // (pieces + 1) for i in range(1, pieces + 1)]
    return [int(cut) for cut in np.unique(sample[places])]


def late_rows(matches: Any) -> Any:
    """The late rows in what `match` gives over a stream with `keep_late=True`, or in what was written of it.

    They have the columns that the queries use. The matches are `matches.where("late IS NULL").drop("late")`.
    """
    if not is_spark(matches) or LATE_ROWS not in matches.columns:
        raise OptionError(
            f"there is no column {LATE_ROWS!r} with late rows",
            code="EC497",
            hint="give the DataFrame of ec.match(stream, …, keep_late=True), a micro-batch of it, or what it wrote",
        )
    return matches.where(f"{LATE_ROWS} IS NOT NULL").select(f"{LATE_ROWS}.*")


@takes_settings
def set_aside(events: Any, **settings: Unpack[RowSettings]) -> Any:
    """The rows that `match` skips (no time that can be read, no type), each with the reason."""
    return find_skipped(events, options(**settings))


def find_skipped(events: Any, options: Options) -> Any:
    """`set_aside` with its settings as options."""
    if is_spark(events):
        from eventcube.spark.skipped import skipped_rows

        return skipped_rows(events, options)
    table = to_arrow(events)
    ingest = Ingest(options.schema(table.schema), (), 0, Counters())
    ingest.take(check_columns(table, table.schema))
    return from_arrow(ingest.skipped_table(), events)
