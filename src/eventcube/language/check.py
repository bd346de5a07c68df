"""Checks of a whole query that need no events: depth, unique names, reserved columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from eventcube.errors import BindError, Diagnostic, Span, line_and_column
from eventcube.language import syntax as s
from eventcube.language.printer import column_name
from eventcube.nodes import children

MAX_DEPTH = 100
# The most terms of one computation: binding and evaluation recurse once for each.
MAX_TERMS = 300


def too_deep(root: object) -> Diagnostic | None:
    """The mistake of nesting deeper than MAX_DEPTH, found without recursion.

    `a + b + c` is as deep as `a + b`, but has more terms.
    """
    waiting: list[tuple[object, int, int]] = [(node, 0, 0) for node in children(root)]
    while waiting:
        node, depth, terms = waiting.pop()
        span: Span = getattr(node, "span", s.NOWHERE)
        if depth > MAX_DEPTH:
            hint = "long lists of conditions joined by AND, OR or commas do not count as nesting, nor do long sums"
            return Diagnostic("EC123", f"nested more than {MAX_DEPTH} levels deep", span, hint)
        if terms > MAX_TERMS:
            return Diagnostic("EC123", f"more than {MAX_TERMS} terms in one computation", span, "compute it beforehand")
        for child in children(node):
            goes_on = isinstance(node, s.Arithmetic) and isinstance(child, s.Arithmetic) and child is node.left
            waiting.append((child, depth if goes_on else depth + 1, terms + 1))
    return None


def check_names(pattern: s.Pattern, text: str) -> Iterator[Diagnostic]:
    """No two components may have the same name, negated or not."""
    first: dict[str, Span] = {}
    for component in components(pattern):
        if component.name in first:
            line, column = line_and_column(text, first[component.name].start)
            yield Diagnostic(
                "EC117",
                f"two components are named '{component.name}'",
                component.span,
                f"the first is at line {line}, column {column}; give one of them another variable",
            )
        else:
            first[component.name] = component.span


def components(part: s.Part) -> Iterator[s.Component]:
    """All components of a pattern, negated ones too, in the order of the text."""
    match part:
        case s.Component():
            yield part
        case s.Not():
            yield from components(part.pattern)
        case s.Seq() | s.And() | s.Or():
            for inner in part.parts:
                yield from components(inner)
        case _:
            assert_never(part)


def check_columns(columns: tuple[s.Item | s.Aggregate, ...]) -> Iterator[Diagnostic]:
    """No two columns of a result may have the same name."""
    seen: set[str] = set()
    for column in columns:
        name = column_name(column)
        if name in seen:
            hint = "give one of them another name with AS"
            yield Diagnostic("EC121", f"two columns are named '{name}'", column.span, hint)
        seen.add(name)


def check_result_columns(query: s.Query) -> None:
    """Raise an error for a result column called `start` or `end`, which every result has."""
    if query.agg:
        return
    places = [(column_name(i), i.span) for i in query.returns] or [(c.name, c.span) for c in positive(query.pattern)]
    problems = [
        Diagnostic("EC217", f"the result already has a column {name!r}", span, "give it another name")
        for name, span in places
        if name in ("start", "end")
    ]
    if problems:
        raise BindError(problems, query.text, query.source)


def positive(pattern: s.Pattern) -> Iterator[s.Component]:
    """The components that a match binds, in the order of the text."""
    if isinstance(pattern, s.Component):
        yield pattern
        return
    for part in pattern.parts:
        if not isinstance(part, s.Not):
            yield from positive(part)
