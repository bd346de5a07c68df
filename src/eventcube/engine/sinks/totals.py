"""Aggregates of the matches, one row for each group, computed without making the matches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pyarrow as pa

from eventcube.engine.aggregate import foldable
from eventcube.engine.counting.counts import StageCounts
from eventcube.engine.counting.totals import Totals
from eventcube.engine.execute import Execution
from eventcube.engine.kernels import Ints
from eventcube.engine.output import Output
from eventcube.engine.sinks.groups import GroupSink
from eventcube.engine.sinks.sink import Due, register
from eventcube.engine.table import Table
from eventcube.plan.counting import MOST_SPLITS, Counting
from eventcube.plan.physical import PhysicalQuery

# The keys of a group that are the same for all of its matches, and the rows that its slots are restricted to.
_Split = tuple[dict[str, pa.Scalar], dict[int, Ints]]


@register("totals")
class TotalsSink(GroupSink):
    """Folds counts and sums of matches into groups, which are returned when the input has ended.

    Where there are too many groups for that, the matches are made.
    """

    searches = True

    def __init__(self, plan: PhysicalQuery) -> None:
        super().__init__(plan)
        assert isinstance(plan.sink.counting, Counting)
        self.counting = plan.sink.counting

    def search(self, due: Due) -> Iterator[pa.RecordBatch]:
        """Count the matches of due events, and add them to the groups."""
        execution = due.execution_of_all
        output = Output(self.plan, execution)
        splits = self._splits(output, execution)
        if splits is None:
            for table in due.matches(execution):
                due.counters.matches += len(table)
                self.add(table, output)
        else:
            for keys, only in splits:
                counts = StageCounts(self.counting, execution.store, only, None if only else due.counted)
                totals = Totals(self.groups, counts, output, keys)
                due.counters.add_matches(totals.matches)
                if self.only_counts:
                    self.groups.add_count(totals.matches)
                else:
                    for table in totals.tables():
                        self._note(self.groups.add_weighted(table))
                due.counters.events_counted += counts.walked
        return iter(())

    def _splits(self, output: Output, execution: Execution) -> list[_Split] | None:
        """The groups that must be counted one by one; None if they are too many. One that is none, if there are no."""
        splits: list[list[tuple[dict[str, pa.Scalar], int, Ints]]] = []
        number = 1
        for slot in self.counting.split:
            groups = self._groups_of(slot, execution.store.stack(slot).rows, output)
            number *= len(groups)
            if number > MOST_SPLITS:
                return None
            splits.append(groups)
        return [
            ({name: key for keys, _, _ in chosen for name, key in keys.items()}, {s: rows for _, s, rows in chosen})
            for chosen in product(*splits)
        ]

    def _groups_of(self, slot: int, rows: Ints, output: Output) -> list[tuple[dict[str, pa.Scalar], int, Ints]]:
        """The values of the keys that depend on a slot, with the rows that have them."""
        results, counting = self.plan.sink.results, self.counting
        table = Table((slot,), rows[None, :])
        columns = {
            name: foldable(output.value(table, counting.at(key.value, slot)))
            for name, key in zip(self.groups.keys, results.group_by, strict=True)
            if counting.free(key.value.expression) == {slot}
        }
        keyed = pa.table({**columns, "": pa.array(np.arange(len(rows)))})
        grouped = keyed.group_by([*columns], use_threads=False).aggregate([("", "list")])
        return [
            ({name: grouped.column(name)[i] for name in columns}, slot, rows[np.asarray(places.values)])
            for i, places in enumerate(grouped.column("_list"))
        ]
