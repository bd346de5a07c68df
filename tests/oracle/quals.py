"""Random qualifications over given variables, of kinds that a schema of the generator's events accepts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from random import Random

from eventcube.language.syntax import (
    AllOf,
    AnyOf,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    Duration,
    In,
    IsNull,
    Like,
    Literal,
    Minus,
    NotQual,
    Qual,
    Timestamp,
    Truth,
    Value,
)

TEXTS = ("a", "b", "é", "it's", "B", "É", "a%")
PATTERNS = ("a%", "_", "%b", "%", "", "a\\%", "%'s", "_%_", "B")
# Around the changes of the clocks in New York, and the ends of a day, a month and a year there.
MOMENTS = tuple(
    int(datetime.fromisoformat(text).timestamp()) * 1_000_000 + extra
    for text in (
        *("2024-03-10T06:59:59+00:00", "2024-03-10T07:00:00+00:00", "2024-11-03T05:30:00+00:00"),
        *("2024-11-03T06:30:00+00:00", "2024-01-01T04:59:59+00:00", "2024-01-01T05:00:00+00:00"),
        *("2024-02-29T12:00:00+00:00", "1969-12-31T23:00:00+00:00"),
    )
    for extra in (0, 999_999)
)
NUMBERS: tuple[int | float, ...] = (0, 1, 2, 3, 0.5, 1.0, 2.0)
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
ARITHMETIC = ("+", "-", "*", "/", "%")
# A bias to comparisons that leave something: most matches must survive a qual or two.
LOOSE = ("=", "!=", "!=", "<=", "<=", ">=", ">=", "<", ">")
TICK = 1000


def chance(rng: Random, percent: int) -> bool:
    """True in so many of a hundred cases; shrinks to False."""
    return rng.randint(0, 99) >= 100 - percent


def random_qual(rng: Random, own: Sequence[str], outer: Sequence[str], depth: int = 2) -> Qual:
    """A qual that mentions `own` variables, and `outer` ones now and then."""
    if depth > 0 and chance(rng, 22):
        inner = [random_qual(rng, own, outer, depth - 1) for _ in range(rng.randint(2, 3))]
        all_of, any_of = AllOf(tuple(inner)), AnyOf(tuple(inner))
        joined: list[Qual] = [any_of, any_of, all_of, NotQual(inner[0]), NotQual(all_of)]
        return rng.choice(joined)
    kinds: list[Callable[[Random, Sequence[str], Sequence[str]], Qual]] = [
        _local,
        _join,
        _join,
        _numbers,
        _numbers,
        _division,
        _text,
        _boolean,
        _membership,
        _range,
        _null,
        _times,
        _chain,
        _like,
        _case,
        _function,
        _function,
        _clock,
    ]
    return rng.choice(kinds)(rng, own, outer)


def _one(rng: Random, own: Sequence[str], outer: Sequence[str]) -> str:
    return rng.choice(outer) if outer and chance(rng, 15) else rng.choice(own)


def _other(rng: Random, own: Sequence[str], outer: Sequence[str]) -> str:
    return rng.choice(outer) if outer and chance(rng, 55) else rng.choice(own)


def _local(rng: Random, own: Sequence[str], outer: Sequence[str]) -> Qual:
    name = rng.choice(["x", "y", "k"])
    return Comparison(rng.choice(LOOSE), Attribute(rng.choice(own), name), Literal(rng.choice(NUMBERS)))


def _join(rng: Random, own: Sequence[str], outer: Sequence[str]) -> Qual:
    left = _one(rng, own, outer)
    right = _other(rng, [v for v in own if v != left] or own, outer)
    name, other = rng.choice(
        [("k", "k"), ("k", "k"), ("x", "x"), ("s", "s"), ("b", "b"), ("x", "y"), ("y", "y"), ("k", "x")]
    )
    op = rng.choice(("=", "=", "!=")) if name in {"k", "b"} else rng.choice(LOOSE)
    return Comparison(op, Attribute(left, name), Attribute(right, other))


def _numbers(rng: Random, own: Sequence[str], outer: Sequence[str]) -> Qual:
    left, right = _number(rng, own, outer, 2), _number(rng, own, outer, 1)
    return Comparison(rng.choice(LOOSE), left, right)


def _division(rng: Random, own: Sequence[str], outer: Sequence[str]) -> Qual:
    """Where languages differ: fractions or not, the sign of a remainder, zero."""
    by = (
        Literal(rng.choice([2, -2, 3]))
        if chance(rng, 60)
        else Attribute(_other(rng, own, outer), rng.choice(["k", "x"]))
    )
    divided = Arithmetic(rng.choice(["/", "%"]), Attribute(_one(rng, own, outer), "x"), by)
    return Comparison(rng.choice(LOOSE), divided, Literal(rng.choice([0, 1])))


def _number(rng: Random, own: Sequence[str], outer: Sequence[str], depth: int) -> Value:
    if depth > 0 and chance(rng, 60):
        left, right = _number(rng, own, outer, depth - 1), _number(rng, own, outer, depth - 1)
        return (
            Minus(left)
            if chance(rng, 15) and not isinstance(left, Literal)
            else Arithmetic(rng.choice(ARITHMETIC), left, right)
        )
    if chance(rng, 30):
        return Literal(rng.choice(NUMBERS))
    return Attribute(_other(rng, own, outer), rng.choice(["x", "y", "k"]))


def _text(rng: Random, own: Sequence[str], outer: Sequence[str]) -> Qual:
    left = Attribute(_one(rng, own, outer), "s")
    right: Value = Literal(rng.choice(TEXTS)) if chance(rng, 50) else Attribute(_other(rng, own, outer), "s")
    return Comparison(rng.choice(LOOSE), left, right)


def _boolean(rng: Random, own: Sequence[str], outer: Sequence[str]) -> Qual:
    left = Attribute(_one(rng, own, outer), "b")
    if chance(rng, 50):
        return Truth(left)
    right: Value = Literal(chance(rng, 50)) if chance(rng, 50) else Attribute(_other(rng, own, outer), "b")
    return Comparison(rng.choice(["=", "!="]), left, right)


def _membership(rng: Random, own: Sequence[str], outer: Sequence[str]) -> Qual:
    var = _one(rng, own, outer)
    if chance(rng, 40):
        texts = rng.sample(TEXTS, rng.randint(1, 3))
        return _maybe_not(rng, In(Attribute(var, "s"), tuple(Literal(t) for t in texts)))
    options: list[Value] = [Literal(n) for n in rng.sample(NUMBERS, rng.randint(1, 3))]
    if chance(rng, 25):
        options.append(Attribute(_other(rng, own, outer), rng.choice(["x", "k"])))
    if chance(rng, 8):
        options.append(Literal(None))
    return _maybe_not(rng, In(Attribute(var, rng.choice(["x", "y", "k"])), tuple(options)))


def _range(rng: Random, own: Sequence[str], outer: Sequence[str]) -> Qual:
    value = Attribute(_one(rng, own, outer), rng.choice(["x", "y"]))
    low: Value = Literal(rng.choice([0, 0.5, 1]))
    high: Value = Attribute(_other(rng, own, outer), "x") if chance(rng, 30) else Literal(rng.choice([1, 2, 3]))
    return _maybe_not(rng, Between(value, low, high))


def _null(rng: Random, own: Sequence[str], outer: Sequence[str]) -> Qual:
    value: Value = Attribute(_one(rng, own, outer), rng.choice(["x", "y", "s", "b"]))
    if chance(rng, 20):
        value = Arithmetic(
            rng.choice(ARITHMETIC), Attribute(rng.choice(own), "x"), Attribute(_other(rng, own, outer), "k")
        )
    return IsNull(value) if chance(rng, 35) else NotQual(IsNull(value))


def _times(rng: Random, own: Sequence[str], outer: Sequence[str]) -> Qual:
    left, right = Attribute(_one(rng, own, outer), "ts"), Attribute(_other(rng, own, outer), "ts")
    match rng.randint(0, 3):
        case 0:
            return Comparison(rng.choice(["<", "<=", "!=", ">="]), left, right)
        case 1:
            return Comparison(rng.choice(["<", "<="]), Arithmetic("-", left, right), Duration(rng.randint(1, 8) * TICK))
        case 2:
            scaled = Arithmetic(rng.choice(["*", "/"]), Arithmetic("-", left, right), Literal(rng.choice([2, 0.5])))
            return Comparison(rng.choice(["<", "<=", "!="]), scaled, Duration(rng.randint(0, 8) * TICK))
        case _:
            return Comparison(rng.choice(["<=", ">="]), left, Timestamp(rng.randint(0, 8) * TICK))


def _chain(rng: Random, own: Sequence[str], outer: Sequence[str]) -> Qual:
    name = rng.choice(["k", "k", "x"])
    a, b, c = (Attribute(_other(rng, own, outer), name) for _ in range(3))
    op = rng.choice(["=", "<=", "<="]) if name == "x" else "="
    return AllOf((Comparison(op, a, b), Comparison(op, b, c)))


def _like(rng: Random, own: Sequence[str], outer: Sequence[str]) -> Qual:
    pattern = rng.choice(PATTERNS)
    text: Value = Attribute(_one(rng, own, outer), "s")
    if chance(rng, 30):
        text = random_text(rng, own, outer)
    like = Like(text, pattern) if "\\" in pattern or chance(rng, 80) else Like(text, pattern, "#")
    return _maybe_not(rng, like)


def _case(rng: Random, own: Sequence[str], outer: Sequence[str]) -> Qual:
    """Text that is computed, against text that may be."""
    right: Value = Literal(rng.choice(TEXTS)) if chance(rng, 40) else Attribute(_other(rng, own, outer), "s")
    if chance(rng, 40):
        right = random_text(rng, own, outer)
    return Comparison(rng.choice(LOOSE), random_text(rng, own, outer), right)


def random_text(rng: Random, own: Sequence[str], outer: Sequence[str], depth: int = 2) -> Value:
    """Text that functions make."""
    inner: Value = Attribute(_other(rng, own, outer), "s")
    if depth > 1 and chance(rng, 25):
        inner = random_text(rng, own, outer, depth - 1)
    match rng.randint(0, 2):
        case 0:
            return Call("LOWER", (inner,))
        case 1:
            return Call("UPPER", (inner,))
        case _:
            last: Value = Literal(rng.choice(TEXTS)) if chance(rng, 60) else Attribute(_other(rng, own, outer), "s")
            return Call("COALESCE", (inner, *([Literal(None)] if chance(rng, 10) else []), last))


def _function(rng: Random, own: Sequence[str], outer: Sequence[str]) -> Qual:
    """A number that a function makes."""
    right: Value = Literal(rng.choice(NUMBERS)) if chance(rng, 60) else Attribute(_other(rng, own, outer), "x")
    if chance(rng, 8):
        # A function is true or false, too.
        return _maybe_not(
            rng, Truth(Call("COALESCE", (Attribute(_one(rng, own, outer), "b"), Literal(chance(rng, 50)))))
        )
    return Comparison(rng.choice(LOOSE), random_function(rng, own, outer), right)


def random_function(rng: Random, own: Sequence[str], outer: Sequence[str]) -> Value:
    """A number that a function makes of numbers, text or times."""
    number = _number(rng, own, outer, 1)
    match rng.randint(0, 4):
        case 0:
            return Call("ABS", (number,))
        case 1:
            return Call("ROUND", (number,) if chance(rng, 50) else (number, Literal(rng.choice([0, 1, 2, -1]))))
        case 2:
            return Call(
                "LENGTH", (random_text(rng, own, outer) if chance(rng, 30) else Attribute(rng.choice(own), "s"),)
            )
        case 3:
            return Call("COALESCE", (number, _number(rng, own, outer, 0), *([Literal(0)] if chance(rng, 40) else [])))
        case _:
            return _time_part(rng, own, outer)


def _time_part(rng: Random, own: Sequence[str], outer: Sequence[str]) -> Value:
    moment: Value = Attribute(_other(rng, own, outer), rng.choice(["t", "t", "t", "ts"]))
    if chance(rng, 20):
        moment = Arithmetic(rng.choice("+-"), moment, Duration(rng.choice([1, 24]) * 3_600_000_000))
    return Call(rng.choice(["YEAR", "MONTH", "DAY", "WEEKDAY", "HOUR", "MINUTE"]), (moment,))


def _clock(rng: Random, own: Sequence[str], outer: Sequence[str]) -> Qual:
    left, right = Attribute(_one(rng, own, outer), "t"), Attribute(_other(rng, own, outer), "t")
    match rng.randint(0, 3):
        case 0:
            return Comparison(rng.choice(LOOSE), Call("DATE", (left,)), Call("DATE", (right,)))
        case 1:
            return Comparison(rng.choice(LOOSE), Call("HOUR", (left,)), Call("HOUR", (right,)))
        case 2:
            return Comparison(rng.choice(LOOSE), Call("WEEKDAY", (left,)), Literal(rng.randint(1, 7)))
        case _:
            later = Call("COALESCE", (left, right, Timestamp(rng.choice(MOMENTS) // 1_000_000 * 1_000_000)))
            return Comparison(rng.choice(LOOSE), later, right)


def _maybe_not(rng: Random, qual: Qual) -> Qual:
    return NotQual(qual) if chance(rng, 30) else qual
