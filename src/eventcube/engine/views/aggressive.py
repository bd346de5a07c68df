"""The aggressive continuous sliding view, which is also the object cache: complete up to its right bound."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eventcube.engine.table import Table
from eventcube.engine.views.result_store import QueryIntervals
from eventcube.engine.views.sliding import Sliding
from eventcube.engine.views.strategy import register
from eventcube.engine.views.view import AttachedView, Requests
from eventcube.optimizer.cost import STEP, Load


@register("aggressive", "object")
class Aggressive(Sliding):
    """Computes whatever ends before the end of an interval, as far back as the window of the outer row reaches.

    So there is a right bound for each key and each value of an equality with outer events.
    """

    @classmethod
    def cost(cls, load: Load) -> float | None:
        """As a balanced view, but last events reach back a whole window, which is found for each outer row."""
        update = load.update_cost(load.windowed)
        return load.look_up_cost() + load.outer_rows * STEP + update + load.output_cost()

    def requests(self, intervals: QueryIntervals, table: Table, view: AttachedView) -> Iterator[Requests]:
        """All that ends before the right bound and the view does not have."""
        ends = view.addresses.rows(intervals.hi) - 1
        slots = [c for c in table.columns if c >= 0]
        latest = np.maximum(ends, table.last(slots)) if slots else ends
        rows = view.addresses.rows(intervals.lo)
        back = np.minimum(rows, view.store.window_starts[latest])
        lo = np.where(intervals.lo < intervals.hi, intervals.lo - rows + back, intervals.lo)
        yield view.unmet(QueryIntervals(lo, intervals.hi), self.kept.since)
