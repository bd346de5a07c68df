"""The plan of a query in words."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pyarrow as pa

from eventcube.language.printer import print_qual, print_query, print_window
from eventcube.language.syntax import CountWindow, Query
from eventcube.options import AUTO, FLA, PRC, Options
from eventcube.plan.counting import MOST_SPLITS, Counting, NoCounting
from eventcube.plan.flat_queries import flat_lines
from eventcube.plan.logical import LogicalQuery, PredicateClass, Region, regions
from eventcube.plan.never_applied import no_match_has
from eventcube.plan.physical import MADE, Alternative
from eventcube.plan.planned import Planned, plan_query
from eventcube.plan.result import result_schema
from eventcube.plan.stages import Move
from eventcube.plan.step_text import step_lines
from eventcube.plan.steps import BindClusters, Nested

# An AND of many components has as many programs, each as long.
MAX_STEP_LINES = 400


def explain(query: Query, columns: pa.Schema, options: Options) -> str:
    """How a query would run over events with these columns: keys, predicates by class, steps, and the result."""
    return plan_text(plan_query(query, options.schema(columns), options))


def plan_text(plan: Planned) -> str:
    """A plan in words."""
    return "\n".join(_lines(plan))


def _lines(plan: Planned) -> Iterator[str]:
    logical = plan.logical
    yield print_query(logical.query)
    yield ""
    window = "none: every event can matter to every other" if logical.window is None else print_window(logical.window)
    yield f"window      {window}"
    yield f"split by    {_split(logical)}"
    yield f"reads       {', '.join(logical.columns) or 'no column beyond time and type'}"
    when = "once the window of a match has closed" if plan.physical.forward else "at the last event of a match"
    yield f"reports     {when}"
    if plan.physical.sink.closing:
        yield "groups      each once the watermark tells that no match to come can fall into it"
    yield f"rules       {', '.join(plan.rules) or 'none applied'}"
    yield from _sequences(plan)
    counting = plan.physical.sink.counting
    makes_none = plan.physical.sink.name in MADE
    if isinstance(counting, NoCounting) or makes_none:
        yield from _aggregates(counting)
    yield "predicates"
    predicates = [line for region in regions(logical.region) for line in _predicates(region, plan)]
    yield from predicates or ["  none"]
    if makes_none and isinstance(counting, Counting):
        yield "stages"
        yield from _stages(counting, logical)
    else:
        yield from _steps(plan)
    yield "result"
    for field in result_schema(logical):
        yield f"  {field.name}: {field.type}"


def _steps(plan: Planned) -> Iterator[str]:
    yield "steps"
    steps = step_lines(plan.physical.program, plan.logical, 1)
    yield from islice(steps, MAX_STEP_LINES)
    if next(steps, None) is not None:
        yield "  … and more of them"
    for alternative in plan.physical.alternatives[1:]:
        yield f"  or {alternative.name}, if that should cost less: {_difference(alternative, plan.logical)}"
    yield from flat_lines(plan.logical, plan.choice)


def _difference(alternative: Alternative, query: LogicalQuery) -> str:
    """What an alternative does otherwise than the first one."""
    if alternative.flat == FLA:
        linked = [s.bind.slot for s in alternative.program if isinstance(s, BindClusters) and s.links]
        return f"events of {', '.join(query.slots[slot].name for slot in linked)} with the same links as one"
    if alternative.flat == PRC:
        parts = [s.name for s in alternative.program if isinstance(s, Nested) and s.strategy == PRC]
        return f"the partial matches of ({', '.join(parts)}) kept"
    return "the nested parts bound like the rest"


def _sequences(plan: Planned) -> Iterator[str]:
    """The flat strategy that was asked for, and why another one takes its place."""
    asked = plan.flat_strategy
    if plan.physical.unsuited is not None:
        yield f"sequences   by sase, as {asked} has nothing to do: {plan.physical.unsuited}"
    elif asked != AUTO:
        yield f"sequences   by {asked}"


def _aggregates(counting: Counting | NoCounting | None) -> Iterator[str]:
    """Whether aggregates are computed without making matches, and if not, why."""
    if isinstance(counting, NoCounting):
        yield f"aggregates  from all matches, one by one: {'; '.join(counting.reasons)}"
    elif counting is not None:
        direction = "from the last event to the first" if counting.forward else "in the order of time"
        yield f"aggregates  without making matches: counted by stages, {direction}"


def _stages(counting: Counting, logical: LogicalQuery) -> Iterator[str]:
    """How events take matches from one stage to the next."""
    stages = counting.stages
    names = {0: "nothing", stages.final: "all"}
    for step in reversed(stages.steps):
        slot = logical.slots[step.slot]
        if isinstance(step, Move):
            start, end = (names.get(stage, f"stage {stage}") for stage in (step.start, step.end))
            yield f"  {slot.name}: from {start} to {end}"
        else:
            yield f"  !{slot.name}: ends what waits in {names.get(step.stage, f'stage {step.stage}')}"
    split = ", ".join(logical.slots[slot].name for slot in counting.split)
    if split:
        yield f"  once for each group of {split}; where these are more than {MOST_SPLITS}, all matches are made"


def _split(logical: LogicalQuery) -> str:
    """The columns that the work is split by; a window of events counts those of all keys, so no key splits it."""
    partition = logical.schema.partition_by
    if isinstance(logical.window, CountWindow):
        return ", ".join(partition) or "nothing (a window of events is split only by partition_by)"
    key = (*partition, *(k for k in logical.key if k not in partition))
    return ", ".join(key) or "nothing (no equality covers all components)"


def _predicates(region: Region, plan: Planned) -> Iterator[str]:
    for predicate in region.predicates:
        where = "" if region.index == plan.logical.region.index else " (in a negated part)"
        use = {PredicateClass.LOCAL: " before any join"}.get(predicate.kind, "")
        yield f"  {predicate.kind.value:<9} {print_qual(predicate.qual)}{where}{use}"
    for predicate in region.never_applied:
        yield f"  {'never':<9} {print_qual(predicate.qual)}: not applied, as {no_match_has(predicate, plan.logical)}"
