"""Sequences over streams whose events come in runs, by every flat strategy, with kept matches dropped all the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from unittest.mock import patch

from eventcube.engine.execute import Execution
from eventcube.engine.flat.strategy import flat_strategies
from eventcube.engine.views import sliding, view
from eventcube.engine.views.strategy import strategies
from eventcube.language.syntax import Attribute, Comparison, CountWindow, Not, Part, Pattern, Query, Seq, TimeWindow
from eventcube.optimizer import choose
from eventcube.options import AUTO
from tests.differential.compare import check, check_count, draw_cut
from tests.differential.knobs import any_of, in_chunks
from tests.differential.purged import draw_small_cut
from tests.oracle.brute import Event, positive_variables
from tests.oracle.generate import ORDERS, Case, Options, arrived, draw_case, draw_event
from tests.oracle.patterns import LEAVES, PatternMaker, random_quals, with_quals
from tests.oracle.quals import TICK, chance
from tests.oracle.text import query_to_text


def draw_flat(rng: Random) -> Case:
    """A sequence of three to five events, or a query with anything else in it, and a stream."""
    if chance(rng, 20):
        return draw_case(rng)
    options = Options(ordered=chance(rng, 25), partitioned=chance(rng, 40))
    pattern = _sequence(rng)
    names = positive_variables(pattern)
    where = [*random_quals(rng, names, (), [0, 0, 0, 0, 1])]
    if chance(rng, 20):
        # Of some events, or of all: a key, or an equality by which kept partial matches are split.
        column, equal = rng.choice(["k", "x"]), names if chance(rng, 50) else rng.sample(names, 2)
        where += [Comparison("=", Attribute(equal[0], column), Attribute(other, column)) for other in equal[1:]]
    query = Query(
        pattern,
        where=tuple(where),
        within=TimeWindow(rng.randint(3, 12) * TICK) if chance(rng, 50) else CountWindow(rng.randint(3, 12)),
        limit=rng.randint(1, 9) if chance(rng, 10) else None,
    )
    return Case(replace(query, text=query_to_text(query)), _stream(rng, options), options)


def _sequence(rng: Random) -> Pattern:
    maker = PatternMaker(rng, LEAVES[: rng.choice([2, 3, 3, 4])])
    count = rng.choice([3, 3, 3, 4, 4, 5])
    parts: list[Part] = []
    for i in range(count + 1):
        if chance(rng, 10):
            inner: Pattern = maker.component()
            parts.append(Not(Seq((inner, maker.component())) if chance(rng, 20) else inner))
        if i < count:
            parts.append(maker.component())
    if chance(rng, 15):
        # A nested part in the sequence.
        start = rng.randrange(len(parts) - 1)
        inner_parts = tuple(parts[start : start + rng.randint(2, 3)])
        if not all(isinstance(part, Not) for part in inner_parts):
            parts[start : start + len(inner_parts)] = [Seq(inner_parts)]
    bare = Seq(tuple(parts))
    return with_quals(rng, bare) if chance(rng, 35) else bare


def _stream(rng: Random, options: Options) -> list[Event]:
    """Events in runs of one type, some of them at the same time."""
    keys: Sequence[int | None] = [None, 1, 2][-rng.randint(1, 3) :]
    step, orders = rng.choice([[1], [1], [0, 1], [0, 1, 1, 2]]), rng.choice(ORDERS)
    longest = rng.choice([1, 2, 4, 6])
    clock, events = rng.choice([0, 0, -20]), []
    count = rng.randint(10, 40)
    while len(events) < count:
        type_ = rng.choice(LEAVES)
        for _ in range(rng.randint(1, longest)):
            clock += rng.choice(step)
            events.append(draw_event(rng, options, type_, clock * TICK, keys, orders))
    return arrived(rng, options, events)


def check_flat(case: Case, rng: Random) -> int:
    """A flat strategy finds what the oracle finds, and counts as many; gives the number of matches."""
    cut = draw_small_cut(rng, len(case.events)) if chance(rng, 60) else draw_cut(rng, len(case.events))
    restarts = {i for i in range(len(cut) + 2) if chance(rng, 10)} if chance(rng, 30) else set()
    settings = {"flat_strategy": rng.choice([*sorted(flat_strategies()), AUTO, "prc", "fla"])}
    settings["strategy"] = rng.choice([AUTO, AUTO, *sorted(set(strategies()) - {"rewrite"})])
    stride, many = rng.choice([(1, 1), (2, 3), (1 << 14, 1 << 15)])
    with (
        patch.object(sliding, "STRIDE", stride),
        patch.object(view.View, "purge_threshold", many),
        patch.object(view.View, "max_results", rng.choice([2, 10, 1 << 22, 1 << 22])),
        patch.object(choose, "HOLD_PAIRS", rng.choice([0, 0, 50])),
        patch.object(choose, "cheapest", choose.cheapest if chance(rng, 30) else any_of(rng)),
        patch.object(Execution, "_bind", in_chunks(rng.choice([1, 4, 1 << 16]))),
    ):
        if case.query.limit is None and chance(rng, 40):
            check_count(case, cut, **settings)
        return len(check(*case, cut, restarts=restarts, **settings))
