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
from eventcube.engine.kept_matches import Keep, KeptMatches
from eventcube.engine.output import Output
from eventcube.engine.query import RunningQuery
from eventcube.engine.query_group import QueryGroup
from eventcube.engine.released import Released
from eventcube.engine.saved import BOUND
from eventcube.engine.sinks.sink import make_sink
from eventcube.engine.state import BEGINNING, State
from eventcube.engine.store import States
from eventcube.engine.succession import is_retained, take_over
from eventcube.engine.table import Table
from eventcube.optimizer.choose import Costs
from eventcube.plan.steps import numbered
from eventcube.plan.workload import Derivation, WorkloadPlan


class Engine:
    """Finds the matches of all queries of a workload. Give it released events in order; it keeps what can be needed."""

    def __init__(self, plan: WorkloadPlan, columns: pa.Schema, keep: Keep | None = None) -> None:
        keep_freed_memory()
        self.plan, self.keep = plan, keep
        self.counters = Counters()
        self.state = State(plan, columns, None if keep is None else keep.time)
        buffers = scratch()
        self.queries = {name: RunningQuery(name, query, buffers) for name, query in plan.queries.items()}
        self.groups = [QueryGroup([self.queries[n] for n in names], buffers, plan.sharing) for names in plan.alike]
        self._limited = [query for query in self.queries.values() if query.sink.searches]
        self._keep_matches_since(BEGINNING)
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
        for query in self.queries.values():
            if query.kept is not None:
                query.kept.drop_before(self.state.first_sequence)
        for name, query in self.queries.items():
            rows = query.finish() if watermark is None else query.sink.close(watermark)
            yield from ((name, batch) for batch in rows)

    # Other queries.

    def go_on(self, before: Engine) -> None:
        """Go on from the state of an engine with other queries; those that both have keep what they have."""
        take_over(self.state, before.state)
        self.counters = before.shared_counters
        for name, old in before.queries.items():
            if name in self.queries:
                if old.kept is not None:
                    old.kept.since = max(old.kept.since, before.state.horizon(old.query.stacks))
                self.queries[name].go_on(old)
            else:
                self.counters.add(old.counters)
        self._keep_matches_since(self.state.watermark)
        self.note_full()

    def can_answer(self, derivation: Derivation, plan: WorkloadPlan) -> bool:
        """Whether a query of another plan can be answered from kept matches, and all events are there that it needs."""
        query = plan.queries[derivation.target]
        if self.queries[derivation.source].kept is None or (query.plan.forward and not derivation.same_trigger):
            # With the first event as the trigger, a match may be due before that of the source is.
            return False
        return is_retained(query, plan, State(plan, self.state.columns, self.state.keep), self.state)

    def note_restored(self) -> None:
        """Take note that the state was restored, and that matches from before are not kept."""
        for query in self.queries.values():
            query.kept = None
            self._drop_closed(query)
        self._keep_matches_since(self.state.watermark)

    def _drop_closed(self, query: RunningQuery) -> None:
        """Drop the groups of a query that were given at the watermark, or before."""
        for _ in query.sink.close(self.state.watermark):
            pass

    def _keep_matches_since(self, time: int) -> None:
        """Keep the matches of queries of which none are kept so far, from a time on."""
        keep = self.keep
        if keep is None:
            return
        most = max(1, keep.matches // len(self.queries))
        for query in self.queries.values():
            if query.kept is None and not query.sink.searches and (keep.counted or not query.sink.only_counts):
                query.kept = KeptMatches(query.plan.positive, most, max(time, query.query.since or time))

    def kept_of(self, name: str) -> tuple[int, int]:
        """The time from which on matches of a query are kept, and how many they are."""
        query = self.queries[name]
        if query.kept is None:
            return BOUND, 0
        return query.kept.complete_from(self.state, query.query.stacks), len(query.kept)

    def complete_from(self, derivation: Derivation) -> int:
        """The time from which on a query can be answered from kept matches of another."""
        source, target = self.queries[derivation.source], self.queries[derivation.target]
        assert source.kept is not None
        since = source.kept.complete_from(self.state, {*source.query.stacks, *target.query.stacks})
        horizon = self.state.horizon(target.query.stacks)
        if not target.plan.looks_back or horizon == BEGINNING:
            return since
        # A negated part looks at events before the first of a match, as far back as the window reaches.
        arrangement = target.query.arrangement
        if arrangement.width is None or arrangement.positions is not None:
            return max(since, self.state.watermark)
        return max(since, horizon + arrangement.width)

    def answer(self, derivation: Derivation) -> Iterator[pa.RecordBatch]:
        """The result of a query over the past: its matches, computed from the kept ones of another."""
        source, target = self.queries[derivation.source], self.queries[derivation.target]
        assert source.kept is not None
        since = self.complete_from(derivation)
        evaluation = Evaluation(self.state, len(self.state.rows), self.state.watermark)
        states = States(len(self.state.rows), len(self.state.rows))
        execution = target.other_execution(evaluation, states, "answer")
        output = Output(target.plan, execution)
        # Groups go on from those of the past.
        sink = target.sink if target.sink.is_open else make_sink(target.plan)
        program = numbered(derivation.program)
        own = dict(derivation.slots)
        for table in source.kept.tables(execution.store, self.state.rows, since):
            target.counters.results_reused += len(table)
            bound = Table(tuple(own[slot] for slot in table.columns), table.data)
            for found in execution.run(program, bound):
                first = found.first(target.plan.positive, optional=True)
                out = found.where(execution.store.ts[first] >= since)
                if target.kept is not None:
                    target.kept.add(out, execution.store)
                if sink.only_counts:
                    sink.add_count(len(out))
                else:
                    yield from sink.add(out, output)
        target.ran = 0
        if target.kept is not None:
            target.kept.flush()
            target.kept.since = since
        yield from sink.flush(output)
        yield from sink.finish()
        self._drop_closed(target)

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
        return [query.estimate(evaluation) for query in self.queries.values()]

    def nothing(self, name: str) -> tuple[Table, Output]:
        """No match of a query, and what would make a result of it: this tells how its results are kept."""
        query = self.queries[name]
        slots = tuple(range(len(query.query.stacks)))
        table = Table(slots, np.empty((len(slots), 0), np.int64))
        evaluation = Evaluation(State(self.plan, self.state.columns), 0, None)
        execution: Execution = query.execution(evaluation, States(0, 0))
        return table, Output(query.plan, execution)
