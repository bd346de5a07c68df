"""Queries running in this process: push events, advance time, read matches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from typing import Any, Self, Unpack

import pyarrow as pa

from eventcube.engine.counters import Counters
from eventcube.engine.counts import RowFindings
from eventcube.engine.kept_matches import Keep
from eventcube.engine.reuse.derive import plan_shared
from eventcube.engine.state import NOTHING, Version
from eventcube.engine.time_text import has_zones
from eventcube.errors import OptionError, warn
from eventcube.language.syntax import Query
from eventcube.options import Options, Settings, invalid_argument, options
from eventcube.plan.advice import once_each, warn_of_conditions
from eventcube.plan.logical import LogicalQuery
from eventcube.plan.planned import Planned, plan_queries
from eventcube.plan.suspicions import missing_window
from eventcube.plan.workload import Added, WorkloadPlan
from eventcube.runtime.adviser import Adviser, growth, skipped_rows, unlikely_times
from eventcube.runtime.changing import Answer, add_query, remove_query, settle
from eventcube.runtime.display import choices_of, report_text, runtime_html, runtime_text
from eventcube.runtime.frames import to_arrow
from eventcube.runtime.interruption import Interruption
from eventcube.runtime.look_ahead import LookAhead
from eventcube.runtime.queries import Queries, check_options, fingerprint_of, queries_by_name
from eventcube.runtime.restore import load
from eventcube.runtime.shared_result import check_shareable, long_form, long_schema
from eventcube.runtime.snapshot import save
from eventcube.runtime.watermark import microseconds_of
from eventcube.runtime.workload import Result, Workload
from eventcube.schema import EventSchema, check_names, plain_layout
from eventcube.settings import takes_settings


class Runtime:
    """One or more queries over a stream of events.

    `push` takes a batch and returns the matches that became final, as an iterator of record batches, which must be
    read to its end before the next call. `advance` moves the watermark: no earlier event will come. `finish` ends the
    input. Several queries share one result (see `ec.match`); with `separate=True` each has a result of its own, and
    the iterators give pairs of a query's name and a batch.

    Warns once of each probable mistake, unless `advise` is False.

    >>> import pyarrow as pa
    >>> runtime = Runtime("PATTERN SEQ(A a, B b) WITHIN 10 us RETURN a.ts AS a", type="type")
    >>> batches = list(runtime.push(pa.table({"ts": [1, 2, 3], "type": ["A", "B", "A"]})))
    >>> [b.to_pylist() for b in [*batches, *runtime.finish()]]
    [[{'start': 1, 'end': 2, 'a': 1}]]
    """

    @takes_settings
    def __init__(
        self,
        queries: Queries,
        *,
        schema: pa.Schema | None = None,
        separate: bool = False,
        advise: bool = True,
        **settings: Unpack[Settings],
    ) -> None:
        """Parse the queries; with `schema`, the columns of the events, also plan them."""
        self._set_up(queries, options(**settings), schema, separate, advise)

    @classmethod
    def from_options(
        cls,
        queries: Queries,
        options: Options,
        *,
        schema: pa.Schema | None = None,
        separate: bool = False,
        advise: bool = True,
        keep: Keep | None = None,
    ) -> Self:
        """A runtime from options that are read already; with `keep`, matches are kept for queries that are added."""
        runtime = cls.__new__(cls)
        runtime._set_up(queries, options, schema, separate, advise, keep)
        return runtime

    def _set_up(
        self,
        queries: Queries,
        options: Options,
        schema: pa.Schema | None,
        separate: bool,
        advise: bool,
        keep: Keep | None = None,
    ) -> None:
        self.options, self.keep = options, keep
        self.queries = queries_by_name(queries)
        check_options(self.queries, options)
        self.single = isinstance(queries, str | Query)
        self.separate = separate
        self.workload: Workload | None = None
        self.plans: dict[str, Planned] = {}
        self._running: LookAhead | None = None
        self._finished = False
        self._interruption = Interruption()
        self._warned_of_zones = False
        self._warned_of_growth = False
        self._adviser: Adviser | None = None
        self.advises = advise
        # Whether the input is one whole table: no warning of growing state then, and other warnings only at the end.
        self.bounded = False
        if schema is not None:
            if not isinstance(schema, pa.Schema):
                raise invalid_argument("schema", schema, "an Arrow schema, as table.schema is")
            self.start(schema)

    def start(self, columns: pa.Schema) -> Workload:
        """Plan the queries for events with these columns; the first `push` does so otherwise."""
        workload, plans = self.plan(columns)
        self.use_workload(workload, plans)
        return workload

    def plan(self, columns: pa.Schema, added: Added | None = None) -> tuple[Workload, dict[str, Planned]]:
        """The queries planned for events with these columns; the runtime does not change."""
        schema = self.options.schema(plain_layout(columns))
        if not (self.single or self.separate):
            check_shareable(self.queries)
        plans = self.plans_of(self.queries, schema)
        together = self.plan_together(plans, added or {})
        return Workload(together, schema, self.options.lateness, keep=self.keep), plans

    def plans_of(self, queries: Mapping[str, Query], schema: EventSchema) -> dict[str, Planned]:
        """The plan of each query for events with these columns."""
        plans = plan_queries(queries, schema, self.options)
        for plan in plans.values():
            check_names(plan.physical.sink.schema.names, "the result has")
        if self.keep is not None:
            # Matches that are kept must be made.
            for name, plan in plans.items():
                if self.keep.counted or not plan.physical.sink.results.only_counts:
                    plans[name] = replace(plan, physical=plan.physical.enumerating)
        return plans

    def plan_together(self, plans: Mapping[str, Planned], added: Added) -> WorkloadPlan:
        """The plan of all queries; those that were `added` see events since then."""
        plan = plan_shared(plans, self.options.concepts, self.options.sharing, added)
        if self.keep is None:
            return plan
        # A query that is answered from what is kept may need any column.
        schema = next(iter(plans.values())).physical.schema
        return replace(plan, columns=tuple(schema.columns.names))

    def set_queries(self, queries: Mapping[str, Query]) -> None:
        """Have other queries from now on."""
        self.queries = dict(queries)
        self.__dict__.pop("fingerprint", None)

    def use_workload(self, workload: Workload | None, plans: dict[str, Planned]) -> None:
        """Run this workload from now on, and warn of probable mistakes in its queries, once."""
        before, self.workload, self.plans = self.plans, workload, plans
        if workload is None or not self.advises:
            return
        for name, logical in self.bound_queries.items():
            if name not in before:
                for problem in missing_window(logical.query, "the query" if self.single else f"query {name}"):
                    warn(problem)
                warn_of_conditions(logical)
        if self._adviser is None or self._adviser.profile is not workload.ingest.profile:
            self._adviser = Adviser([], self.options.concepts, workload.ingest.profile)
        self._adviser.queries = list(self.queries.values())

    @property
    def bound_queries(self) -> dict[str, LogicalQuery]:
        """The queries, bound to the columns of the events; none before those are known."""
        return {name: plan.bound for name, plan in self.plans.items()}

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result; known once the columns of the events are."""
        if self.workload is not None and not self.single:
            return long_schema(self.workload.schema)
        return next(iter(self.schemas.values()))

    @property
    def schemas(self) -> dict[str, pa.Schema]:
        """The columns of each query's own result; known once the columns of the events are."""
        if self.workload is None:
            raise OptionError("the columns of the events are not known yet", code="EC405", hint="push, or give schema=")
        return self.workload.schemas

    @property
    def counters(self) -> dict[str, int]:
        """Counters of the work done so far; see `Counters`."""
        return Counters().as_dict() if self.workload is None else self.workload.counters

    def report(self) -> str:
        """The counters, and the cost model's estimates for each nested part, as text."""
        return report_text(self)

    def choices(self, *, measured: bool = False) -> Iterator[str]:
        """What was chosen and expected, in words: programs, strategies, and what queries share."""
        return iter(()) if self.workload is None else choices_of(self.workload, single=self.single, measured=measured)

    def __repr__(self) -> str:
        counted = self.counters
        return f"<Runtime: {', '.join(self.queries)}; {counted['events']:,} events, {counted['matches']:,} matches>"

    def __str__(self) -> str:
        """The queries, settings, counters and retained events, as text."""
        return runtime_text(self)

    def _repr_html_(self) -> str:
        return runtime_html(self)

    @property
    def missing_types(self) -> frozenset[str]:
        """The types in the queries that no event had so far."""
        present = self.workload.ingest.profile.types if self.workload is not None else set()
        slots = [slot for query in self.bound_queries.values() for slot in query.slots]
        return frozenset(s.type for s in slots if s.type is not None and s.types is not None and not s.types & present)

    @property
    def row_findings(self) -> RowFindings:
        """Findings in the rows so far: missing types, reasons for skipped rows, probable mistakes."""
        if self.workload is None:
            return RowFindings(self.missing_types)
        profile = self.workload.ingest.profile
        problems = (skipped_rows(profile), unlikely_times(profile))
        return RowFindings(self.missing_types, dict(profile.reasons), tuple(p for p in problems if p is not None))

    @property
    def kept(self) -> int:
        """The largest number of events that a query retains for later matches."""
        return max(self.kept_events.values(), default=0)

    @property
    def kept_events(self) -> dict[str, int]:
        """The number of retained events that each query can use; some may be there because others need them longer."""
        return {} if self.workload is None else self.workload.kept

    @property
    def held(self) -> int:
        """The number of events that wait for the watermark."""
        return 0 if self.workload is None else self.workload.ingest.held

    @property
    def finished(self) -> bool:
        """Whether the input has ended."""
        return self._finished

    @property
    def set_aside(self) -> pa.Table:
        """The skipped rows, each with the reason."""
        return pa.table({}) if self.workload is None else self.workload.ingest.skipped_table()

    def take_set_aside(self) -> pa.Table:
        """The rows skipped since the last call; the runtime drops them."""
        return pa.table({}) if self.workload is None else self.workload.ingest.drain()

    def push(self, events: Any) -> Iterator[Any]:
        """Process events (Arrow, pandas or polars); returns the matches that are final now."""
        self.hold(events)
        assert self.workload is not None
        return self._start_output(self.workload.advance_to_latest, self.workload)

    def hold(self, events: Any) -> None:
        """Take events that are not processed before `advance` or `finish`, in whatever order they are."""
        self.check_ready()
        table = to_arrow(events)
        workload = self.workload or self.start(table.schema)
        self._warn_of_zones(table, workload.schema)
        with self._interruption.noted():
            settle(self)
            workload.hold(table)

    def advance(self, watermark: int | datetime | str) -> Iterator[Any]:
        """Advance the watermark: every earlier event has come. Returns the matches that are final now.

        The watermark is a datetime or its text, or microseconds since 1970 in UTC whatever `time_unit` is. A time
        without a zone is in that of the time column.
        """
        self.check_ready()
        moment = microseconds_of(watermark, None if self.workload is None else self.workload.schema)
        if self.workload is None:
            raise OptionError("nothing was pushed yet", code="EC405", hint="push first, or give schema=")
        return self._start_output(partial(self.workload.advance, moment), self.workload)

    def add(self, name: str, query: str | Query) -> Answer:
        """Add a query, which sees the events that are later than all so far; the others go on as they are.

        The answer says from when on: it has all matches with events from then on. For the query, the stream begins
        then: a leading `!` knows no earlier events, and may let matches through that these would rule out.
        """
        return add_query(self, name, query)

    def remove(self, name: str) -> list[Any]:
        """Remove a query; the others go on as they are. Returns the groups so far of a query with AGG."""
        return remove_query(self, name)

    def finish(self) -> Iterator[Any]:
        """End the input; returns all remaining matches."""
        self.check_ready()
        self._finished = True
        return iter(()) if self.workload is None else self._start_output(self.workload.finish, self.workload)

    @property
    def version(self) -> Version:
        """The point that the state has reached; `snapshot(since=version)` gives what changed after it."""
        return NOTHING if self.workload is None else self.workload.version

    def snapshot(self, since: Version = NOTHING) -> bytes:
        """The state as bytes, to continue from here with `restore`, in this process or another.

        With the version of an earlier state, only what changed since then: new events, new groups, and numbers. If
        queries were added or removed since then, it is the whole state.
        """
        self.check_ready()
        if not isinstance(since, Version):
            raise invalid_argument("since", since, "a version: that of the runtime when the earlier state was saved")
        return save(self.fingerprint, self.workload, since)

    def restore(self, state: bytes, *changes: bytes) -> None:
        """Continue from a snapshot of a runtime with the same queries and settings, and changes that followed it.

        A snapshot that does not fit is refused, and changes nothing.
        """
        load((state, *changes), self)
        if self.workload is not None:
            self.workload.ingest.profile.resumed = True

    def resume(self) -> None:
        """Go on from a state that was restored."""
        self._finished, self._interruption, self._running = False, Interruption(), None

    @cached_property
    def fingerprint(self) -> str:
        """The queries and settings that must be the same to restore a snapshot."""
        return fingerprint_of(self.queries, self.options)

    def check_ready(self) -> None:
        """Refuse calls after the end, and before all matches of the last call were read."""
        if self._finished:
            raise OptionError("the runtime has finished", code="EC406", hint="make a new one for new input")
        self._interruption.check()
        if self._running is not None and self._running.more():
            raise OptionError(
                "the matches of the call before were not read to the end",
                code="EC407",
                hint="for batch in runtime.push(events): …",
            )

    def _start_output(self, run: Callable[[], Iterator[Result]], workload: Workload) -> Iterator[Any]:
        with self._interruption.noted():
            results = run()
        self._running = LookAhead(self._output(results, workload))
        return self._running

    def _output(self, results: Iterator[Result], workload: Workload) -> Iterator[Any]:
        """The results in their public form; warns of probable mistakes after the last one."""
        with self._interruption.noted():
            for name, batch in results:
                yield self.shaped(name, batch)
        if not self._finished:
            self._warn_of_growth(workload)
        if self._adviser is not None and (self._finished or not self.bounded):
            self._adviser.warn(finished=self._finished)

    def _warn_of_zones(self, events: pa.Table, schema: EventSchema) -> None:
        """Warn, once, of constants read as UTC where the time is text with zones."""
        due = {n: q.warnings_if_zoned for n, q in self.bound_queries.items() if q.warnings_if_zoned}
        if due and self.advises and not self._warned_of_zones and has_zones(events.column(schema.time)):
            self._warned_of_zones = True
            for name, problems in due.items():
                for problem in once_each(problems):
                    warn(problem, self.queries[name].text, self.queries[name].source)

    def shaped(self, name: str, batch: pa.RecordBatch) -> Any:
        """A batch of a query's result in its public form."""
        if self.separate:
            return name, batch
        return batch if self.single else long_form(name, batch, self.schema)

    def _warn_of_growth(self, workload: Workload) -> None:
        """Warn, once, of a query that retains many events which no later input lets it drop."""
        if self.bounded or self._warned_of_growth:
            return
        # Without a window, a warning was given at the start.
        problem = growth(workload, windowless=not self.advises)
        if problem is not None:
            self._warned_of_growth = True
            warn(problem)
