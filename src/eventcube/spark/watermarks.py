"""Other watermarks in the plan of a stream: Spark allows one for a column, and takes the least of several.

`match` sets one over all rows of its source. A second one behind it would see no rows until the first moves on, which
waits for the second: both would stand still.
"""

from __future__ import annotations

import re
from typing import NoReturn

from pyspark.sql import DataFrame

from eventcube.errors import OptionError
from eventcube.spark.columns import is_connect

_WATERMARK = re.compile(r"^[\s:|+-]*~?EventTimeWatermark\b", re.MULTILINE)
_MATCHES = re.compile(r"^[\s:|+-]*~?CollectMetrics eventcube(-\d+)?,", re.MULTILINE)
_SECOND_STREAM = "write the matches, as with BatchFolders, and read what is written as a stream of its own"


def refuse_watermarks(events: DataFrame) -> None:
    """Refuse events of a stream that has a watermark already; on Spark Connect there is no plan to see it in."""
    if is_connect(events):
        return
    plan = events._jdf.queryExecution().analyzed().toString()
    if _MATCHES.search(plan):
        raise OptionError(
            "the events are matches of another ec.match over a stream, and Spark moves the watermarks of both only "
            "together, so neither would move",
            code="EC499",
            hint=_SECOND_STREAM,
        )
    if _WATERMARK.search(plan):
        raise OptionError(
            "the events have a watermark already, and ec.match sets one of its own",
            code="EC499",
            hint="leave withWatermark out: lateness='5 minutes' of ec.match is the same. What needs a watermark before "
            "it, such as dropDuplicatesWithinWatermark or a join of streams, goes to a stream of its own, whose output "
            "ec.match reads",
        )


def as_last_watermark(frame: DataFrame) -> DataFrame:
    """The same frame of matches, which refuses another watermark."""
    if not is_connect(frame):
        # Under Spark's module, by which frames are told from others.
        kind = type(frame)
        frame.__class__ = type("DataFrame", (_Matches, kind), {"__module__": kind.__module__})
    return frame


class _Matches:
    """A streaming DataFrame of matches."""

    def withWatermark(self, eventTime: str, delayThreshold: str) -> NoReturn:  # noqa: N802, N803 - as Spark calls it
        raise OptionError(
            "a second watermark over the matches of a stream: Spark moves both only together, so neither would move",
            code="EC499",
            hint=f"{_SECOND_STREAM}, or aggregate in foreachBatch",
        )
