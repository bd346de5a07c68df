"""The balanced continuous sliding view: computes what a set of outer rows ask for, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from eventcube.engine.table import Table
from eventcube.engine.views.result_store import QueryIntervals
from eventcube.engine.views.sliding import Sliding
from eventcube.engine.views.strategy import register
from eventcube.engine.views.view import AttachedView, Requests
from eventcube.optimizer.cost import Load


@register("balanced")
class Balanced(Sliding):
    """Takes the intervals of all outer rows together: the longest that hold an event say how far back it is needed.

    The view has what earlier outer rows asked for; what is new lies mostly to the right of that.
    """

    @classmethod
    def cost(cls, load: Load) -> float | None:
        """A look-up for each outer row, and of last events the view does not have what is asked for (CSV eq. 3-5)."""
        return load.look_up_cost() + load.update_cost() + load.output_cost()

    def requests(self, intervals: QueryIntervals, table: Table, view: AttachedView) -> Iterator[Requests]:
        """What is asked for and the view does not have."""
        yield view.unmet(intervals, self.kept.since)
