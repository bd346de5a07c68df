"""What a match has counted, brought back to the driver: by its tasks, and by Spark where it reads the rows."""

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

# Takes the counters of a task.
Count = Callable[[Mapping[str, int]], None]


class _Sum(AccumulatorParam[Counters]):
    """Adds up counters."""

    def zero(self, value: Counters) -> Counters:
        return Counters()

    def addInPlace(self, value1: Counters, value2: Counters) -> Counters:  # noqa: N802 - as Spark calls it
        value1.add_later(value2)
        return value1


def counted(frame: DataFrame, counters: Counts) -> Count:
    """Where tasks leave what they counted; a task that Spark runs twice counts twice."""
    if is_connect(frame):
        raise OptionError("Spark Connect brings no counters back", code="EC427", hint="leave out counters=")
    total = frame.sparkSession.sparkContext.accumulator(Counters(), _Sum())
    counters.follow(lambda: total.value)
    whole = counters.counts_rows

    def count(own: Mapping[str, int]) -> None:
        # Where rows are counted, the skipped ones are among them.
        skipped = 0 if whole else own.get("set_aside", 0)
        total.add(Counters(**{**own, "rows": 0, "set_aside": skipped}))

    return count


def observed(frame: DataFrame, counters: Counts, schema: EventSchema, queries: Iterable[LogicalQuery]) -> DataFrame:
    """The frame with its rows counted where they are read: those that are skipped, the types and times they have."""
    wanted = {s.type: s.types for q in queries for s in q.slots if s.type is not None and s.types is not None}
    time, unit = schema.time, schema.time_unit
    measures = survey_columns(frame, time, schema.type, unit, wanted) + time_columns(frame, time, unit)
    observation = Observation()
    observing = frame.observe(observation, *measures)

    def row() -> Mapping[str, Any] | None:
        # Asking for what is not there yet would wait for it.
        handle = observation._jo
        return observation.get if handle is not None and handle.future().isCompleted() else None

    def counted_rows() -> Counters:
        if (known := row()) is None:
            return Counters()
        rows, reasons, _ = read_survey(known, ())
        return Counters(rows=rows, set_aside=sum(reasons.values()))

    def findings() -> RowFindings:
        if (known := row()) is None:
            return RowFindings()
        _, reasons, missing = read_survey(known, wanted if schema.type is not None else ())
        return RowFindings(missing, reasons, slips_in_rows(known, time, unit))

    counters.follow(counted_rows)
    counters.follow_rows(findings, told=False)
    return observing
