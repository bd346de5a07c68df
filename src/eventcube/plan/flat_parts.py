"""Patterns taken apart and put together: what flat queries are made with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from eventcube.language.syntax import And, Attribute, Component, Not, Or, Part, Pattern, Qual, Seq
from eventcube.language.tree import attributes, conjuncts

_P = TypeVar("_P", bound=Part)


def gather(pattern: Pattern, kind: type[Pattern]) -> tuple[tuple[Component, ...], tuple[Qual, ...]] | None:
    """The components of a pattern that nests in its own kind only, and its conditions."""
    if isinstance(pattern, Component):
        return (pattern,), ()
    if not isinstance(pattern, kind):
        return None
    inner = [None if isinstance(p, Not) else gather(p, kind) for p in pattern.parts]
    found = [i for i in inner if i is not None]
    if len(found) < len(inner):
        return None
    return tuple(c for own, _ in found for c in own), (*(q for _, own in found for q in own), *pattern.quals)


def between(pattern: Seq, place: int) -> bool:
    """Whether a part lies between two positive ones, and nothing else is negated there."""
    if not 0 < place < len(pattern.parts) - 1:
        return False
    before, after = pattern.parts[place - 1], pattern.parts[place + 1]
    return not (looks_out(before, at_start=False) or looks_out(after, at_start=True))


def looks_out(part: Part, *, at_start: bool) -> bool:
    """Whether a part is negated, or has a negation at its border that looks beyond it."""
    match part:
        case Component():
            return False
        case Not():
            return True
        case Seq(parts):
            return looks_out(parts[0 if at_start else -1], at_start=at_start)
        case And(parts) | Or(parts):
            return any(looks_out(p, at_start=at_start) for p in parts if not isinstance(p, Not))


def core(pattern: Seq | And) -> Seq | And:
    """What an operator around a single other one comes to."""
    while len(pattern.parts) == 1 and isinstance(only := pattern.parts[0], Seq | And):
        pattern = replace(only, quals=(*only.quals, *pattern.quals))
    return pattern


def dissolves(inner: Seq | And, around: Seq | And) -> bool:
    """Whether the parts of an operator can stand right in the one around it."""
    if len(inner.parts) == 1:
        return True
    if isinstance(around, Seq):
        return isinstance(inner, Seq)
    # A negation in an AND looks between the AND's own events.
    return isinstance(inner, And) and not any(isinstance(p, Not) for p in inner.parts)


def is_flat(pattern: Pattern) -> bool:
    """Whether all parts are events, negated or not."""
    parts = () if isinstance(pattern, Component) else pattern.parts
    return all(isinstance(p.pattern if isinstance(p, Not) else p, Component) for p in parts)


def variables(part: Part) -> list[str]:
    """The variables that a match binds, in the order of the text."""
    if isinstance(part, Not):
        return []
    return [part.name] if isinstance(part, Component) else [v for p in part.parts for v in variables(p)]


def positive(parts: Iterable[Part]) -> bool:
    """Whether some part is not negated."""
    return any(not isinstance(p, Not) for p in parts)


# Conditions.


def pruned(part: _P, left_out: frozenset[str]) -> _P:
    """The part without conditions on variables that are not there."""
    if isinstance(part, Component) or not left_out:
        return part
    quals = applied(part.quals, left_out)
    if isinstance(part, Not):
        return replace(part, pattern=pruned(part.pattern, left_out), quals=quals)
    if isinstance(part, Or):
        # The same, but nothing in it is negated.
        return replace(part, parts=tuple(pruned(p, left_out) for p in part.parts), quals=quals)
    return replace(part, parts=tuple(pruned(p, left_out) for p in part.parts), quals=quals)


def applied(quals: Iterable[Qual], left_out: frozenset[str]) -> tuple[Qual, ...]:
    """The conditions that speak of no variable that is left out."""

    def speaks(qual: Qual) -> bool:
        return any(a.var in left_out for a in attributes(qual))

    return tuple(c for q in quals for c in (conjuncts([q]) if speaks(q) else [q]) if not speaks(c))


def distinct(quals: Sequence[Qual]) -> tuple[Qual, ...]:
    """The conditions, each once."""
    return tuple(q for i, q in enumerate(quals) if q not in quals[:i])


def renamed(node: Any, old: str, new: str) -> Any:
    """A condition that says of one variable what it said of another."""
    if isinstance(node, Attribute):
        return replace(node, var=new) if node.var == old else node
    if isinstance(node, tuple):
        return tuple(renamed(n, old, new) for n in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    return replace(node, **{f.name: renamed(getattr(node, f.name), old, new) for f in fields(node)})
