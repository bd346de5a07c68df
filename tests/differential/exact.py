"""Cases with numbers and times that floats and microseconds would round, in conditions, keys, orders and results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from decimal import Decimal
from random import Random
from typing import Any

from eventcube.language.syntax import Aggregate, Attribute, Comparison, Item, Literal, Query
from eventcube.nodes import children
from tests.oracle.brute import Event
from tests.oracle.clauses import with_results
from tests.oracle.event import Nanoseconds, Seconds
from tests.oracle.generate import Case, draw_case
from tests.oracle.quals import chance
from tests.oracle.text import with_text

LARGE, HUGE, LEAST = 2**62, 2**63 + 2**20, -(2**63)
TENTH = Decimal("0.0001")
# Columns that are compared with each other.
PAIRS = [
    *(("d", "d"), ("u", "u"), ("w", "w"), ("n", "n"), ("g", "g")) * 2,
    *(
        ("w", "u"),
        ("u", "w"),
        ("w", "d"),
        ("d", "u"),
        ("g", "s"),
        ("s", "g"),
        ("d", "x"),
        ("u", "y"),
        ("n", "ts"),
        ("f", "n"),
        ("f", "f"),
    ),
]
CONSTANTS: dict[str, Sequence[Any]] = {
    "d": (LARGE, LARGE + 1, 0.5, -1),
    "u": (0, 2**63 - 1, LARGE + 1),
    "w": (LARGE, LARGE + 1, -LARGE, LEAST, LEAST + 1),
    "g": ("a", "b", "é", "__eventcube_rank_1"),
}


def draw_exact_case(rng: Random) -> Case:
    """A case in which much of what is compared, grouped by and returned is long."""
    case = draw_case(rng)
    query = with_results(rng, case.query, case.options) if chance(rng, 50) else case.query
    return Case(with_long_columns(rng, query), lengthened(rng, case.events), case.options)


def lengthened(rng: Random, events: Sequence[Event]) -> list[Event]:
    """The events with long columns, and perhaps long keys and orders."""
    keyed = chance(rng, 40)
    ordered = rng.choice([None, Decimal, Nanoseconds])
    return [_lengthened(rng, e, keyed, ordered) for e in events]


def with_long_columns(rng: Random, query: Query) -> Query:
    """The query with long columns in place of others."""
    # What GROUPBY lists may change, so HAVING must not name it as it is written.
    return with_text(_changed(rng, replace(query, having=tuple(q for q in query.having if not _names_events(q)))))


def _lengthened(rng: Random, event: Event, keyed: bool, ordered: type | None) -> Event:
    attrs = {
        **event.attrs,
        "d": rng.choice([LARGE, LARGE + TENTH, LARGE + 1, Decimal("0.5"), Decimal(-1), LARGE - TENTH, None]),
        "u": rng.choice([HUGE, HUGE, HUGE + 1, HUGE + 2, LARGE, LARGE + 1, 0, None]),
        "w": rng.choice([LARGE, LARGE, LARGE + 1, LARGE - 1, -LARGE, LEAST, LEAST + 1, 1, None]),
        "n": rng.choice([event.ts * 1000, event.ts * 1000 + 1, 1001, 1999, 2000, -1, None]),
        "f": rng.choice([0, 1, -1, 2**42, 2**43, 2**50, -(2**50), None]),
        "g": rng.choice(["a", "b", "é", "it's", "__eventcube_rank_1", None]),
    }
    for name, kind in (("d", Decimal), ("u", Decimal), ("n", Nanoseconds), ("f", Seconds)):
        attrs[name] = None if attrs[name] is None else kind(attrs[name])
    if keyed and attrs["k"] is not None:
        attrs["k"] = Decimal(HUGE + attrs["k"])
    order = event.order
    if ordered is not None and order is not None and isinstance(order[0], int):
        order = (ordered(HUGE + order[0] if ordered is Decimal else order[0]),)
    return replace(event, attrs=attrs, key=attrs["k"] if event.key is not None else None, order=order)


def _names_events(node: object) -> bool:
    """Whether a condition on groups speaks of an event's attribute outside of an aggregate."""
    if isinstance(node, Attribute | Aggregate):
        return isinstance(node, Attribute)
    return any(map(_names_events, children(node)))


def _changed(rng: Random, node: Any) -> Any:
    """The node with long columns in place of others, where that makes sense."""
    match node:
        case Comparison(op, Attribute(left), Attribute(right)) if chance(rng, 70):
            one, other = rng.choice(PAIRS)
            return Comparison(op, Attribute(left, one), Attribute(right, other))
        case Comparison(op, Attribute(var), Literal()) if chance(rng, 60):
            name = rng.choice(list(CONSTANTS))
            return Comparison(op, Attribute(var, name), Literal(rng.choice(CONSTANTS[name])))
        case Attribute(var, "x") if chance(rng, 25):
            return Attribute(var, "w")
        case Item(Attribute(var, "x" | "y" | "s"), alias) if chance(rng, 60):
            return Item(Attribute(var, rng.choice("duwg")), alias)
        case Query(agg=agg) if agg and chance(rng, 30):
            # Only groups: RETURN gives times as they are.
            times = tuple(
                Item(Attribute(i.value.var, rng.choice("nf")), i.alias) if isinstance(i.value, Attribute) else i
                for i in node.group_by
            )
            return _fields_changed(rng, replace(node, group_by=times))
        case Aggregate("MIN" | "MAX" | "COUNT" as function, Attribute(var, "s" | "b" | "ts"), alias, distinct):
            return Aggregate(function, Attribute(var, rng.choice("nf")), alias, distinct)
        case Aggregate(function, Attribute(var, "x" | "y" | "k"), alias, distinct) if chance(rng, 60):
            return Aggregate(function, Attribute(var, rng.choice("duw")), alias, distinct)
        case tuple():
            return tuple(_changed(rng, part) for part in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    return _fields_changed(rng, node)


def _fields_changed(rng: Random, node: Any) -> Any:
    return replace(node, **{f.name: _changed(rng, getattr(node, f.name)) for f in fields(node) if f.name != "span"})
