"""What the tasks of a match have counted, brought back to the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.accumulators import AccumulatorParam
from pyspark.sql import DataFrame

from eventcube.engine.counters import Counters, Counts
from eventcube.errors import OptionError
from eventcube.spark.columns import is_connect

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
    return lambda own: total.add(Counters(**own))
