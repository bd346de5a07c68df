"""Counters of a match on Spark, brought back to the driver: of its tasks, and of the rows that Spark reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.accumulators import AccumulatorParam
from pyspark.sql import DataFrame, Observation

from eventcube.engine.counters import Counters
from eventcube.engine.counts import Counts, RowFindings
from eventcube.errors import OptionError
from eventcube.plan.logical import LogicalQuery
from eventcube.schema import EventSchema
from eventcube.spark.columns import is_connect
from eventcube.spark.survey import read_survey, slips_in_rows, survey_columns, time_columns

# Adds the counters of a task to the total.
AddCounters = Callable[[Mapping[str, int]], None]


class _Sum(AccumulatorParam[Counters]):
    """Adds up counters."""

    def zero(self, value: Counters) -> Counters:
        return Counters()

    def addInPlace(self, value1: Counters, value2: Counters) -> Counters:  # noqa: N802 - as Spark calls it
        value1.add_later(value2)
        return value1


def task_counters(frame: DataFrame, counters: Counts) -> AddCounters:
    """An accumulator for the counters of tasks; a task that Spark runs twice counts twice."""
    if is_connect(frame):
        raise OptionError("Spark Connect brings no counters back", code="EC427", hint="leave out counters=")
    total = frame.sparkSession.sparkContext.accumulator(Counters(), _Sum())
    counters.follow(lambda: total.value)
    counts_rows = counters.counts_rows

    def add(task: Mapping[str, int]) -> None:
        # `observe_rows` counts skipped rows, if it counts rows.
        skipped = 0 if counts_rows else task.get("set_aside", 0)
        total.add(Counters(**{**task, "rows": 0, "set_aside": skipped}))

    return add


def bucket_counters(frame: DataFrame, counters: Counts) -> AddCounters:
    """An accumulator for the counters of the buckets of a stream, with the rows that reached them."""
    if is_connect(frame):
        raise OptionError("Spark Connect brings no counters back", code="EC427", hint="leave out counters=")
    total = frame.sparkSession.sparkContext.accumulator(Counters(), _Sum())
    counters.follow(lambda: total.value)
    return lambda counted: total.add(Counters(**counted))


def observe_rows(frame: DataFrame, counters: Counts, schema: EventSchema, queries: Iterable[LogicalQuery]) -> DataFrame:
    """The frame with an observation of its rows: their number, skipped rows, types and times."""
    wanted = {s.type: s.types for q in queries for s in q.slots if s.type is not None and s.types is not None}
    time, unit = schema.time, schema.time_unit
    measures = survey_columns(frame, time, schema.type, unit, wanted) + time_columns(frame, time, unit)
    observation = Observation()
    observed_frame = frame.observe(observation, *measures)

    def aggregates() -> Mapping[str, Any] | None:
        # `get` would block until a job has finished.
        handle = observation._jo
        return observation.get if handle is not None and handle.future().isCompleted() else None

    def counted_rows() -> Counters:
        if (values := aggregates()) is None:
            return Counters()
        rows, reasons, _ = read_survey(values, ())
        return Counters(rows=rows, set_aside=sum(reasons.values()))

    def findings() -> RowFindings:
        if (values := aggregates()) is None:
            return RowFindings()
        _, reasons, missing = read_survey(values, wanted if schema.type is not None else ())
        return RowFindings(missing, reasons, slips_in_rows(values, time, unit))

    counters.follow(counted_rows)
    counters.follow_rows(findings, told=False)
    return observed_frame
