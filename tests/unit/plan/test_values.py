"""Sets of values: what they hold is what comparing says."""

from __future__ import annotations

from random import Random

import pytest

from eventcube.plan.values import ALL_VALUES, NO_VALUES, Values, complement, intersect, intersect_all, satisfying, union

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
    return bool(intersect(values, satisfying("=", value)))


@pytest.mark.parametrize("op", OPS)
def test_a_comparison_with_a_constant(op: str) -> None:
    assert [holds(satisfying(op, 2), x) for x in (1, 1.5, 2, 2.5, 3)] == [OPS[op](x, 2) for x in (1, 1.5, 2, 2.5, 3)]


def test_text_is_ordered_as_python_orders_it() -> None:
    assert intersect(satisfying("<", "b"), satisfying(">=", "a")) != NO_VALUES
    assert intersect(satisfying("<", "a"), satisfying(">", "b")) == NO_VALUES


def test_the_ends() -> None:
    assert complement(ALL_VALUES) == NO_VALUES
    assert complement(NO_VALUES) == ALL_VALUES
    assert intersect(ALL_VALUES, NO_VALUES) == NO_VALUES
    assert union([satisfying("<", 1), satisfying(">=", 1)]) == ALL_VALUES


def test_random_sets_agree_with_logic() -> None:
    rng = Random(7)
    points = [n / 2 for n in range(-2, 12)]
    for _ in range(300):
        values, truth = ALL_VALUES, dict.fromkeys(points, True)
        for _ in range(4):
            op, constant = rng.choice(list(OPS)), rng.randint(0, 4)
            own = satisfying(op, constant)
            if rng.random() < 0.3:
                own, said = complement(own), {x: not OPS[op](x, constant) for x in points}
            else:
                said = {x: OPS[op](x, constant) for x in points}
            every = rng.random() < 0.5
            values = (
                intersect(values, own)
                if every and rng.random() < 0.5
                else (intersect_all if every else union)([values, own])
            )
            truth = {x: (truth[x] and said[x]) if every else (truth[x] or said[x]) for x in points}
        assert {x: holds(values, x) for x in points} == truth
