"""A workload running over released events: what is kept, what is due, what comes out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from eventcube.engine.allocator import keep_freed_memory
from eventcube.engine.counters import Counters
from eventcube.engine.evaluation import Evaluation
from eventcube.engine.execute import Execution, scratch
from eventcube.engine.flow import Result
from eventcube.engine.output import Output
from eventcube.engine.query import RunningQuery
from eventcube.engine.query_group import QueryGroup
from eventcube.engine.released import Released
from eventcube.engine.state import State
from eventcube.engine.store import States
from eventcube.engine.table import Table
from eventcube.optimizer.choose import Costs
from eventcube.plan.workload import Arrangement, WorkloadPlan


class Engine:
    """Finds the matches of all queries of a workload. Give it released events in order; it keeps what can be needed."""

    def __init__(self, plan: WorkloadPlan, columns: pa.Schema) -> None:
        keep_freed_memory()
        self.plan = plan
        self.counters = Counters()
        self.state = State(plan, columns)
        buffers = scratch()
        self.queries = {name: RunningQuery(name, query, buffers) for name, query in plan.queries.items()}
        alike: dict[Arrangement, list[RunningQuery]] = {}
        for query in self.queries.values():
            alike.setdefault(query.query.arrangement.due_alike, []).append(query)
        self.groups = [QueryGroup(members, buffers, plan.sharing) for members in alike.values()]
        self._limited = [query for query in self.queries.values() if query.sink.searches]
        self._full: set[str] = set()
        self.note_full()

    def feed(self, released: Released, watermark: int | None, batch: int) -> Iterator[Result]:
        """Take events in, in batches with ascending numbers, and give the matches that are due.

        Without a watermark the input has ended.
        """
        if len(self._full) == len(self.queries):
            return
        before = self.state.sequence
        fresh = self.state.append(released, final=watermark is None)
        self.counters.relevant += self.state.sequence - before
        if len(self.state.rows):
            evaluation = Evaluation(self.state, fresh, watermark)
            for group in self.groups:
                yield from group.run(evaluation, batch)
            self.note_full()
        self.state.purge(released, watermark)
        if watermark is None:
            for name, query in self.queries.items():
                yield from ((name, batch) for batch in query.finish())

    def note_full(self) -> None:
        """Drop what only queries that need no more matches would need."""
        full = {query.name for query in self._limited if query.sink.is_full}
        if full != self._full:
            self._full = full
            self.state.retain_for(set(self.queries) - full)

    @property
    def shared_counters(self) -> Counters:
        """The counters of what queries share."""
        shared = Counters()
        for counters in (self.counters, *(group.counters for group in self.groups)):
            shared.add(counters)
        return shared

    @property
    def total_counters(self) -> Counters:
        """The counters of all queries and of what they share, summed."""
        total = self.shared_counters
        for query in self.queries.values():
            total.add(query.counters)
        return total

    def take_counters(self, shared: Counters) -> None:
        """Go on from saved counters of what queries share."""
        self.counters = shared
        for group in self.groups:
            group.counters = Counters()

    def estimates(self, released: Released) -> list[Costs]:
        """What the programs of each query would cost over these events, if there were no others; nothing is run."""
        evaluation = Evaluation(self.state, self.state.append(released, final=True), None)
        return [
            query.estimate(query.execution(evaluation, evaluation.states(query.query.arrangement)))
            for query in self.queries.values()
        ]

    def nothing(self, name: str) -> tuple[Table, Output]:
        """No match of a query, and what would make a result of it: this tells how its results are kept."""
        query = self.queries[name]
        slots = tuple(range(len(query.query.stacks)))
        table = Table(slots, np.empty((len(slots), 0), np.int64))
        evaluation = Evaluation(State(self.plan, self.state.columns), 0, None)
        execution: Execution = query.execution(evaluation, States(0, 0))
        return table, Output(query.plan, execution)
