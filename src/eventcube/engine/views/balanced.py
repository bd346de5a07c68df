"""The balanced continuous sliding view: computes what a set of outer rows ask for, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from eventcube.engine.table import Table
from eventcube.engine.views.result_store import QueryIntervals
from eventcube.engine.views.sliding import Sliding
from eventcube.engine.views.strategy import Executor, register
from eventcube.engine.views.view import Requests


@register("balanced")
class Balanced(Sliding):
    """Intervals are asked for together, so the longest that hold an event say how far back it is needed.

    What an earlier set of outer rows has asked for is there; what is new lies mostly to its right.
    """

    def requests(self, intervals: QueryIntervals, table: Table, executor: Executor) -> Iterator[Requests]:
        """What is asked for and is not there."""
        yield self.missing(intervals, executor)
