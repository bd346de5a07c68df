"""Joins by inequalities over stacks of many blocks, looked up by the min-max index: never, always or now and then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

from eventcube.engine import min_max
from eventcube.engine.execute import Execution
from eventcube.errors import OptionError
from eventcube.language.syntax import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Component,
    CountWindow,
    Literal,
    Minus,
    Not,
    Part,
    Pattern,
    Qual,
    Query,
    Seq,
    TimeWindow,
    Value,
)
from eventcube.optimizer import choose
from tests.differential.compare import check, check_count, draw_cut
from tests.differential.exact import lengthened
from tests.differential.knobs import in_chunks
from tests.oracle.brute import Event, positive_variables
from tests.oracle.generate import KEYS, ORDERS, Case, Options, arrived, draw_event
from tests.oracle.patterns import random_quals
from tests.oracle.quals import TICK, chance
from tests.oracle.text import query_to_text

INFINITY = float("inf")
FLOATS = (-INFINITY, -1.5, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 1e300, INFINITY, float("nan"), None)
# Values that are compared with each other: small and large whole numbers, floats, decimals, text, times.
ALIKE = [*[("x", "x"), ("y", "y"), ("x", "y")] * 3, ("w", "w"), ("w", "u"), ("d", "d"), ("d", "x"), ("u", "u")]
ALIKE += [("s", "s"), ("g", "s"), ("t", "t"), ("f", "f"), ("n", "n"), ("ts", "ts"), ("w", "y")]
NUMBERS = ("x", "y")
INEQUALITIES = ("<", "<=", ">", ">=")


def draw_inequalities(rng: Random) -> Case:
    """A query with inequalities between its events, and a stream in which one type is frequent."""
    options = Options(ordered=chance(rng, 20), partitioned=chance(rng, 25), in_order=not chance(rng, 10))
    pattern, frequent = _pattern(rng)
    names = positive_variables(pattern)
    query = Query(
        pattern,
        where=(*_some(rng, names, names), *random_quals(rng, names, (), [0, 0, 0, 0, 0, 1])),
        within=rng.choice(
            [TimeWindow(rng.choice([5, 20, 90, 400]) * TICK), CountWindow(rng.choice([8, 30, 90])), None]
        ),
        limit=rng.randint(1, 20) if chance(rng, 5) else None,
    )
    query = replace(query, text=query_to_text(query))
    return Case(query, _stream(rng, options, frequent), options)


def _pattern(rng: Random) -> tuple[Pattern, str]:
    """Two or three events, one of them frequent; the frequent one may be negated, and one part be nested."""
    a, b, c = Component("A", "a"), Component("B", "b"), Component("C", "c")
    parts: list[Part] = [a, b] if chance(rng, 60) else [a, b, c]
    rng.shuffle(parts)
    frequent = rng.choice("AB")
    if chance(rng, 35):
        absent = Component("D", "d")
        inner: list[Pattern] = [absent, Seq((absent, Component("C", "e"))), And((Component("C", "e"), absent))]
        negated = rng.choice([inner[0], *inner])
        names = ["d"] if negated is absent else ["d", "e"]
        quals = _some(rng, names, [part.name for part in parts if isinstance(part, Component)])
        if isinstance(negated, Component):
            negated = Seq((negated,), quals)
        else:
            negated = replace(negated, quals=quals)
        parts.insert(rng.randint(0, len(parts)), Not(negated))
        frequent = rng.choice("DDA")
    operator = rng.choice([Seq, Seq, Seq, And])
    if len(parts) == 3 and all(isinstance(part, Component) for part in parts) and chance(rng, 50):
        inside = rng.choice([Seq, And])(tuple(parts[:2]), _some(rng, _names(parts[:2]), _names(parts)))
        return operator((inside, parts[2]) if chance(rng, 50) else (parts[2], inside)), frequent
    return operator(tuple(parts)), frequent


def _names(parts: list[Part]) -> list[str]:
    return [part.name for part in parts if isinstance(part, Component)]


def _some(rng: Random, own: list[str], all_names: list[str]) -> tuple[Qual, ...]:
    """One to three inequalities, each between an own event and another one."""
    return tuple(_inequality(rng, own, all_names) for _ in range(rng.choice([1, 1, 1, 2])))


def _inequality(rng: Random, own: list[str], all_names: list[str]) -> Qual:
    one = rng.choice(own)
    others = [name for name in all_names if name != one] or [one]
    name, other_name = rng.choice(ALIKE)
    left: Value = Attribute(one, name)
    right: Value = Attribute(rng.choice(others), other_name)
    if name in NUMBERS and other_name in NUMBERS:
        left, right = _computed(rng, left), _computed(rng, right)
        if chance(rng, 15):
            low = _computed(rng, Attribute(rng.choice(others), other_name))
            return Between(left, low, right)
    if chance(rng, 50):
        left, right = right, left
    return Comparison(rng.choice([*INEQUALITIES, *INEQUALITIES, "=", "!="]), left, right)


def _computed(rng: Random, value: Value) -> Value:
    """The value, or something computed from it."""
    match rng.randint(0, 5):
        case 0:
            return Arithmetic(rng.choice("*/"), value, Literal(rng.choice([2, -1, 1.12, 0.5, 0])))
        case 1:
            return Arithmetic(rng.choice("+-"), Literal(rng.choice([1, 0.1, 2**62])), value)
        case 2:
            return Minus(value)
    return value


def _stream(rng: Random, options: Options, frequent: str) -> list[Event]:
    """Few events of most types among many of one; now and then values rise and fall slowly."""
    few = [type_ for type_ in "ABCD" if type_ != frequent for _ in range(rng.randint(1, 5))]
    types = [*few, *[frequent] * rng.choice([3, 9, 20, 30, 70, 140])]
    rng.shuffle(types)
    keys, orders = rng.choice(KEYS), rng.choice(ORDERS)
    step = rng.choice([[1], [0, 1], [0, 0, 1], [1, 2, 3]])
    walks, level, clock, events = chance(rng, 60), 0, 0, []
    for type_ in types:
        clock += rng.choice(step)
        level += rng.choice([-1, 0, 1])
        event = draw_event(rng, options, type_, clock * TICK, keys, orders)
        attrs: dict[str, Any] = {**event.attrs, "y": rng.choice(FLOATS)}
        if walks:
            attrs |= {"x": None if chance(rng, 5) else level, "y": level / 2}
        events.append(replace(event, attrs=attrs))
    if chance(rng, 30):
        events = lengthened(rng, events)
    else:
        plain = {"w": 1, "u": None, "d": None, "n": None, "f": None, "g": "a"}
        events = [replace(event, attrs={**event.attrs, **plain}) for event in events]
    return arrived(rng, options, events)


@contextmanager
def min_max_index(rng: Random) -> Iterator[None]:
    """The engine's joins with inequalities, all by an index, as costs say or by chance; decided again and again."""
    cheapest = choose.cheapest
    percent = rng.choice([100, 100, 50])

    def chosen(expected: Any, current: str | None) -> str:
        forced = choose.INDEX in expected and chance(rng, percent)
        return choose.INDEX if forced else cheapest(expected, current)

    with ExitStack() as patches:
        for name in ("LEAST_PER_MATCH", "LEAST_PER_EVENT"):
            patches.enter_context(patch.object(min_max, name, rng.choice([-1, -1, 1])))
        patches.enter_context(patch.object(min_max, "HOLD_CANDIDATES", rng.choice([1, 30, 1 << 22])))
        patches.enter_context(patch.object(min_max, "SAMPLED", rng.choice([1, 3, 64])))
        patches.enter_context(patch.object(min_max, "_CHUNK", rng.choice([1, 20, 1 << 16])))
        patches.enter_context(patch.object(choose, "cheapest", chosen))
        yield


def check_inequalities(case: Case, rng: Random) -> int:
    """The engine's matches are the oracle's, made and counted, over any cut and from saved states."""
    cut = draw_cut(rng, len(case.events)) if chance(rng, 40) else []
    restarts = {i for i in range(len(cut) + 2) if chance(rng, 10)} if chance(rng, 30) else set()
    strategy = rng.choice(["auto", "iterative", "passive", "balanced", "rewrite", "rewrite"])
    counts = case.query.limit is None and chance(rng, 50)
    with min_max_index(rng), patch.object(Execution, "_bind", in_chunks(rng.choice([1, 4, 1 << 16]))):
        try:
            return _check(case, cut, restarts, strategy, counts=counts)
        except OptionError as error:
            if error.code != "EC418":
                raise
        return _check(case, cut, restarts, "auto", counts=counts)


def _check(case: Case, cut: list[int], restarts: set[int], strategy: str, *, counts: bool) -> int:
    if counts:
        check_count(*case, cut, strategy=strategy)
    return len(check(*case, cut, restarts=restarts, strategy=strategy))
