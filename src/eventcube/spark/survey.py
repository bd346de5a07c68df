"""Counts rows in one pass: all, those without a time or type, and whether the types of a query occur."""

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
    """Aggregates over all events, for `agg` or `observe`; `read_survey` reads their result."""
    no_time, bad_time = column(time).isNull(), unreadable(events, time, unit)
    aggregates = [
        f.count(f.lit(1)).alias(_ROWS),
        f.count_if(no_time).alias(NO_TIME),
        f.count_if(bad_time).alias(BAD_TIME),
    ]
    if type_ is None:
        return aggregates
    types_column = column(type_)
    aggregates.append(f.count_if(~no_time & ~bad_time & types_column.isNull()).alias(NO_TYPE))
    return aggregates + [f.max(types_column.isin(*types)).alias(f"type {name}") for name, types in wanted.items()]


def read_survey(row: Mapping[str, Any], wanted: Iterable[str]) -> tuple[int, dict[str, int], frozenset[str]]:
    """The number of rows, the skipped rows by reason, and the wanted names whose types do not occur."""
    reasons = {reason: int(row[reason]) for reason in sorted((BAD_TIME, NO_TIME, NO_TYPE)) if row.get(reason)}
    return int(row[_ROWS]), reasons, frozenset(name for name in wanted if not row[f"type {name}"])


def time_columns(events: DataFrame, time: str, unit: str) -> list[Column]:
    """Aggregates for `observe`: an unreadable time and, for whole numbers, the earliest and latest time."""
    times, bad = column(time), unreadable(events, time, unit)
    aggregates = [f.min(f.when(bad, times)).alias(_UNREADABLE)]
    if isinstance(events.schema[time].dataType, IntegralType):
        aggregates += [g(f.when(~bad, times)).alias(name) for g, name in ((f.min, _EARLIEST), (f.max, _LATEST))]
    return aggregates


def slips_in_rows(row: Mapping[str, Any], time: str, unit: str) -> tuple[Diagnostic, ...]:
    """Probable mistakes that the aggregates show: nearly all rows skipped, times in an unlikely year."""
    rows, reasons, _ = read_survey(row, ())
    problems: list[Diagnostic | None] = []
    if are_many(rows, sum(reasons.values())):
        problems.append(skipped_rows(rows, reasons, {BAD_TIME: row[_UNREADABLE]}, time, unit, as_argument))
    if row.get(_EARLIEST) is not None:
        problems.append(unlikely_times(row[_EARLIEST], row[_LATEST], time, unit, as_argument))
    return tuple(problem for problem in problems if problem is not None)


def count_events(events: DataFrame, columns: list[Column]) -> dict[str, Any]:
    """The aggregates, by name."""
    row = events.agg(*columns).first()
    assert row is not None
    return row.asDict()


def observed(events: DataFrame, columns: list[Column]) -> tuple[DataFrame, Callable[[], dict[str, Any]]]:
    """The events, and a function that returns the aggregates by name once a job has read the events."""
    observation = Observation()
    return events.observe(observation, *columns), lambda: observation.get


def some_types(events: DataFrame, type_: str, most: int = 1000) -> list[str | None]:
    """Types that occur, at most `most`."""
    return [row[0] for row in events.select(column(type_)).distinct().limit(most).collect()]


def count_reasons(skipped: DataFrame, reason: str, time: str) -> tuple[dict[str, int], dict[str, object]]:
    """The number of skipped rows by reason, and an example of the time for each."""
    grouped = skipped.groupBy(column(reason)).agg(f.count(f.lit(1)), f.first(column(time))).orderBy(column(reason))
    rows = grouped.collect()
    return {row[0]: int(row[1]) for row in rows}, {row[0]: row[2] for row in rows}
