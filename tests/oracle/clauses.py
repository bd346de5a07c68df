"""Random RETURN, GROUPBY and AGG clauses for a query that was drawn without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from eventcube.language.syntax import (
    Aggregate,
    AnyOf,
    Arithmetic,
    Attribute,
    Call,
    Column,
    Comparison,
    Every,
    IsNull,
    Item,
    Level,
    Literal,
    NotQual,
    Qual,
    Query,
    Value,
    Variable,
)
from tests.oracle.brute import positive_variables
from tests.oracle.generate import Options
from tests.oracle.patterns import always_first, always_last, looks_ahead
from tests.oracle.quals import ARITHMETIC, LOOSE, TICK, chance, random_function, random_text
from tests.oracle.text import with_text


def with_results(rng: Random, query: Query, options: Options) -> Query:
    """The query with a RETURN (and now and then a LIMIT), or with AGG and perhaps GROUPBY."""
    if chance(rng, 50):
        return with_groups(rng, query, options)
    limit = rng.randint(1, 5) if chance(rng, 25) else None
    returns = _returns(rng, positive_variables(query.pattern), options)
    return with_text(replace(query, returns=returns, group_by=(), agg=(), per=None, having=(), limit=limit))


def with_groups(rng: Random, query: Query, options: Options) -> Query:
    """The query with AGG, and perhaps GROUPBY or PER."""
    names = positive_variables(query.pattern)
    group_by, agg, per = _groups(rng, names, options), _aggregates(rng, names), None
    if (ends := ends_of(query)) and chance(rng, 35):
        group_by, per = (), Variable(rng.choice(ends))
    having = _having(rng, names, group_by, agg) if chance(rng, 35) else ()
    return with_text(replace(query, group_by=group_by, agg=agg, per=per, having=having, returns=(), limit=None))


# Lengths of buckets: some divide an hour, some are longer than the events of a case last.
LENGTHS = (
    *(n * TICK for n in (1, 2, 4, 5, 7, 7, 11, 10)),
    *(n * 60_000 * TICK for n in (15, 60, 90, 1440, 2000, 10080)),
)


def ends_of(query: Query) -> list[str]:
    """The variables that PER can name: of the first event, or of the last where nothing looks ahead."""
    first, last = always_first(query.pattern), always_last(query.pattern)
    ends = [first, None if looks_ahead(query.pattern) else last]
    return [name for name in ends if name is not None]


def _returns(rng: Random, names: Sequence[str], options: Options) -> tuple[Item, ...]:
    items: list[Value | Variable | Level | Every] = [
        Variable(rng.choice(names)) if chance(rng, 25) else _any_value(rng, names) for _ in range(rng.randint(1, 4))
    ]
    if chance(rng, 10):
        items.append(_every(rng, names))
    if options.concepts and chance(rng, 30):
        items.append(_level(rng, names))
    return tuple(Item(item, f"r{i}") for i, item in enumerate(items))


def _groups(rng: Random, names: Sequence[str], options: Options) -> tuple[Item, ...]:
    items: list[Value | Variable | Level | Every] = [
        Variable(rng.choice(names)) if options.typed and chance(rng, 35) else _any_value(rng, names)
        for _ in range(rng.choice([0, 1, 1, 1, 2]))
    ]
    if chance(rng, 40):
        # Mostly groups that are final before the input ends.
        items = [_every(rng, names), *rng.sample(items, rng.randint(0, len(items)))]
    if options.concepts and chance(rng, 40):
        items.append(_level(rng, names))
    return tuple(Item(item, f"g{i}") for i, item in enumerate(items))


def _every(rng: Random, names: Sequence[str]) -> Every:
    time: Value = Attribute(rng.choice(names), "ts" if chance(rng, 80) else "t")
    if chance(rng, 10):
        time = Call("COALESCE", (time, Attribute(rng.choice(names), "ts")))
    return Every(time, rng.choice(LENGTHS))


def _level(rng: Random, names: Sequence[str]) -> Level:
    return Level(rng.choice(names), rng.choice([1, 1, 2, 3]))


def _having(rng: Random, names: Sequence[str], group_by: Sequence[Item], agg: Sequence[Aggregate]) -> tuple[Qual, ...]:
    """Conditions on the groups: on columns by name, on what GROUPBY lists, on aggregates listed or not."""
    numbers = [a for a in agg if a.function == "COUNT"]
    quals: list[Qual] = [Comparison(rng.choice(LOOSE), Aggregate("COUNT"), Literal(rng.choice([1, 2, 3])))]
    for _ in range(rng.randint(0, 2)):
        hidden = Aggregate(rng.choice(["SUM", "AVG", "MIN", "MAX"]), Attribute(rng.choice(names), rng.choice("xyk")))
        some: list[Value] = [hidden, Aggregate("COUNT", Attribute(rng.choice(names), "s"), distinct=True)]
        some += [Column(a.alias or "") for a in numbers] + [replace(a, alias=None) for a in numbers]
        left: Value = rng.choice(some)
        if chance(rng, 30):
            left = Call("COALESCE", (Call("ABS", (left,)), Literal(0)))
        qual: Qual = Comparison(rng.choice(LOOSE), left, rng.choice([*some, Literal(1), Literal(0.5)]))
        quals.append(rng.choice([qual, qual, NotQual(qual), IsNull(left), AnyOf((qual, quals[0]))]))
    for item in group_by:
        if isinstance(item.value, Attribute) and chance(rng, 50):
            own: Value = item.value if chance(rng, 50) else Column(item.alias or "")
            quals.append(NotQual(IsNull(own)) if item.value.name in "bt" else Comparison("=", own, item.value))
        if isinstance(item.value, Variable) and chance(rng, 50):
            quals.append(Comparison("!=", Column(item.alias or ""), Literal("A")))
    return tuple(rng.sample(quals, rng.randint(1, min(3, len(quals)))))


def _aggregates(rng: Random, names: Sequence[str]) -> tuple[Aggregate, ...]:
    found = []
    for i in range(rng.choice([1, 1, 2, 3])):
        function = rng.choice(["COUNT", "COUNT", "DISTINCT", "SUM", "AVG", "MIN", "MAX"])
        argument: Value | None
        if function == "DISTINCT":
            found.append(Aggregate("COUNT", _any_value(rng, names), f"agg{i}", distinct=True))
            continue
        if function == "COUNT" and chance(rng, 60):
            argument = None
        elif function in ("SUM", "AVG"):
            argument = _delay(rng, names) if chance(rng, 25) else _number(rng, names)
        else:
            argument = _any_value(rng, names)
        found.append(Aggregate(function, argument, f"agg{i}"))
    return tuple(found)


def _any_value(rng: Random, names: Sequence[str]) -> Value:
    match rng.randint(0, 8):
        case 0:
            return _number(rng, names)
        case 1:
            return _delay(rng, names)
        case 2:
            return random_text(rng, names, ())
        case 3:
            return random_function(rng, names, ())
        case 4:
            moment = Attribute(rng.choice(names), "t")
            return (
                Call("DATE", (moment,))
                if chance(rng, 60)
                else Call("COALESCE", (moment, Attribute(rng.choice(names), "t")))
            )
        case _:
            return Attribute(rng.choice(names), rng.choice(["x", "y", "s", "b", "k", "ts", "t"]))


def _number(rng: Random, names: Sequence[str]) -> Value:
    if chance(rng, 20):
        return random_function(rng, names, ())
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
