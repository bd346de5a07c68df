"""The generator keeps its word: valid queries, matches enough to tell right from wrong, one case for a seed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import given

from eventcube.language.parse import parse
from eventcube.language.syntax import And, Component, Not, Or, Part, Pattern, Qual, Query, Seq
from tests.oracle.brute import all_variables, evaluate, positive_variables
from tests.oracle.generate import Case, cases, random_case, to_arrow
from tests.oracle.patterns import directly_negated, reachable
from tests.oracle.qualify import conjuncts, variables

SEEDS = range(1000)


def test_a_third_of_the_cases_have_matches() -> None:
    found = [evaluate(q, events, typed=o.typed, concepts=o.concepts) for q, events, o in map(random_case, SEEDS)]
    assert sum(bool(m) for m in found) >= 0.35 * len(SEEDS)


def test_a_seed_always_gives_the_same_case() -> None:
    assert [repr(random_case(seed)) for seed in range(50)] == [repr(random_case(seed)) for seed in range(50)]


def test_text_of_a_query_reads_back_as_the_query() -> None:
    for query, _, _ in map(random_case, SEEDS):
        assert _split(parse(query.text)) == _split(query)


@given(case=cases())
def test_cases_are_valid(case: Case) -> None:
    query, events, _ = case
    assert all(variables(q) <= reachable(query.pattern) for q in query.where)
    names = [c.name for c in _components(query.pattern)]
    assert len(names) == len(set(names))
    for unresolved in _unresolved(query.pattern, set()):
        raise AssertionError(unresolved)
    assert to_arrow(events).num_rows == len(events)


def test_quals_about_negated_parts_stand_beside_them_everywhere() -> None:
    places = {place for seed in range(3000) for place in _beside(random_case(seed).query)}
    assert places == {"in WHERE", "in the list", "in a negation", "about a composite", "about a negation in it"}


def test_negation_stands_in_every_place() -> None:
    places = {place for seed in SEEDS for place in _places(random_case(seed).query.pattern)}
    assert places == {
        *("leading", "inner", "trailing", "neighbouring", "in AND"),
        *("composite", "with an inner negation", "under OR", "nested"),
    }


def _split(query: Query) -> Query:
    """The query with ANDs at the top of its quals taken apart, which says the same."""
    return replace(query, pattern=_split_part(query.pattern), where=tuple(conjuncts(query.where)))


def _split_part(part: Part) -> Any:
    match part:
        case Component():
            return part
        case Not(pattern=pattern, quals=quals):
            return Not(_split_part(pattern), tuple(conjuncts(quals)))
        case Seq(parts=parts, quals=quals) | And(parts=parts, quals=quals) | Or(parts=parts, quals=quals):
            return type(part)(tuple(map(_split_part, parts)), tuple(conjuncts(quals)))


def _components(part: Part) -> Iterator[Component]:
    match part:
        case Component():
            yield part
        case Not(pattern=pattern):
            yield from _components(pattern)
        case Seq(parts=parts) | And(parts=parts) | Or(parts=parts):
            for p in parts:
                yield from _components(p)


def _unresolved(pattern: Pattern, around: set[str]) -> Iterator[Qual | Pattern]:
    """Quals that mention what they cannot see, and operators without a positive part."""
    if isinstance(pattern, Component):
        return
    visible = around | set(positive_variables(pattern))
    if not positive_variables(pattern):
        yield pattern
    yield from (q for q in pattern.quals if not variables(q) <= around | reachable(pattern))
    for part in pattern.parts:
        if isinstance(part, Not):
            yield from (q for q in part.quals if not variables(q) <= visible | reachable(part.pattern))
            yield from _unresolved(part.pattern, visible)
        else:
            yield from _unresolved(part, visible)


def _beside(query: Query) -> Iterator[str]:
    """Where quals stand that belong to a negated part beside them, and what that is like."""
    yield from _about("in WHERE", query.where, query.pattern)
    waiting: list[Pattern] = [query.pattern]
    while waiting:
        pattern = waiting.pop()
        if isinstance(pattern, Component):
            continue
        yield from _about("in the list", pattern.quals, pattern)
        for part in pattern.parts:
            if isinstance(part, Not):
                yield from _about("in a negation", part.quals, part.pattern)
            waiting.append(part.pattern if isinstance(part, Not) else part)


def _about(place: str, quals: tuple[Qual, ...], pattern: Pattern) -> Iterator[str]:
    for part in directly_negated(pattern):
        if any(variables(q) & all_variables(part) for q in quals):
            yield place
            yield from [] if isinstance(part.pattern, Component) else ["about a composite"]
            deeper = all_variables(part) - set(positive_variables(part.pattern))
            yield from ["about a negation in it"] if any(variables(q) & deeper for q in quals) else []


def _places(pattern: Pattern, nested: bool = False, under_or: bool = False) -> Iterator[str]:
    if isinstance(pattern, Component):
        return
    parts = pattern.parts
    for i, part in enumerate(parts):
        inner = part.pattern if isinstance(part, Not) else part
        yield from _places(inner, True, under_or or isinstance(pattern, Or))
        if not isinstance(part, Not):
            continue
        if isinstance(pattern, And):
            yield "in AND"
        else:
            yield "leading" if i == 0 else "trailing" if i == len(parts) - 1 else "inner"
            yield from ["neighbouring"] if i and isinstance(parts[i - 1], Not) else []
        yield from ["nested"] if nested else []
        yield from ["under OR"] if under_or else []
        if not isinstance(inner, Component):
            yield "composite"
            yield from ["with an inner negation"] if any(isinstance(p, Not) for p in inner.parts) else []
