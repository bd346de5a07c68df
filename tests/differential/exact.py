"""Cases with numbers and times that floats and microseconds would round, in conditions, keys, orders and results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from decimal import Decimal
from random import Random
from typing import Any

from eventcube.language.syntax import Aggregate, Attribute, Comparison, Item, Literal
from tests.oracle.brute import Event
from tests.oracle.clauses import with_results
from tests.oracle.event import Nanoseconds
from tests.oracle.generate import Case, draw_case
from tests.oracle.quals import chance
from tests.oracle.text import query_to_text

LARGE, HUGE = 2**62, 2**63 + 2**20
TENTH = Decimal("0.0001")
# Columns that are compared with each other.
PAIRS = [
    *(("d", "d"), ("u", "u"), ("w", "w"), ("n", "n"), ("g", "g")) * 2,
    *(("w", "u"), ("u", "w"), ("w", "d"), ("d", "u"), ("g", "s"), ("s", "g"), ("d", "x"), ("u", "y"), ("n", "ts")),
]
CONSTANTS: dict[str, Sequence[Any]] = {
    "d": (LARGE, LARGE + 1, 0.5, -1),
    "u": (0, 2**63 - 1, LARGE + 1),
    "w": (LARGE, LARGE + 1, -LARGE),
    "g": ("a", "b", "é"),
}


def draw_exact_case(rng: Random) -> Case:
    """A case in which much of what is compared, grouped by and returned is long."""
    case = draw_case(rng)
    query = with_results(rng, case.query, case.options) if chance(rng, 50) else case.query
    keyed = chance(rng, 40)
    ordered = rng.choice([None, Decimal, Nanoseconds])
    events = [_lengthened(rng, e, keyed, ordered) for e in case.events]
    query = _changed(rng, query)
    return Case(replace(query, text=query_to_text(query)), events, case.options)


def _lengthened(rng: Random, event: Event, keyed: bool, ordered: type | None) -> Event:
    attrs = {
        **event.attrs,
        "d": rng.choice([LARGE, LARGE + TENTH, LARGE + 1, Decimal("0.5"), Decimal(-1), LARGE - TENTH, None]),
        "u": rng.choice([HUGE, HUGE, HUGE + 1, HUGE + 2, LARGE, LARGE + 1, 0, None]),
        "w": rng.choice([LARGE, LARGE, LARGE + 1, LARGE - 1, -LARGE, 1, None]),
        "n": rng.choice([event.ts * 1000, event.ts * 1000 + 1, 1001, 1999, 2000, -1, None]),
        "g": rng.choice(["a", "b", "é", "it's", None]),
    }
    for name, kind in (("d", Decimal), ("u", Decimal), ("n", Nanoseconds)):
        attrs[name] = None if attrs[name] is None else kind(attrs[name])
    if keyed and attrs["k"] is not None:
        attrs["k"] = Decimal(HUGE + attrs["k"])
    order = event.order
    if ordered is not None and order is not None:
        order = (ordered(HUGE + order[0] if ordered is Decimal else order[0]),)
    return replace(event, attrs=attrs, key=attrs["k"] if event.key is not None else None, order=order)


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
        case Aggregate(function, Attribute(var, "x" | "y" | "k"), alias) if chance(rng, 60):
            return Aggregate(function, Attribute(var, rng.choice("duw")), alias)
        case tuple():
            return tuple(_changed(rng, part) for part in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    return replace(node, **{f.name: _changed(rng, getattr(node, f.name)) for f in fields(node) if f.name != "span"})
