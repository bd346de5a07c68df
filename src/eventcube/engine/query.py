"""One query of a workload at work: its sink, its nested parts, its choice of program, and what it counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from eventcube.engine.counters import Counters
from eventcube.engine.counting.counts import Found
from eventcube.engine.counting.decision import CountedQuery, Decision
from eventcube.engine.evaluation import Evaluation
from eventcube.engine.execute import Execution
from eventcube.engine.kept_matches import KeptMatches
from eventcube.engine.kernels import Ints
from eventcube.engine.output import Output
from eventcube.engine.rows import Rows
from eventcube.engine.sampling import StoredEvents
from eventcube.engine.saved import Saved, read_counters
from eventcube.engine.sinks.sink import Nothing, Sink, make_sink
from eventcube.engine.store import States
from eventcube.engine.table import Table
from eventcube.engine.views.shared import SharedViews
from eventcube.engine.views.strategy import Parts, Views
from eventcube.optimizer.aggregates import OverBudgetError, folding_cost
from eventcube.optimizer.choose import Costs, ProgramChoice
from eventcube.plan.physical import MADE
from eventcube.plan.steps import Part, Program
from eventcube.plan.workload import StackKey, WorkloadQuery

# How the numbers of a sink are told from counters.
_SINK = "sink_"


class RunningQuery:
    """A query and what it keeps for itself between batches."""

    def __init__(self, name: str, query: WorkloadQuery, scratch: Ints) -> None:
        self.name, self.query, self.plan = name, query, query.plan
        self.counters = Counters()
        self.parts = Parts()
        self._views: SharedViews | None = None
        # Those of other programs, by what tells these apart: numbers of steps do so only within a program.
        self._other_parts: dict[object, Parts] = {}
        self.programs = ProgramChoice(self.plan, self.parts.cost)
        self.counted = CountedQuery(query, self.parts.cost) if self.plan.sink.name in MADE else None
        self.sink = make_sink(self.plan)
        # Matches that were reported, for queries that are added; None if they are not kept.
        self.kept: KeptMatches | None = None
        # The batch in which it was asked for matches last, and that after which it was saved or restored last.
        self.ran = self._saved = -1
        self._scratch = scratch
        # The stacks of the events that make a match due.
        self.triggers = tuple({query.stacks[slot]: None for slot in query.triggers})

    @property
    def only_counts(self) -> bool:
        """Whether the number of matches is all that is needed of them."""
        return self.sink.only_counts and self.kept is None

    def go_on(self, before: RunningQuery) -> None:
        """Go on from the same query of another workload: with what it has counted and what its sink keeps."""
        self.counters, self.sink, self.kept = before.counters, before.sink, before.kept
        self.ran, self._saved = before.ran, before._saved

    def execution(self, evaluation: Evaluation, states: States) -> Execution:
        """An execution over all events."""
        store = evaluation.store(self.query.arrangement, self.query.stacks, states)
        return Execution(store, self.parts, self.counters, self._scratch)

    def other_execution(
        self, evaluation: Evaluation, states: States, program: object, stacks: tuple[StackKey, ...] | None = None
    ) -> Execution:
        """An execution of another program, optionally with other stacks, which keeps the results of its own parts."""
        stacks = stacks or self.query.stacks
        if program not in self._other_parts:
            self._other_parts[program] = Parts(self._views_seen(stacks))
        store = evaluation.store(self.query.arrangement, stacks, states)
        return Execution(store, self._other_parts[program], self.counters, self._scratch)

    def share_views(self, views: SharedViews) -> None:
        """Share what is kept for nested parts with other queries, which sort the events alike."""
        self._views = views
        self.parts.views_of = self._views_seen(self.query.stacks)

    def _views_seen(self, stacks: tuple[StackKey, ...]) -> Callable[[Part], Views]:
        views, width = self._views, self.query.arrangement.width
        return lambda part: Views() if views is None else views.of(part, stacks, width)

    def execution_over(self, evaluation: Evaluation, rows: Rows, stacks: tuple[int, ...], states: States) -> Execution:
        """An execution over a piece of the events."""
        store = evaluation.piece(rows, self.query.arrangement, stacks, states)
        return Execution(store, self.parts, self.counters, self._scratch)

    def program(self, execution: Execution) -> Program:
        """The program that the optimizer chooses for an execution."""
        return self.programs.program(StoredEvents(execution), materialize=not self.only_counts)

    def estimate(self, evaluation: Evaluation) -> Costs:
        """What the programs, or the ways to aggregates, would cost over these events; nothing is run."""
        execution = self.execution(evaluation, evaluation.states(self.query.arrangement))
        if self.counted is not None:
            return self.counted.costs(evaluation.rows, execution)
        return self.programs.estimate(StoredEvents(execution), materialize=not self.only_counts)

    def search(
        self, evaluation: Evaluation, states: States, decision: Decision | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The result of a sink that searches for matches itself, as decided together with other queries or here."""
        if decision is None and self.counted is not None:
            execution = partial(self.execution, evaluation, states)
            decision = self.counted.decide(evaluation.rows, states.count_due(), execution)
        rows = self.sink.search(_Due(self, evaluation, states, decision))
        return self._counted(rows) if self.sink.gives_matches else rows

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What is left at the end."""
        self.count_bytes()
        for parts in self._all_parts:
            for views in parts.views:
                views.close(self.counters)
        rows = self.sink.finish()
        return self._counted(rows) if self.sink.gives_matches else rows

    def count_bytes(self) -> None:
        """Take note of what was kept for nested parts."""
        peak = sum(parts.peak_bytes for parts in self._all_parts)
        self.counters.view_bytes = max(self.counters.view_bytes, peak)

    @property
    def _all_parts(self) -> tuple[Parts, ...]:
        return self.parts, *self._other_parts.values()

    def _counted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.counters.matches += batch.num_rows
            yield batch

    def changes(self, since: int, batch: int) -> Saved | None:
        """Its counters and what its sink keeps, after a batch, if it was asked for matches since an earlier one."""
        added = self._saved == since
        if self.ran <= since:
            self._saved = batch if added else self._saved
            return None
        self._saved = batch
        sink = self.sink.changes(added=added)
        return Saved(self.counters.nonzero | {f"{_SINK}{name}": n for name, n in sink.values.items() if n}, sink.tables)

    def apply(self, saved: Saved | None, batch: int, nothing: Nothing) -> None:
        """Take on saved changes, if there are any, which lead to the end of a batch."""
        self._saved = batch
        if saved is None:
            return
        self.ran = batch
        sink = {name.removeprefix(_SINK): n for name, n in saved.values.items() if name.startswith(_SINK)}
        self.counters = read_counters({name: n for name, n in saved.values.items() if not name.startswith(_SINK)})
        self.sink.apply(Saved(sink, saved.tables), nothing)
        saved.check_all_taken()

    def choices(self, *, measured: bool = False) -> Iterator[str]:
        """What was chosen and expected, in words, for the program and for parts; `measured`: and what parts did."""
        if self.counted is not None and self.counted.choice.taken:
            yield f"aggregates: {self.counted.choice.summary()}"
        if self.programs.is_open and self.programs.taken:
            yield f"program: {self.programs.summary()}"
        yield from part_choices(self.parts, measured=measured)


def part_choices(parts: Parts, *, measured: bool) -> Iterator[str]:
    """What was chosen for nested parts and joins, in words."""
    for strategy, choice in parts.choices():
        yield f"({strategy.part.name}): {choice.summary()}"
        yield from (f"  {line}" for line in strategy.report() if measured)
    for choice in parts.index_choices:
        yield f"where {choice.conditions}: {choice.summary()}"


@dataclass(frozen=True, slots=True)
class _Due:
    """The due events of a query, for a sink that searches."""

    query: RunningQuery
    evaluation: Evaluation
    states: States
    decision: Decision | None

    @property
    def rows(self) -> Rows:
        return self.evaluation.rows

    @property
    def stacks(self) -> tuple[int, ...]:
        return self.query.query.stacks

    @property
    def counters(self) -> Counters:
        return self.query.counters

    @property
    def parts(self) -> Parts:
        return self.query.parts

    @property
    def counted(self) -> Found | None:
        """How many matches there are, for each event that ends some, if that was counted with other queries."""
        return None if self.decision is None else self.decision.counted.get(self.query.name)

    def made(self) -> Sink | None:
        """A sink that took all matches; None if they are to be counted, or there are more than expected."""
        decision = self.decision
        if decision is None or decision.budget is None:
            return None
        query, execution = self.query, self.execution_of_all
        execution.budget = decision.budget
        sink, output = make_sink(query.plan.enumerating), Output(query.plan, execution)
        matches = 0
        try:
            program = query.program(execution)
            if sink.only_counts:
                matches = execution.count(program, Table.single())
                sink.add_count(matches)
            else:
                for table in execution.run(program, Table.single()):
                    decision.budget.spend(len(table) * folding_cost(query.plan.sink.results))
                    matches += len(table)
                    for _ in sink.add(table, output):
                        pass
        except OverBudgetError:
            query.parts.forget()
            decision.give_up()
            return None
        query.counters.matches += matches
        return sink

    @property
    def execution_of_all(self) -> Execution:
        """An execution over all events."""
        return self.query.execution(self.evaluation, self.states)

    def execution(self, rows: Rows, stacks: tuple[int, ...], states: States) -> Execution:
        """An execution over a piece of the events."""
        return self.query.execution_over(self.evaluation, rows, stacks, states)

    def matches(self, execution: Execution) -> Iterator[Table]:
        """The matches, in chunks."""
        return execution.run(self.query.program(execution), Table.single())
