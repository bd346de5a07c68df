"""What every strategy for nested parts promises: the oracle's matches, under any cut, and nothing kept that matters."""

from __future__ import annotations

from random import Random

import pytest
from tests.differential.compare import check, draw_cut
from tests.differential.modes import draw_nested
from tests.oracle.generate import PLAIN
from tests.oracle.shorthand import stream

import eventcube as ec
from eventcube.engine.views.strategy import check_ways, strategies
from eventcube.errors import OptionError
from eventcube.language.parse import parse
from eventcube.options import ways

EVERY = sorted(strategies())
NESTED = [
    "SEQ(A a, SEQ(B b, C c), D d) WITHIN 9 ms",
    "SEQ(SEQ(A a, B b), SEQ(C c, D d)) WITHIN 9 ms",
    "SEQ(A a, AND(B b, C c, b.x = a.x), D d) WITHIN 7 events",
    "SEQ(A a, !SEQ(B b, C c), D d) WITHIN 9 ms",
    "SEQ(A a, !AND(B b, C c, b.x = c.x = a.x), D d) WITHIN 9 ms",
    "SEQ(A a, !SEQ(B b, !C c, B e), D d) WITHIN 9 ms",
    "SEQ(!SEQ(B b, C c), A a, D d) WITHIN 9 ms",
    "SEQ(A a, D d, !SEQ(B b, C c, b.x = d.x)) WITHIN 6 ms",
    "SEQ(A a, OR(SEQ(B b, !D n), C c), D d) WITHIN 9 ms",
    "AND(SEQ(A a, B b), SEQ(C c, D d), !SEQ(B m, C n)) WITHIN 9 ms",
]
STREAM = (
    "A1:x=1 B2:x=1 C3:x=1 A3:x=2 D4:x=1 B4:x=2 B5:x=1 C6:x=2 D6:x=2 A7:x=1 C7:x=1 B8:x=1 D9:x=1 C9:x=1 A10:x=3 "
    "B11:x=3 B12:x=3 C13:x=3 D14:x=3 D15:x=1"
)


def test_there_are_strategies() -> None:
    assert "iterative" in EVERY


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("query", NESTED)
def test_nested_parts_have_the_oracles_matches(name: str, query: str) -> None:
    events = stream(STREAM)
    for cut in ([], [1] * len(events), [7, 3, 5]):
        assert check(parse(f"PATTERN {query}"), events, PLAIN, cut, strategy=name), "the example has matches"


@pytest.mark.parametrize("name", EVERY)
def test_random_nested_queries_have_the_oracles_matches(name: str) -> None:
    for seed in range(60):
        case = draw_nested(Random(seed))
        check(*case, draw_cut(Random(seed), len(case.events)), strategy=name)
        check(*case, [1] * len(case.events), strategy=name)


@pytest.mark.parametrize("name", EVERY)
def test_a_run_can_go_on_under_another_strategy(name: str) -> None:
    """A state says nothing of the strategy: what one keeps is only a help."""
    for other in EVERY:
        query = "PATTERN SEQ(A a, SEQ(B b, C c), !SEQ(A m, B n), D d) WITHIN 9 ms"
        first = ec.Runtime(query, type="type", strategy=name)
        second = ec.Runtime(query, type="type", strategy=other)
        assert first.fingerprint == second.fingerprint


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(OptionError) as caught:
        check_ways(ways("iteratif"))
    assert caught.value.code == "EC404"
    assert all(name in str(caught.value) for name in EVERY)
    assert "did you mean 'iterative'?" in str(caught.value)
