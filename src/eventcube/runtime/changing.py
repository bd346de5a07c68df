"""Queries that are added to a runtime at work, and removed from it, while the others go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from eventcube import markup
from eventcube.engine.reuse.derive import derivation_between
from eventcube.errors import OptionError, did_you_mean
from eventcube.language.syntax import Query
from eventcube.plan.planned import Planned
from eventcube.plan.workload import WorkloadPlan
from eventcube.runtime.queries import check_options, queries_by_name
from eventcube.runtime.shared_result import check_shareable
from eventcube.runtime.watermark import moment_of
from eventcube.runtime.workload import Workload

if TYPE_CHECKING:
    from eventcube.runtime.runtime import Runtime

# The first time that a datetime can be, in microseconds.
_FIRST_TIME = -62_135_596_800_000_000


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """What a runtime says of a query that was added: its result over the past, and from when on that is complete.

    All matches whose events are all from `complete_from` on, a time as events have it, are among `matches` or will be
    reported; None stands for the beginning of the stream. `source` is the query whose kept matches the result was
    computed from, `reused` of them; without a source the query sees the events from its addition on, and `matches` is
    empty.
    """

    name: str
    query: Query
    matches: pa.Table
    complete_from: datetime | int | None
    source: str | None = None
    reused: int = 0

    def __repr__(self) -> str:
        return f"<Answer: {self}>"

    def _repr_html_(self) -> str:
        return markup.page(markup.heading(str(self)), markup.query(str(self.query)))

    def __str__(self) -> str:
        since = "the beginning" if self.complete_from is None else f"{self.complete_from}"
        if self.source is None:
            return f"{self.name}: sees the events from {since} on"
        rows = f"{self.matches.num_rows:,} row{'s' if self.matches.num_rows != 1 else ''}"
        kept = f"{self.reused:,} kept match{'es' if self.reused != 1 else ''}"
        return f"{self.name}: {rows} from {kept} of {self.source}, complete from {since} on"


def add_query(runtime: Runtime, name: str, query: str | Query, source: str | None = None) -> Answer:
    """Add a query; with a coarser one, the source, it is answered from kept matches of that, if they suffice."""
    runtime.check_ready()
    if runtime.single:
        hint = "give the queries by name from the start, as in Runtime({'q1': …})"
        raise OptionError("a runtime made for one query takes no others", code="EC480", hint=hint)
    if name in runtime.queries:
        raise OptionError(f"there is a query {name!r} already", code="EC480", hint="give it another name")
    added = queries_by_name({name: query})
    check_options(added, runtime.options)
    if not runtime.separate:
        check_shareable(added)
    workload = runtime.workload
    if workload is None:
        runtime.set_queries({**runtime.queries, **added})
        return Answer(name, added[name], pa.table({}), None)
    answer = None if source is None else answer_from(runtime, name, added[name], source)
    if answer is not None:
        return answer
    plans = {**runtime.plans, **runtime.plans_of(added, workload.schema)}
    now = workload.now
    together = runtime.plan_together(plans, {**workload.added, name: now})
    _turn_to(runtime, {**runtime.queries, **added}, plans, together)
    # Without any event so far, everything is still to come.
    since = moment_of(now, workload.schema) if workload.ingest.arrived else None
    return Answer(name, added[name], _schema(runtime, workload, name).empty_table(), since)


def answer_from(runtime: Runtime, name: str, query: Query, source: str) -> Answer | None:
    """Add a query that sees all events that its source sees, and answer it from kept matches of that.

    None, and nothing is added, if they do not suffice: it is not coarser, its matches are not kept, or events are
    missing that the new query needs, too.
    """
    workload = runtime.workload
    assert workload is not None
    plans = {**runtime.plans, **runtime.plans_of({name: query}, workload.schema)}
    times = workload.added
    times |= {name: times[source]} if source in times else {}
    together = runtime.plan_together(plans, times)
    derivation = derivation_between(together, plans, source, name)
    if derivation is None or not workload.engine.can_answer(derivation, together):
        return None
    _turn_to(runtime, {**runtime.queries, name: query}, plans, together)
    engine = workload.engine
    since = engine.complete_from(derivation)
    batches = engine.answer(derivation)
    shaped = batches if runtime.separate else (runtime.shaped(name, batch) for batch in batches)
    matches = pa.Table.from_batches(shaped, _schema(runtime, workload, name))
    complete_from = None if since < _FIRST_TIME else moment_of(since, workload.schema)
    reused = engine.queries[name].counters.results_reused
    return Answer(name, query, matches, complete_from, source, reused)


def _schema(runtime: Runtime, workload: Workload, name: str) -> pa.Schema:
    """The columns of a query's result, or of the one that it shares with others."""
    return workload.schemas[name] if runtime.separate else runtime.schema


def remove_query(runtime: Runtime, name: str) -> list[Any]:
    """Remove a query; gives what its result has beside matches that were reported already."""
    runtime.check_ready()
    if name not in runtime.queries:
        hint = did_you_mean(str(name), runtime.queries, "the runtime")
        raise OptionError(f"the runtime has no query {name!r}", code="EC481", hint=hint)
    if len(runtime.queries) == 1:
        raise OptionError("this is the last query", code="EC481", hint="finish() ends the runtime")
    left = {other: query for other, query in runtime.queries.items() if other != name}
    workload = runtime.workload
    if workload is None:
        runtime.set_queries(left)
        return []
    results = [runtime.shaped(name, batch) for batch in workload.engine.queries[name].finish() if batch.num_rows]
    plans = {other: plan for other, plan in runtime.plans.items() if other != name}
    _turn_to(runtime, left, plans, runtime.plan_together(plans, workload.added))
    return results


def settle(runtime: Runtime) -> None:
    """Let queries that were added share the events with others, once no event is left from before that."""
    workload = runtime.workload
    if workload is not None and workload.can_settle:
        _turn_to(runtime, runtime.queries, runtime.plans, runtime.plan_together(runtime.plans, workload.added))


def _turn_to(
    runtime: Runtime, queries: Mapping[str, Query], plans: Mapping[str, Planned], together: WorkloadPlan
) -> None:
    """Go on with these queries."""
    workload = runtime.workload
    assert workload is not None
    workload.turn_to(together)
    runtime.set_queries(queries)
    runtime.use_workload(workload, dict(plans))
