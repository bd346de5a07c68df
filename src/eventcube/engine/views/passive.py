"""The passive continuous sliding view: nothing is computed before an interval asks for it."""

from __future__ import annotations

from collections.abc import Iterator

from eventcube.engine.kernels import Bools
from eventcube.engine.table import Table
from eventcube.engine.views.flags import Flags
from eventcube.engine.views.records import Records
from eventcube.engine.views.result_store import QueryIntervals
from eventcube.engine.views.sliding import Sliding
from eventcube.engine.views.strategy import Executor, register
from eventcube.engine.views.view import AttachedView, Requests
from eventcube.optimizer.cost import RECORD, Load
from eventcube.plan.steps import Part, only_emptiness


@register("passive")
class Passive(Sliding):
    """Keeps a record of each interval it computed, and each result once, whatever intervals it lies in.

    An interval that lies in a recorded one is looked up; of one that a record overlaps from the left, what ends after
    the record is computed; any other is computed whole. Of a negated part only whether each interval is empty.
    """

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.records = Records()
        self.flags = Flags(self.view) if only_emptiness(part) else None
        self.view.followers.append(self.records.move)

    @classmethod
    def cost(cls, load: Load) -> float | None:
        """As a balanced view, and a record for each different end of an interval: the longest holds the others.

        Of a negated part without results to keep, each of those is computed by itself.
        """
        update = Flags.update_cost(load) if load.only_emptiness else load.update_cost()
        return load.look_up_cost() + RECORD * load.ends + update + load.output_cost()

    def forget(self, row: int, view: AttachedView) -> None:
        """Take what lies before the row out of the records."""
        self.records.begin_at(row, view.addresses)

    @property
    def bytes(self) -> int:
        """Results and records, or flags."""
        return super().bytes + 16 * len(self.records) + (self.flags.bytes if self.flags else 0)

    def requests(self, intervals: QueryIntervals, table: Table, view: AttachedView) -> Iterator[Requests]:
        """One interval after the other, as if each had been asked for by itself."""
        distinct, _ = intervals.nonempty().distinct()
        plan = self.records.plan(distinct)
        fresh = distinct.where(plan.fresh)
        view.counters.view_intervals += len(fresh)
        self.records.add(fresh)
        for requests, _ in view.requests_for(fresh, plan.begins[plan.fresh]):
            yield requests

    def exists(self, table: Table, executor: Executor) -> Bools:
        """For each outer row whether there is an inner match inside its interval."""
        if self.flags is None:
            return super().exists(table, executor)
        return self.flags.exists(table, self.attached(executor))
