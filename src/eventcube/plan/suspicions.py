"""Probable mistakes that the text of a query shows: comparisons with NULL, LIKE without a wildcard, windows."""

from __future__ import annotations

from collections.abc import Iterator

from eventcube.errors import Diagnostic
from eventcube.language.literals import write_text
from eventcube.language.printer import print_qual, print_value
from eventcube.language.syntax import (
    AllOf,
    And,
    AnyOf,
    Between,
    Comparison,
    Component,
    CountWindow,
    In,
    Like,
    Literal,
    Not,
    NotQual,
    Or,
    Part,
    Pattern,
    Qual,
    Query,
    Seq,
    Value,
)
from eventcube.nodes import walk

_WILDCARDS_ELSEWHERE = ("*", "?")
_NO_VALUE = "nothing compares with NULL"


def suspicions(query: Query) -> list[Diagnostic]:
    """All warnings about a query that need no columns."""
    quals = [*_quals_of(query.pattern), *query.where]
    return [*missing_window(query), *small_windows(query), *(d for q in quals for d in suspicious_values(q))]


def _quals_of(part: Part) -> Iterator[Qual]:
    match part:
        case Component():
            return
        case Not(pattern, quals):
            yield from _quals_of(pattern)
            yield from quals
        case Seq(parts, quals) | And(parts, quals) | Or(parts, quals):
            for inner in parts:
                yield from _quals_of(inner)
            yield from quals


# Windows.


def missing_window(query: Query, which: str = "the query") -> Iterator[Diagnostic]:
    """The warning about a query without WITHIN: a bounded input allows it, but it is seldom wanted."""
    if query.within is None and not _is_one_event(query.pattern):
        message = f"{which} has no WITHIN, so it keeps all its events: this can be slow and find very many matches"
        yield Diagnostic("EC500", message, hint="add a window, such as WITHIN 10 minutes")


def _is_one_event(part: Part) -> bool:
    """Whether every match is one event, without negated parts."""
    match part:
        case Component():
            return True
        case Not():
            return False
        case Or(parts):
            return all(map(_is_one_event, parts))
        case Seq(parts) | And(parts):
            return len(parts) == 1 and _is_one_event(parts[0])


def small_windows(query: Query) -> Iterator[Diagnostic]:
    """The warning about a window of fewer events than every match has, or every match with one alternative of an OR."""
    window = query.within
    if not isinstance(window, CountWindow):
        return
    least = _least_events(query.pattern)
    if least <= window.events:
        yield from _small_alternatives(query.pattern, 0, window.events)
        return
    message = f"a window of {_events(window.events)} is too small: a match has at least {least}, so nothing matches"
    yield Diagnostic("EC517", message, window.span, f"write WITHIN {least} events, or more")


def _small_alternatives(pattern: Pattern, others: int, most: int) -> Iterator[Diagnostic]:
    """The alternatives whose matches, with at least `others` more events, exceed a window of `most` events."""
    if isinstance(pattern, Component):
        return
    parts = [part for part in pattern.parts if not isinstance(part, Not)]
    if not isinstance(pattern, Or):
        least = sum(map(_least_events, parts))
        for part in parts:
            yield from _small_alternatives(part, others + least - _least_events(part), most)
        return
    for part in parts:
        least = others + _least_events(part)
        if least <= most:
            yield from _small_alternatives(part, others, most)
            continue
        message = (
            f"a match with this alternative of OR has at least {_events(least)}, and the window holds {most}: "
            "it never matches"
        )
        yield Diagnostic("EC517", message, part.span, f"write WITHIN {least} events, or more")


def _least_events(part: Part) -> int:
    """The least number of events of a match; a match has no event twice."""
    match part:
        case Component():
            return 1
        case Not():
            return 0
        case Or(parts):
            return min(map(_least_events, parts))
        case Seq(parts) | And(parts):
            return sum(map(_least_events, parts))


def _events(count: int) -> str:
    return f"{count} event{'s' * (count > 1)}"


# Values.


def suspicious_values(qual: Qual) -> Iterator[Diagnostic]:
    """Comparisons with NULL, and LIKE without a wildcard, anywhere in a condition."""
    yield from null_comparisons(qual)
    for like in walk(qual):
        if isinstance(like, Like):
            yield from _plain_like(like)


def null_comparisons(qual: Qual) -> Iterator[Diagnostic]:
    """Comparisons with NULL, anywhere in a condition."""
    match qual:
        case NotQual(Comparison("=" | "!=" as op, left, right)) if _is_null(left) or _is_null(right):
            other = print_value(right if _is_null(left) else left)
            hint = f"write {other} IS {'NOT ' * (op == '=')}NULL"
            yield Diagnostic("EC510", f"{shown(qual)} never holds: {_NO_VALUE}", qual.span, hint)
        case Comparison(op, left, right) if _is_null(left) or _is_null(right):
            other = print_value(right if _is_null(left) else left)
            asked = {"=": f"write {other} IS NULL", "!=": f"write {other} IS NOT NULL"}.get(op)
            yield Diagnostic("EC510", f"{shown(qual)} never holds: {_NO_VALUE}", qual.span, asked)
        case NotQual(In(value, options)) if any(map(_is_null, options)):
            hint = f"leave NULL out; {print_value(value)} IS NOT NULL excludes nulls"
            yield Diagnostic("EC510", f"{shown(qual)} never holds: {_NO_VALUE}", qual.span, hint)
        case In(value, options) if any(map(_is_null, options)):
            hint = f"write {print_value(value)} IN (…) OR {print_value(value)} IS NULL"
            yield Diagnostic("EC510", f"NULL in {shown(qual)} finds nothing", qual.span, hint)
        case NotQual(Between(value, low, high)) if not _is_null(value) and (_is_null(low) or _is_null(high)):
            yield Diagnostic("EC510", f"NULL in {shown(qual)} leaves nothing out", qual.span, "leave NULL out")
        case Between(value, low, high) if _is_null(value) or _is_null(low) or _is_null(high):
            yield Diagnostic("EC510", f"{shown(qual)} never holds: {_NO_VALUE}", qual.span)
        case AllOf(quals) | AnyOf(quals):
            for inner in quals:
                yield from null_comparisons(inner)
        case NotQual(inner):
            yield from null_comparisons(inner)


def _is_null(value: Value) -> bool:
    return isinstance(value, Literal) and value.value is None


def _plain_like(like: Like) -> Iterator[Diagnostic]:
    """LIKE with a wildcard of another language and without `%` or `_`, which finds one text only."""
    signs = [sign for sign in _WILDCARDS_ELSEWHERE if sign in like.pattern]
    if not signs or any(sign in like.pattern for sign in ("%", "_", like.escape)):
        return
    meant = like.pattern.replace(".*", "%").replace("*", "%").replace("?", "_")
    message = f"{shown(like)} finds only the text {write_text(like.pattern)} itself: {signs[0]} stands for itself"
    hint = f"% stands for any characters, _ for one: LIKE {write_text(meant)}"
    yield Diagnostic("EC516", message, like.span, hint)


def shown(qual: Qual) -> str:
    """The condition as text for a message, shortened."""
    text = print_qual(qual)
    return f"`{text if len(text) <= 80 else text[:79] + '…'}`"
