"""Random patterns and the quals in them: always valid, with negation and OR in every place they may stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import assert_never

from eventcube.language.syntax import And, Attribute, Comparison, Component, Not, Or, Part, Pattern, Qual, Seq
from tests.oracle.brute import positive_variables
from tests.oracle.quals import chance, random_qual

LEAVES = ("A", "B", "C", "D")
CONCEPTS: Mapping[str, str] = {"A": "P", "B": "P", "P": "R", "C": "R", "D": "U"}


@dataclass
class PatternMaker:
    """Draws one pattern; `components` is what is left to use, so that the oracle stays quick."""

    rng: Random
    types: Sequence[str] = LEAVES
    components: int = 6
    names: set[str] = field(default_factory=set)

    def pattern(self, depth: int) -> Pattern:
        """A pattern of at most this nesting; depth 0 is one component."""
        if depth == 0 or self.components < 2:
            return self.component()
        match self.rng.choice(["seq", "seq", "seq", "and", "and", "or"]):
            case "seq":
                return Seq(self._parts(depth))
            case "and":
                return And(self._parts(depth))
            case _:
                return Or(tuple(self._child(depth) for _ in range(self.rng.randint(2, 3))))

    def tangled(self) -> Pattern:
        """Alternatives beside parts that hold a negation: what one speaks of, another may not have taken."""
        units = [self._alternatives(), self._guarded(), *([self.component()] if chance(self.rng, 40) else [])]
        self.rng.shuffle(units)
        return (Seq if chance(self.rng, 50) else And)(tuple(units))

    def _alternatives(self) -> Pattern:
        options: list[Pattern] = [self.component(), self.component()]
        if chance(self.rng, 40):
            negated = Not(self.component())
            options[1] = Seq((options[1], negated) if chance(self.rng, 50) else (negated, options[1]))
        return Or(tuple(options))

    def _guarded(self) -> Pattern:
        first, negated = self.component(), Not(self.component())
        if chance(self.rng, 30):
            negated = Not(Seq((negated.pattern, self.component())))
        parts: list[Part] = [first, negated, *([self.component()] if chance(self.rng, 60) else [])]
        return (Seq if chance(self.rng, 50) else And)(tuple(parts))

    def _parts(self, depth: int) -> tuple[Part, ...]:
        count = self.rng.choice([2, 2, 2, 3, 3, 3, 4, 1])
        # More at the ends, where the border of the window matters.
        negated = [chance(self.rng, 36 if i in (0, count - 1) else 25) for i in range(count)]
        if all(negated):
            negated[self.rng.randrange(count)] = False
        parts = [self._part(depth, no) for no in negated if self.components > 0]
        if all(isinstance(p, Not) for p in parts):
            parts.append(self.component())
        return tuple(parts)

    def _part(self, depth: int, negated: bool) -> Part:
        child = self._child(depth)
        return Not(child) if negated else child

    def _child(self, depth: int) -> Pattern:
        if depth > 1 and self.components > 2 and chance(self.rng, 12):
            # A negation at the border of a nested part, whose interval is set from outside.
            positive, negated = self.component(), Not(self.component())
            return Seq((positive, negated) if chance(self.rng, 50) else (negated, positive))
        return self.pattern(depth - 1 if chance(self.rng, 40) else 0)

    def component(self) -> Component:
        """One component, with a name of its own."""
        self.components -= 1
        if chance(self.rng, 6):
            return self._any()
        type_ = self.rng.choice(self.types)
        if type_ not in self.names and chance(self.rng, 10):
            self.names.add(type_)
            return Component(type_)
        name = f"{type_.lower()}{len(self.names) + 1}"
        self.names.add(name)
        return Component(type_, name)

    def _any(self) -> Component:
        """An event of any type."""
        name = "ANY" if "ANY" not in self.names and chance(self.rng, 10) else f"any{len(self.names) + 1}"
        self.names.add(name)
        return Component(None, None if name == "ANY" else name)


def with_quals(rng: Random, pattern: Pattern, outer: Sequence[str] = ()) -> Pattern:
    """The pattern with quals strewn in; `outer` are the positive variables of what encloses it."""
    if isinstance(pattern, Component):
        return pattern
    own = positive_variables(pattern)
    parts = tuple(_part_with_quals(rng, part, own, outer) for part in pattern.parts)
    quals = (*random_quals(rng, own, outer, [0, 0, 0, 0, 1, 1, 2]), *quals_beside(rng, pattern, [*own, *outer], 12))
    match pattern:
        case Seq():
            return Seq(parts, quals)
        case And():
            return And(parts, quals)
        case Or():
            return Or(tuple(p for p in parts if not isinstance(p, Not)), quals)
    assert_never(pattern)


def _part_with_quals(rng: Random, part: Part, own: Sequence[str], outer: Sequence[str]) -> Part:
    if isinstance(part, Not):
        visible = [*own, *outer]
        inner = positive_variables(part.pattern)
        beside = quals_beside(rng, part.pattern, [*visible, *inner], 8)
        quals = (*random_quals(rng, inner, visible, [0, 0, 1, 1, 2]), *beside)
        return replace(part, pattern=with_quals(rng, part.pattern, visible), quals=quals)
    within = set(positive_variables(part))
    return with_quals(rng, part, [*(v for v in own if v not in within), *outer])


def quals_beside(rng: Random, pattern: Pattern, visible: Sequence[str], percent: int) -> tuple[Qual, ...]:
    """Quals about negated parts of an operator, to stand beside them; each part gets some in so many of 100 cases."""
    quals: list[Qual] = []
    for part in directly_negated(pattern):
        if chance(rng, percent):
            quals += random_quals(rng, _inside(rng, part), visible, [1, 1, 2])
    return tuple(quals)


def _inside(rng: Random, part: Not) -> list[str]:
    """Variables of a negated part, and now and then of one that is negated directly in it."""
    names, deeper = positive_variables(part.pattern), directly_negated(part.pattern)
    return [*names, *_inside(rng, rng.choice(deeper))] if deeper and chance(rng, 50) else names


def directly_negated(pattern: Pattern) -> list[Not]:
    """The negated parts in an operator's own list."""
    return [] if isinstance(pattern, Component) else [p for p in pattern.parts if isinstance(p, Not)]


