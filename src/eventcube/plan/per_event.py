"""AGG … PER: one row for each event of a component, whose matches must all be final at once."""

from __future__ import annotations

from eventcube.errors import Diagnostic
from eventcube.plan.functions import Report
from eventcube.plan.logical import LogicalQuery
from eventcube.plan.order import Order
from eventcube.plan.steps import Term


def looks_ahead(order: Order) -> bool:
    """Whether a negated part is sought up to the end of the window."""
    return any(test.upper.term is Term.WINDOW_END for test in order.tests)


def is_per_first(logical: LogicalQuery, order: Order) -> bool:
    """Whether PER names the first component, whose matches are all there once its window has closed."""
    per = logical.results.per
    return per is not None and order.latest(order.all) != (per.slot,)


def check_per(logical: LogicalQuery, report: Report) -> None:
    """Report a component after PER whose matches do not become final together."""
    variable, per = logical.query.per, logical.results.per
    assert variable is not None
    assert per is not None
    order = Order(logical.region, logical.slots, outermost=True)
    first, last = order.earliest(order.all), order.latest(order.all)
    if per.slot in first and len(first) == 1:
        return
    if per.slot not in last or len(last) > 1:
        message = f"{variable.name!r} is neither the first event of every match nor the last"
        ends = [slots[0] for slots in (first, last) if len(slots) == 1]
        names = " or ".join(logical.slots[slot].name for slot in dict.fromkeys(ends))
        hint = (
            f"PER takes one that is: {names}"
            if names
            else "PER takes one that is, as a and c are in SEQ(A a, B b, C c)"
        )
        report(Diagnostic("EC229", message, variable.span, hint))
    elif looks_ahead(order):
        message = f"the matches that end with one event {variable.name!r} do not become final together"
        hint = "a negated part at the end looks ahead from the first event: leave it out"
        if len(first) == 1:
            hint += f", or write PER {logical.slots[first[0]].name}"
        report(Diagnostic("EC231", message, variable.span, hint))
