"""What a query reads of the events, and what becomes of its matches: the two ends of a physical plan."""

from __future__ import annotations

from eventcube.language.syntax import CountWindow
from eventcube.plan.dictionary import dictionary_of
from eventcube.plan.logical import LogicalQuery, PredicateClass, regions
from eventcube.plan.physical import EARLIEST, GROUPS, MATCHES, ComponentScan, Scan, SinkPlan
from eventcube.plan.result import result_schema

# No stream is longer, and twice as much still fits 64 bits.
_LONGEST = 2**60


def scan_of(logical: LogicalQuery) -> Scan:
    """The scan of a query: columns, types, local conditions, keys and the window."""
    local = [p for r in regions(logical.region) for p in r.predicates if p.kind is PredicateClass.LOCAL]
    # Nothing equals null, except that a lone event need not equal anything to match.
    alone = len(logical.positive) == 1
    components = tuple(
        ComponentScan(
            slot.types,
            tuple(p.condition for p in local if p.slots == {slot.index}),
            not (alone and slot in logical.positive),
        )
        for slot in logical.slots
    )
    own, window = logical.schema.partition_by, logical.window
    by_count = isinstance(window, CountWindow)
    if isinstance(window, CountWindow):
        width: int | None = min(window.events - 1, _LONGEST)
    else:
        width = None if window is None else window.microseconds
    return Scan(
        logical.columns,
        components,
        dictionary_of(condition for component in components for condition in component.conditions),
        own,
        logical.key,
        (*own, *(k for k in logical.key if k not in own)),
        width,
        by_count,
    )


def sink_of(logical: LogicalQuery, limit: int | None, name: str | None = None) -> SinkPlan:
    """What becomes of the matches; `limit` is one that is set beside that of the query, `name` that of another sink."""
    limits = [n for n in (logical.query.limit, limit) if n is not None]
    least = None if logical.results.agg else min(limits, default=None)
    name = name or (GROUPS if logical.results.agg else MATCHES if least is None else EARLIEST)
    return SinkPlan(name, logical.results, result_schema(logical), least)
