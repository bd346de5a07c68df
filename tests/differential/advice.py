"""What is said of a condition or a window is so: something that plainly does the same takes its place.

A condition that never holds can as well fail, one that always holds never fails, one that is never applied may be any,
and what fits no window is bound by no match.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import reduce
from random import Random
from typing import Any
from unittest.mock import patch

from eventcube.concepts.concepts import Concepts
from eventcube.errors import Diagnostic
from eventcube.language.parse import parse
from eventcube.language.syntax import (
    And,
    AnyOf,
    Arithmetic,
    Attribute,
    Call,
    Comparison,
    Component,
    CountWindow,
    Duration,
    In,
    Like,
    Literal,
    Not,
    NotQual,
    Or,
    Pattern,
    Qual,
    Query,
    Seq,
    Value,
)
from eventcube.language.tree import attributes
from eventcube.nodes import transform
from eventcube.options import options
from eventcube.plan.advice import advise
from eventcube.plan.bind import bind
from tests.differential.compare import DisagreementError, Key, oracle_matches
from tests.oracle import patterns
from tests.oracle.brute import positive_variables
from tests.oracle.generate import Case, draw_case, draw_tangled_case, to_arrow
from tests.oracle.quals import COMPARISONS, TEXTS, TICK, chance, random_qual
from tests.oracle.text import query_to_text

NEVER, ALWAYS, EXCLUSIVE, UNAPPLIED, ONE_TEXT, SMALL = "EC511", "EC512", "EC513", "EC514", "EC516", "EC517"
# Some that nothing is like, and some that is.
PARTS_OF_TIMES = {
    "MONTH": (0, 1, 12, 13),
    "DAY": (0, 31),
    "WEEKDAY": (0, 7, 8),
    "HOUR": (0, 23, 24),
    "MINUTE": (59, 60),
}
TYPES = ("A", "B", "C", "D", "P", "R", "U")


def draw_pointed_case(rng: Random) -> Case:
    """A case rich in conditions and windows that are decided before any event is seen."""
    with patch.object(patterns, "random_qual", pointed_qual):
        case = draw_tangled_case(rng) if chance(rng, 25) else draw_case(rng)
    if chance(rng, 20):
        # A window about as large as a match, and often nothing else that bounds it.
        most = len(positive_variables(case.query.pattern))
        query = replace(case.query, within=CountWindow(rng.randint(max(1, most - 3), most)))
        query = query if chance(rng, 30) else replace(transform(query, _without_quals), where=())
        case = case._replace(query=replace(query, text=query_to_text(query)))
    return case


def _without_quals(node: Any) -> Any:
    return replace(node, quals=()) if isinstance(node, Seq | And | Or | Not) and node.quals else node


def pointed_qual(rng: Random, own: Sequence[str], outer: Sequence[str]) -> Qual:
    """A condition on a time between two events, of one value with a constant, or of several variables; else any."""
    var, other = rng.choice(own), rng.choice([*own, *outer])
    op = rng.choice(COMPARISONS)
    match rng.randint(0, 8):
        case 0:
            gap = Arithmetic("-", Attribute(var, "ts"), Attribute(other, "ts"))
            return Comparison(op, gap, Duration(rng.choice([0, 0, 1, 2, 4, 8, 12]) * TICK))
        case 1:
            moved = Arithmetic(rng.choice("+-"), Attribute(var, "ts"), Duration(rng.choice([0, 1, 4, 8]) * TICK))
            return Comparison(op, moved, Attribute(other, "ts"))
        case 2:
            name, constants = rng.choice([("x", (0, 1, 2, 0.5)), ("y", (0, 1.0, 0.5)), ("s", TEXTS), ("b", (True,))])
            op = rng.choice(["=", "!="]) if name == "b" else op
            found: Qual = Comparison(op, Attribute(var, name), Literal(rng.choice(constants)))
            return AnyOf((found, pointed_qual(rng, own, outer))) if chance(rng, 10) else found
        case 3 if chance(rng, 20):
            return Comparison(op, Literal(rng.randint(0, 2)), Literal(rng.randint(0, 2)))
        case 4:
            function, numbers = rng.choice([*PARTS_OF_TIMES.items(), ("LENGTH", (-1, 0, 1)), ("ABS", (-0.5, 0))])
            name = {"LENGTH": "s", "ABS": "x"}.get(function, rng.choice(["ts", "t"]))
            part = Comparison(op, Call(function, (Attribute(var, name),)), Literal(rng.choice(numbers)))
            return NotQual(part) if chance(rng, 20) else part
        case 5:
            types = tuple(Literal(t) for t in rng.sample(TYPES, rng.randint(1, 3)))
            kind = Attribute(var, "type")
            typed: list[Qual] = [In(kind, types), Comparison(op, kind, types[0])]
            typed += [NotQual(typed[0]), Comparison(rng.choice(["=", "!="]), kind, Attribute(other, "type"))]
            return rng.choice(typed)
        case 6:
            name = rng.choice(["x", "s"])
            if chance(rng, 50):
                return AnyOf(tuple(Comparison("=", Attribute(v, name), Attribute(other, name)) for v in own[:2]))
            first = Call("COALESCE", (Attribute(own[0], name), Attribute(own[-1], name)))
            return Comparison(op, first, Attribute(other, name))
        case 7 if chance(rng, 30):
            return Like(Attribute(var, "s"), rng.choice(["a*", "?", "a", "B?", "a%*"]))
        case _:
            return random_qual(rng, own, outer)


def check_advice(case: Case, rng: Random) -> int:
    """How many conditions were said to be decided; each is put to the test."""
    query = parse(case.query.text)
    given = case.options
    columns = options(
        type="type" if given.typed else None,
        order_by="o" if given.ordered else None,
        partition_by="k" if given.partitioned else None,
    ).schema(to_arrow(case.events).schema)
    concepts = Concepts.from_parents(given.concepts) if given.concepts else None
    found = [d for d in advise(bind(query, columns, concepts)) if d.code in _CHECKS]
    for problem in found:
        one, other = (Counter(_matches(q, case)) for q in _CHECKS[problem.code](query, problem))
        if one != other:
            raise DisagreementError(f"{problem.message}\n{case.query.text}\n{given}\n{case.events}")
    return len(found)


def _matches(query: Query | None, case: Case) -> list[Key]:
    return [] if query is None else oracle_matches(query, case.events, case.options)


# Two queries with the same matches if what is said is so; None is one that has none.
Pair = tuple[Query | None, Query | None]


def _never(query: Query, problem: Diagnostic) -> Pair:
    return query, _changed(query, problem, _failing)


def _always(query: Query, problem: Diagnostic) -> Pair:
    # What never fails, negated never holds.
    return _changed(query, problem, NotQual), _changed(query, problem, _failing)


def _unapplied(query: Query, problem: Diagnostic) -> Pair:
    # If it were applied to a match, to fail would matter.
    return _changed(query, problem, _holding), _changed(query, problem, _failing)


def _one_text(query: Query, problem: Diagnostic) -> Pair:
    def equality(qual: Qual) -> Qual:
        assert isinstance(qual, Like)
        return Comparison("=", qual.value, Literal(qual.pattern))

    return query, _changed(query, problem, equality)


def _small(query: Query, problem: Diagnostic) -> Pair:
    """Nothing matches, or what matches are the other alternatives."""
    if query.within is not None and query.within.span == problem.span:
        return replace(query, limit=None), None

    def others(node: Any) -> Any:
        if not isinstance(node, Or) or problem.span not in [part.span for part in node.parts]:
            return node
        # The variables stay, and with them the columns of the matches.
        return replace(
            node, parts=tuple(_impossible(part) if part.span == problem.span else part for part in node.parts)
        )

    return query, _rewritten(query, others)


def _impossible(part: Pattern) -> Pattern:
    """The part with a condition that fails."""
    quals = (Comparison("=", Literal(1), Literal(2)),)
    if isinstance(part, Component):
        return Seq((part,), quals)
    return replace(part, quals=(*part.quals, *quals))


_CHECKS: dict[str, Callable[[Query, Diagnostic], Pair]] = {
    NEVER: _never,
    ALWAYS: _always,
    EXCLUSIVE: _never,
    UNAPPLIED: _unapplied,
    ONE_TEXT: _one_text,
    SMALL: _small,
}


def _changed(query: Query, problem: Diagnostic, change: Callable[[Qual], Qual]) -> Query:
    """The query with another condition in the place of the one that is spoken of."""
    places: list[Qual] = []

    def at_place(node: Any) -> Any:
        if not isinstance(node, Qual) or node.span != problem.span:
            return node
        places.append(node)
        return change(node)

    changed = _rewritten(query, at_place)
    assert len(places) == 1, (problem, query.text)
    assert isinstance(changed, Query)
    return changed


def _failing(qual: Qual) -> Qual:
    """A condition on the same variables that plainly fails."""
    return Comparison("!=", _zero(qual), Duration(0))


def _holding(qual: Qual) -> Qual:
    """A condition on the same variables that plainly holds."""
    return Comparison("=", _zero(qual), Duration(0))


def _zero(qual: Qual) -> Value:
    zeros: list[Value] = [
        Arithmetic("-", Attribute(v, "ts"), Attribute(v, "ts")) for v in sorted({a.var for a in attributes(qual)})
    ]
    return reduce(lambda one, other: Arithmetic("+", one, other), zeros) if zeros else Duration(0)


def _rewritten(node: Any, change: Callable[[Any], Any]) -> Any:
    changed = change(node)
    if changed is not node or not is_dataclass(node):
        return changed
    values = {f.name: getattr(node, f.name) for f in fields(node)}
    return replace(
        node,  # type: ignore[type-var]
        **{
            name: tuple(_rewritten(v, change) for v in value) if isinstance(value, tuple) else _rewritten(value, change)
            for name, value in values.items()
        },
    )
