"""Long streams through small windows in small batches: what a run keeps is dropped again and again, key by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from eventcube.language.syntax import And, CountWindow, Not, Or, Part, Pattern, Query, Seq, TimeWindow
from tests.oracle.brute import Event, positive_variables
from tests.oracle.generate import ORDERS, Case, Options, arrived, draw_event
from tests.oracle.patterns import LEAVES, PatternMaker, random_quals, with_correlation, with_quals
from tests.oracle.quals import TICK, chance
from tests.oracle.text import query_to_text


def draw_purged_case(rng: Random) -> Case:
    """A small query with negated parts at its ends, and a stream of 20 to 60 events, mostly of one to four keys."""
    options = Options(ordered=chance(rng, 25), partitioned=chance(rng, 75))
    pattern = negated_at_ends(rng)
    query = Query(
        pattern,
        where=random_quals(rng, positive_variables(pattern), (), [0, 0, 0, 0, 0, 1]),
        within=TimeWindow(rng.randint(3, 12) * TICK) if chance(rng, 50) else CountWindow(rng.randint(3, 10)),
        limit=rng.randint(1, 9) if chance(rng, 15) else None,
    )
    return Case(replace(query, text=query_to_text(query)), _stream(rng, options), options)


def draw_small_cut(rng: Random, count: int) -> list[int]:
    """Batches of one row, of one length or of several; now and then all rows at once."""
    if chance(rng, 10):
        return []
    longest = rng.choice([1, 1, 2, 5, 7])
    return [longest if chance(rng, 70) else rng.randint(0, longest) for _ in range(count // longest)]


def negated_at_ends(rng: Random) -> Pattern:
    """One to three positive parts, with negated ones before, between and after them."""
    maker = PatternMaker(rng, LEAVES[: rng.choice([2, 3, 4])])
    # Often what is negated is of other types, or it would nearly always be there.
    positive, negated = (LEAVES[:2], LEAVES[2:]) if chance(rng, 50) else (maker.types, maker.types)
    parts: list[Part] = []
    count = rng.choice([1, 2, 2, 2, 2, 3])
    for i in range(count + 1):
        if chance(rng, 75 if i == 0 else 35 if i == count else 15):
            maker.types = negated
            parts.append(Not(_inner(rng, maker, 75)))
        maker.types = positive
        if i < count:
            parts.append(_inner(rng, maker, 25 if count < 3 else 0))
    if len(parts) == 1:
        parts.insert(0, Not(_inner(rng, maker, 60)))
    bare: Pattern = Seq(tuple(parts))
    if chance(rng, 12):
        other = maker.component()
        operator = rng.choice([Seq, And, Or])
        bare = operator((bare, other) if chance(rng, 50) else (other, bare))
    pattern = with_quals(rng, bare) if chance(rng, 30) else bare
    if chance(rng, 15):
        tied = with_correlation(rng, pattern, positive_variables(pattern))
        assert not isinstance(tied, Not)
        pattern = tied
    return pattern


def _inner(rng: Random, maker: PatternMaker, composite: int) -> Pattern:
    """A component, or in so many of a hundred cases an operator of two."""
    if not chance(rng, composite):
        return maker.component()
    return rng.choice([Seq, Seq, And, Or])((maker.component(), maker.component()))


def _stream(rng: Random, options: Options) -> list[Event]:
    keys: Sequence[int | None] = [None, 1, 2, 3][-rng.randint(1, 4) :]
    step = rng.choice([[1], [1], [0, 1], [0, 1, 1, 2], [0, 0, 1]])
    # Some types are rare, so that what is negated is not always there.
    types = [t for t in LEAVES for _ in range(rng.choice([1, 1, 4]))]
    orders = rng.choice(ORDERS)
    clock, events = rng.choice([0, 0, 0, -20]), []
    for _ in range(rng.randint(20, 60)):
        clock += rng.choice(step)
        events.append(draw_event(rng, options, rng.choice(types), clock * TICK, keys, orders))
    return arrived(rng, options, events)
