"""Turn a logical plan into a physical one: scan, program and sink."""

from __future__ import annotations

from eventcube.options import AUTO, REWRITE, StrategyChoice
from eventcube.plan.dictionary import dictionary_of
from eventcube.plan.logical import LogicalQuery, PredicateClass, regions
from eventcube.plan.order import Order
from eventcube.plan.physical import FLAT, NESTED, Alternative, PhysicalQuery
from eventcube.plan.program import ProgramBuilder
from eventcube.plan.progress import Due
from eventcube.plan.scan import scan_of, sink_of
from eventcube.plan.steps import State, Term, is_open, numbered


def build(logical: LogicalQuery, choice: StrategyChoice | None = None, limit: int | None = None) -> PhysicalQuery:
    """The physical plan of a bound query: `choice` names the strategies of its nested parts.

    `limit` is one that is set beside that of the query; aggregates have none.
    """
    order = Order(logical.region, logical.slots, outermost=True)
    forward = any(t.upper.term is Term.WINDOW_END for t in order.tests)
    looks_back = any(t.lower.term is Term.WINDOW_START for t in order.tests)
    # Events are sorted by time, so the part that is due comes first and the rest is sought on one side of it.
    due = Due(forward, frozenset({State.DUE}))
    builder = ProgramBuilder(logical, logical.region, order, choice=choice or StrategyChoice())
    program, end = builder.program(due)
    builder.inlined = (REWRITE, AUTO)
    flat = builder.program(due)[0] if is_open(program) else None
    program, flat = numbered((program, flat))
    scan = scan_of(logical)
    tested = (p for region in regions(logical.region) for p in region.predicates)
    return PhysicalQuery(
        logical.schema,
        scan,
        (Alternative(NESTED, program), *(() if flat is None else (Alternative(FLAT, flat),))),
        dictionary_of(
            p.condition for p in tested if p.kind is not PredicateClass.LOCAL and p.condition not in logical.implied
        ),
        sink_of(logical, limit),
        forward,
        looks_back,
        tuple(slot.index for slot in logical.positive),
        order.earliest(order.all),
        order.latest(order.all),
        tuple(sorted(end.optional)),
    )
