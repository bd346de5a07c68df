"""Queries running in this process: push events, advance time, read matches."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import cached_property
from typing import Any, Unpack

import pyarrow as pa

from eventcube.engine.counters import Counters
from eventcube.engine.counts import RowFindings
from eventcube.engine.reuse.derive import plan_shared
from eventcube.engine.state import NOTHING, Version
from eventcube.engine.time_text import has_zones
from eventcube.errors import Diagnostic, OptionError, warn
from eventcube.language.printer import print_query
from eventcube.language.syntax import Query
from eventcube.options import Options, Settings, invalid_argument, options
from eventcube.plan.advice import once_each, warn_of_conditions
from eventcube.plan.logical import LogicalQuery
from eventcube.plan.planned import plan_query
from eventcube.plan.suspicions import missing_window
from eventcube.runtime.adviser import Adviser, skipped_rows, unlikely_times
from eventcube.runtime.display import runtime_html, runtime_text
from eventcube.runtime.frames import to_arrow
from eventcube.runtime.queries import Queries, check_options, queries_by_name
from eventcube.runtime.restore import load
from eventcube.runtime.shared_result import check_shareable, long_form, long_schema
from eventcube.runtime.snapshot import save
from eventcube.runtime.watermark import microseconds_of
from eventcube.runtime.workload import Result, Workload
from eventcube.schema import EventSchema, check_names, plain_layout
from eventcube.settings import takes_settings

# Warn from this many events that no window ever drops;
_MANY = 100_000
# for windows that count events, only from this many partitions.
_MANY_PARTITIONS = 10_000
# Settings, beside the limit, that must be the same to restore a state.
_SAVED_SETTINGS = ("time", "type", "partition_by", "order_by", "lateness", "time_unit")


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
    ) -> Runtime:
        """A runtime from options that are read already."""
        runtime = cls.__new__(cls)
        runtime._set_up(queries, options, schema, separate, advise)
        return runtime

    def _set_up(
        self, queries: Queries, options: Options, schema: pa.Schema | None, separate: bool, advise: bool
    ) -> None:
        self.options = options
        self.queries = queries_by_name(queries)
        check_options(self.queries, options)
        self.single = isinstance(queries, str | Query)
        self.separate = separate
        self.workload: Workload | None = None
        self.bound_queries: dict[str, LogicalQuery] = {}
        self._running: _Batches | None = None
        self._finished = False
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
        workload, queries = self.plan(columns, Counters())
        self.use_workload(workload, queries)
        return workload

    def plan(self, columns: pa.Schema, counters: Counters) -> tuple[Workload, dict[str, LogicalQuery]]:
        """The queries planned for events with these columns, and bound; the runtime does not change."""
        schema = self.options.schema(plain_layout(columns))
        if not (self.single or self.separate):
            check_shareable(self.queries)
        plans = {n: plan_query(q, schema, self.options) for n, q in self.queries.items()}
        for plan in plans.values():
            check_names(plan.physical.sink.schema.names, "the result has")
        workload = Workload(
            plan_shared(plans, self.options.concepts, self.options.sharing), schema, self.options.lateness, counters
        )
        return workload, {name: plan.bound for name, plan in plans.items()}

    def use_workload(self, workload: Workload | None, queries: dict[str, LogicalQuery]) -> None:
        """Run this workload from now on, and warn of probable mistakes in its queries, once."""
        self.workload, self.bound_queries = workload, queries
        if workload is None or not self.advises:
            return
        for name, logical in queries.items() if self._adviser is None else ():
            for problem in missing_window(logical.query, "the query" if self.single else f"query {name}"):
                warn(problem)
            warn_of_conditions(logical)
        self._adviser = Adviser(list(self.queries.values()), self.options.concepts, workload.ingest.profile)

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
        counted = {name: value for name, value in self.counters.items() if value and name != "rows"}
        lines = ["measured", *(f"  {name:<16}{value:>18,}" for name, value in counted.items())]
        choices = [f"  {line}" for line in self.choices(measured=True)]
        return "\n".join([*lines, *(["choices, by estimated cost", *choices] if choices else [])])

    def choices(self, *, measured: bool = False) -> Iterator[str]:
        """What was chosen and expected, in words: programs, strategies, and what queries share."""
        if self.workload is None:
            return
        for name, query in self.workload.engine.queries.items():
            yield from (line if self.single else f"{name}: {line}" for line in query.choices(measured=measured))
        for group in self.workload.engine.groups:
            yield from group.reuse.summary()
            yield from group.sharing.summary()

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
        return self._start_output(self.workload.advance_to_latest(), self.workload)

    def hold(self, events: Any) -> None:
        """Take events that are not processed before `advance` or `finish`, in whatever order they are."""
        self._check_ready()
        table = to_arrow(events)
        workload = self.workload or self.start(table.schema)
        self._warn_of_zones(table, workload.schema)
        workload.hold(table)

    def advance(self, watermark: int | datetime) -> Iterator[Any]:
        """Advance the watermark: every earlier event has come. Returns the matches that are final now.

        The watermark is a datetime, or microseconds since 1970 in UTC whatever `time_unit` is. A datetime without a
        zone is in that of the time column.
        """
        self._check_ready()
        moment = microseconds_of(watermark, None if self.workload is None else self.workload.schema)
        if self.workload is None:
            raise OptionError("nothing was pushed yet", code="EC405", hint="push first, or give schema=")
        return self._start_output(self.workload.advance(moment), self.workload)

    def finish(self) -> Iterator[Any]:
        """End the input; returns all remaining matches."""
        self._check_ready()
        self._finished = True
        return iter(()) if self.workload is None else self._start_output(self.workload.finish(), self.workload)

    @property
    def version(self) -> Version:
        """The point that the state has reached; `snapshot(since=version)` gives what changed after it."""
        return NOTHING if self.workload is None else self.workload.version

    def snapshot(self, since: Version = NOTHING) -> bytes:
        """The state as bytes, to continue from here with `restore`, in this process or another.

        With the version of an earlier state, only what changed since then: new events, new groups, and numbers.
        """
        self._check_ready()
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
        self._finished, self._running = False, None

    @cached_property
    def fingerprint(self) -> str:
        """The queries and settings that must be the same to restore a snapshot."""
        texts = [f"{name}: {print_query(query)}" for name, query in self.queries.items()]
        concepts = self.options.concepts
        parents = sorted(concepts.parents.items()) if concepts is not None else []
        settings = ", ".join(f"{name}={getattr(self.options, name)!r}" for name in _SAVED_SETTINGS)
        # Any strategy can continue from another's state; states of version 1 write it like this.
        options = f"Options({settings}, strategy=Ways(default='auto', parts={{}}), limit={self.options.limit!r})"
        return f"({texts!r}, {options}, {parents!r})"

    def _check_ready(self) -> None:
        if self._finished:
            raise OptionError("the runtime has finished", code="EC406", hint="make a new one for new input")
        if self._running is not None and self._running.more():
            raise OptionError(
                "the matches of the call before were not read to the end",
                code="EC407",
                hint="for batch in runtime.push(events): …",
            )

    def _start_output(self, results: Iterator[Result], workload: Workload) -> Iterator[Any]:
        self._running = _Batches(self._output(results, workload))
        return self._running

    def _output(self, results: Iterator[Result], workload: Workload) -> Iterator[Any]:
        """The results in their public form; warns of probable mistakes after the last one."""
        for name, batch in results:
            yield self._shaped(name, batch)
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

    def _shaped(self, name: str, batch: pa.RecordBatch) -> Any:
        if self.separate:
            return name, batch
        return batch if self.single else long_form(name, batch, self.schema)

    def _warn_of_growth(self, workload: Workload) -> None:
        """Warn, once, of a query that retains many events which no later input lets it drop."""
        state = workload.engine.state
        if self.bounded or self._warned_of_growth or state.size < _MANY:
            return
        for name, query in workload.plan.queries.items():
            unbounded = query.arrangement.width is None
            # Without a window, a warning was given at the start.
            if (unbounded and self.advises) or state.kept(name) < _MANY:
                continue
            if unbounded:
                why, hint = "has no WITHIN, so all its events are kept for ever", "add, say, WITHIN 10 minutes"
            elif state.partitions(name) >= _MANY_PARTITIONS:
                why = "has a window of events, which never closes for a key without new events, so its events are kept"
                hint = "use a window of time, say, WITHIN 10 minutes"
            else:
                continue
            self._warned_of_growth = True
            warn(Diagnostic("EC500", f"query {name} {why}: {state.kept(name):,} so far", hint=hint))
            return


class _Batches(Iterator[Any]):
    """An iterator of batches with a look-ahead: `more` computes the next one and keeps it."""

    def __init__(self, source: Iterator[Any]) -> None:
        self._source = source
        self._next: Any = None

    def __next__(self) -> Any:
        batch, self._next = self._next, None
        return next(self._source) if batch is None else batch

    def more(self) -> bool:
        if self._next is None:
            self._next = next(self._source, None)
        return self._next is not None
