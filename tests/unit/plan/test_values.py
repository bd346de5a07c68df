"""Sets of values: what they hold is what comparing says."""

from __future__ import annotations

from random import Random

import pytest

from eventcube.plan.values import EVERY, NONE, Values, all_of, any_of, both, compared, rest

OPS = {
    "=": lambda x, c: x == c,
    "!=": lambda x, c: x != c,
    "<": lambda x, c: x < c,
    "<=": lambda x, c: x <= c,
    ">": lambda x, c: x > c,
    ">=": lambda x, c: x >= c,
}


def holds(values: Values, value: float) -> bool:
    """Whether a value is in a set."""
    return bool(both(values, compared("=", value)))


@pytest.mark.parametrize("op", OPS)
def test_a_comparison_with_a_constant(op: str) -> None:
    assert [holds(compared(op, 2), x) for x in (1, 1.5, 2, 2.5, 3)] == [OPS[op](x, 2) for x in (1, 1.5, 2, 2.5, 3)]


def test_text_is_ordered_as_python_orders_it() -> None:
    assert both(compared("<", "b"), compared(">=", "a")) != NONE
    assert both(compared("<", "a"), compared(">", "b")) == NONE


def test_the_ends() -> None:
    assert rest(EVERY) == NONE
    assert rest(NONE) == EVERY
    assert both(EVERY, NONE) == NONE
    assert any_of([compared("<", 1), compared(">=", 1)]) == EVERY


def test_random_sets_agree_with_logic() -> None:
    rng = Random(7)
    points = [n / 2 for n in range(-2, 12)]
    for _ in range(300):
        values, truth = EVERY, dict.fromkeys(points, True)
        for _ in range(4):
            op, constant = rng.choice(list(OPS)), rng.randint(0, 4)
            own = compared(op, constant)
            if rng.random() < 0.3:
                own, said = rest(own), {x: not OPS[op](x, constant) for x in points}
            else:
                said = {x: OPS[op](x, constant) for x in points}
            every = rng.random() < 0.5
            values = both(values, own) if every and rng.random() < 0.5 else (all_of if every else any_of)([values, own])
            truth = {x: (truth[x] and said[x]) if every else (truth[x] or said[x]) for x in points}
        assert {x: holds(values, x) for x in points} == truth
