"""Random RETURN, GROUPBY and AGG clauses for a query that was drawn without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from eventcube.language.syntax import Aggregate, Arithmetic, Attribute, Item, Literal, Query, Value, Variable
from tests.oracle.brute import positive_variables
from tests.oracle.generate import Options
from tests.oracle.quals import ARITHMETIC, chance
from tests.oracle.text import query_to_text


def with_results(rng: Random, query: Query, options: Options) -> Query:
    """The query with a RETURN (and now and then a LIMIT), or with AGG and perhaps GROUPBY."""
    names = positive_variables(query.pattern)
    if chance(rng, 50):
        changed = replace(
            query, group_by=_groups(rng, names, options), agg=_aggregates(rng, names), returns=(), limit=None
        )
    else:
        limit = rng.randint(1, 5) if chance(rng, 25) else None
        changed = replace(query, returns=_returns(rng, names), group_by=(), agg=(), limit=limit)
    return replace(changed, text=query_to_text(changed))


def _returns(rng: Random, names: Sequence[str]) -> tuple[Item, ...]:
    items: list[Value | Variable] = [
        Variable(rng.choice(names)) if chance(rng, 25) else _any_value(rng, names) for _ in range(rng.randint(1, 4))
    ]
    return tuple(Item(item, f"r{i}") for i, item in enumerate(items))


def _groups(rng: Random, names: Sequence[str], options: Options) -> tuple[Item, ...]:
    items: list[Value | Variable] = [
        Variable(rng.choice(names)) if options.typed and chance(rng, 35) else _any_value(rng, names)
        for _ in range(rng.choice([0, 1, 1, 1, 2]))
    ]
    return tuple(Item(item, f"g{i}") for i, item in enumerate(items))


def _aggregates(rng: Random, names: Sequence[str]) -> tuple[Aggregate, ...]:
    found = []
    for i in range(rng.choice([1, 1, 2, 3])):
        function = rng.choice(["COUNT", "COUNT", "SUM", "AVG", "MIN", "MAX"])
        argument: Value | None
        if function == "COUNT" and chance(rng, 60):
            argument = None
        elif function in ("SUM", "AVG"):
            argument = _delay(rng, names) if chance(rng, 25) else _number(rng, names)
        else:
            argument = _any_value(rng, names)
        found.append(Aggregate(function, argument, f"a{i}"))
    return tuple(found)


def _any_value(rng: Random, names: Sequence[str]) -> Value:
    match rng.randint(0, 5):
        case 0:
            return _number(rng, names)
        case 1:
            return _delay(rng, names)
        case _:
            return Attribute(rng.choice(names), rng.choice(["x", "y", "s", "b", "k", "ts"]))


def _number(rng: Random, names: Sequence[str]) -> Value:
    value: Value = Attribute(rng.choice(names), rng.choice(["x", "x", "y", "k"]))
    if chance(rng, 50):
        other: Value = Attribute(rng.choice(names), rng.choice(["x", "y", "k"]))
        value = Arithmetic(
            rng.choice(ARITHMETIC), value, Literal(rng.choice([2, 3, 0.5])) if chance(rng, 40) else other
        )
    return value


def _delay(rng: Random, names: Sequence[str]) -> Value:
    delay: Value = Arithmetic("-", Attribute(rng.choice(names), "ts"), Attribute(rng.choice(names), "ts"))
    return Arithmetic(rng.choice(["*", "/"]), delay, Literal(2)) if chance(rng, 25) else delay
