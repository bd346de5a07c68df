"""The scan and the sink of a query: the two ends of a physical plan."""

from __future__ import annotations

from eventcube.language.syntax import CountWindow
from eventcube.plan.closing import ClosingKey
from eventcube.plan.counting import Counting, NoCounting, counting_of
from eventcube.plan.dictionary import dictionary_of
from eventcube.plan.logical import LogicalQuery, PredicateClass, regions
from eventcube.plan.physical import (
    EARLIEST,
    GROUPS,
    MADE,
    MATCHES,
    PER_EVENT,
    TOTALS,
    TOTALS_PER_EVENT,
    ComponentScan,
    Scan,
    SinkPlan,
)
from eventcube.plan.result import result_schema

# No stream is longer, and twice this still fits 64 bits.
_MAX_WIDTH = 2**60


def scan_of(logical: LogicalQuery) -> Scan:
    """The scan of a query: columns, types, local conditions, keys and the window."""
    local = [p for r in regions(logical.region) for p in r.predicates if p.kind is PredicateClass.LOCAL]
    # An event with a null key matches no other, but a single event needs no other.
    single = len(logical.positive) == 1
    components = tuple(
        ComponentScan(
            slot.types,
            tuple(p.condition for p in local if p.slots == {slot.index}),
            not (single and slot in logical.positive),
        )
        for slot in logical.slots
    )
    partition_by, window = logical.schema.partition_by, logical.window
    by_count = isinstance(window, CountWindow)
    if isinstance(window, CountWindow):
        width: int | None = min(window.events - 1, _MAX_WIDTH)
    else:
        width = None if window is None else window.microseconds
    return Scan(
        logical.columns,
        components,
        dictionary_of(condition for component in components for condition in component.conditions),
        partition_by,
        logical.key,
        (*partition_by, *(k for k in logical.key if k not in partition_by)),
        width,
        by_count,
    )


def sink_of(
    logical: LogicalQuery,
    limit: int | None,
    name: str | None = None,
    closing: tuple[ClosingKey, ...] = (),
    *,
    forward: bool = False,
) -> SinkPlan:
    """The sink of a query, or the one of that name; `limit` applies in addition to the LIMIT of the query.

    `forward`: its matches are due by their first event.
    """
    limits = [n for n in (logical.query.limit, limit) if n is not None]
    least = None if logical.results.agg else min(limits, default=None)
    counting = counting_of(logical, forward=forward) if logical.results.agg and name in (None, *MADE) else None
    if name is None:
        name = _aggregating(logical, counting) if logical.results.agg else MATCHES if least is None else EARLIEST
    return SinkPlan(name, logical.results, result_schema(logical), least, closing=closing, counting=counting)


def _aggregating(logical: LogicalQuery, counting: Counting | NoCounting | None) -> str:
    """The sink for aggregates, which makes no matches if it can."""
    if logical.results.per is None:
        return TOTALS if isinstance(counting, Counting) else GROUPS
    return TOTALS_PER_EVENT if isinstance(counting, Counting) else PER_EVENT