def reachable(pattern: Pattern) -> set[str]:
    """The variables that a qual of the pattern's list or beside it may use: positive ones, and directly negated."""
    return set(positive_variables(pattern)).union(*(reachable(p.pattern) for p in directly_negated(pattern)))


def with_correlation(rng: Random, part: Part, visible: Sequence[str]) -> Part:
    """The part with one more qual in every negated part that ties it to a variable it can see."""
    match part:
        case Component():
            return part
        case Not(pattern=pattern, quals=quals):
            inner = positive_variables(pattern)
            op, name = rng.choice(["=", "!=", "<="]), rng.choice(["x", "s", "k"])
            tie = Comparison(op, Attribute(rng.choice(inner), name), Attribute(rng.choice(visible), name))
            return Not(_pattern(with_correlation(rng, pattern, [*visible, *inner])), (*quals, tie))
        case Seq(parts=parts, quals=quals) | And(parts=parts, quals=quals):
            return type(part)(tuple(with_correlation(rng, p, visible) for p in parts), quals)
        case Or(parts=parts, quals=quals):
            return Or(tuple(_pattern(with_correlation(rng, p, visible)) for p in parts), quals)
    assert_never(part)


def _pattern(part: Part) -> Pattern:
    assert not isinstance(part, Not)
    return part


def random_quals(rng: Random, own: Sequence[str], outer: Sequence[str], counts: Sequence[int]) -> tuple[Qual, ...]:
    """As many quals as one of the counts says."""
    return tuple(random_qual(rng, own, outer) for _ in range(rng.choice(counts)))


def always_first(pattern: Pattern) -> str | None:
    """The component that has the first event of every match, if one always has."""
    return _at_end(pattern, 0)


def always_last(pattern: Pattern) -> str | None:
    """The component that has the last event of every match, if one always has."""
    return _at_end(pattern, -1)


def _at_end(pattern: Pattern, end: int) -> str | None:
    if isinstance(pattern, Component):
        return pattern.name
    parts = [p for p in pattern.parts if not isinstance(p, Not)]
    if isinstance(pattern, Seq) or len(parts) == 1:
        return _at_end(parts[end], end)
    return None


def unconditional(pattern: Pattern) -> Iterator[Component]:
    """The components that every match binds."""
    if isinstance(pattern, Component):
        yield pattern
    elif not isinstance(pattern, Or):
        for part in pattern.parts:
            if not isinstance(part, Not):
                yield from unconditional(part)


def looks_ahead(pattern: Pattern) -> bool:
    """Whether something negated after the last events of a match is sought up to the end of the window."""
    match pattern:
        case Component():
            return False
        case Seq(parts=parts):
            last = parts[-1]
            return isinstance(last, Not) or looks_ahead(last)
        case And(parts=parts) | Or(parts=parts):
            return any(looks_ahead(p) for p in parts if not isinstance(p, Not))
    assert_never(pattern)
