"""Counts events in one pass: how many, how many without time or type, and whether types are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as f
from pyspark.sql.types import IntegralType

from eventcube.errors import Diagnostic
from eventcube.schema import BAD_TIME, NO_TIME, NO_TYPE
from eventcube.slips import are_many, as_argument, skipped_rows, unlikely_times
from eventcube.spark.columns import column, unreadable

_ROWS, _UNREADABLE, _EARLIEST, _LATEST = "rows", "unreadable", "earliest", "latest"


def survey_columns(
    events: DataFrame, time: str, type_: str | None, unit: str, wanted: Mapping[str, Iterable[str]]
) -> list[Column]:
    """Aggregates over all events, for `agg` or `observe`; `read_survey` tells what came out."""
    timeless, bad = column(time).isNull(), unreadable(events, time, unit)
    found = [
        f.count(f.lit(1)).alias(_ROWS),
        f.count_if(timeless).alias(NO_TIME),
        f.count_if(bad).alias(BAD_TIME),
    ]
    if type_ is None:
        return found
    kind = column(type_)
    found.append(f.count_if(~timeless & ~bad & kind.isNull()).alias(NO_TYPE))
    return found + [f.max(kind.isin(*types)).alias(f"type {name}") for name, types in wanted.items()]


def read_survey(row: Mapping[str, Any], wanted: Iterable[str]) -> tuple[int, dict[str, int], frozenset[str]]:
    """The number of rows, of those that cannot be used by reason, and the wanted names none of whose types occur."""
    reasons = {reason: int(row[reason]) for reason in sorted((BAD_TIME, NO_TIME, NO_TYPE)) if row.get(reason)}
    return int(row[_ROWS]), reasons, frozenset(name for name in wanted if not row[f"type {name}"])


def time_columns(events: DataFrame, time: str, unit: str) -> list[Column]:
    """Aggregates for `observe` that tell an unreadable time and, if they are whole numbers, the extremes of others."""
    own, bad = column(time), unreadable(events, time, unit)
    found = [f.min(f.when(bad, own)).alias(_UNREADABLE)]
    if isinstance(events.schema[time].dataType, IntegralType):
        found += [g(f.when(~bad, own)).alias(name) for g, name in ((f.min, _EARLIEST), (f.max, _LATEST))]
    return found


def slips_in_rows(row: Mapping[str, Any], time: str, unit: str) -> tuple[Diagnostic, ...]:
    """What the aggregates show to be a slip: rows that are nearly all skipped, times in an unlikely year."""
    rows, reasons, _ = read_survey(row, ())
    found: list[Diagnostic | None] = []
    if are_many(rows, sum(reasons.values())):
        found.append(skipped_rows(rows, reasons, {BAD_TIME: row[_UNREADABLE]}, time, unit, as_argument))
    if row.get(_EARLIEST) is not None:
        found.append(unlikely_times(row[_EARLIEST], row[_LATEST], time, unit, as_argument))
    return tuple(problem for problem in found if problem is not None)


def count_events(events: DataFrame, columns: list[Column]) -> dict[str, Any]:
    """The aggregates, by name."""
    row = events.agg(*columns).first()
    assert row is not None
    return row.asDict()


def observed(events: DataFrame, columns: list[Column]) -> tuple[DataFrame, Callable[[], dict[str, Any]]]:
    """The events themselves, and the aggregates by name once a job has gone through them."""
    seen = Observation()
    return events.observe(seen, *columns), lambda: seen.get


def some_types(events: DataFrame, type_: str, most: int = 1000) -> list[str | None]:
    """Types that events have; all, if they are not very many."""
    return [row[0] for row in events.select(column(type_)).distinct().limit(most).collect()]


def count_reasons(aside: DataFrame, reason: str, time: str) -> tuple[dict[str, int], dict[str, object]]:
    """How often each reason occurs, and a time for which it does."""
    grouped = aside.groupBy(column(reason)).agg(f.count(f.lit(1)), f.first(column(time))).orderBy(column(reason))
    rows = grouped.collect()
    return {row[0]: int(row[1]) for row in rows}, {row[0]: row[2] for row in rows}
