"""Errors and warnings, with a code, a place and a hint.

Every error has a stable code, and where it concerns a query, the place in its text.
Codes: EC1xx the text cannot be read, EC2xx it does not fit the schema, EC3xx the events or files, EC4xx settings,
saved state and moves between queries, EC5xx warnings.
"""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TypeVar

_PACKAGE = str(Path(__file__).parent)
_Result = TypeVar("_Result")

# The most mistakes that are shown, and the most of a query that are collected.
MOST_SHOWN = 30
MOST_COUNTED = 1000
# The most characters shown of a line, and of a message with a long name.
_LINE_LENGTH = 100
_MESSAGE_LENGTH = 400
# Search no similar name among more names than these: it would take long.
_MOST_COMPARED_NAMES = 1000


@dataclass(frozen=True, slots=True)
class Span:
    """A range of a query's text, as offsets into it."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake: what is wrong, where, and a hint what to write."""

    code: str
    message: str
    span: Span | None = None
    hint: str | None = None

    def render(self, text: str, source: str, label: str = "error") -> str:
        """The diagnostic as text, with its place underlined."""
        lines = [f"{label}[{self.code}]: {_shortened(self.message)}"]
        if self.span is not None:
            lines += _excerpt(text, source, self.span)
        if self.hint:
            lines.append(f"hint: {_shortened(self.hint)}")
        return "\n".join(lines)


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """The line and column of an offset, both counted from 1."""
    offset = min(offset, len(text))
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1


def _excerpt(text: str, source: str, span: Span) -> list[str]:
    line, column = line_and_column(text, span.start)
    begin = min(span.start, len(text)) - (column - 1)
    end = text.find("\n", begin)
    end = len(text) if end < 0 else end
    # Show a third of a long excerpt before the place, more if the line ends soon after it.
    first = max(begin, min(span.start - _LINE_LENGTH // 3, end - _LINE_LENGTH)) if end - begin > _LINE_LENGTH else begin
    last = min(end, first + _LINE_LENGTH) if end - begin > _LINE_LENGTH else end
    before = text[first : begin + column - 1]
    width = max(1, min(span.end, last) - span.start)
    left, right = "…" * (first > begin), "…" * (last < end)
    gutter = " " * len(f"{line}")
    # Keep tabs in the gap, so that the marks are below the marked text.
    gap = " " * len(left) + "".join("\t" if c == "\t" else " " for c in before)
    return [
        f" --> {source}:{line}:{column}",
        f"  {line} | {left}{text[first:last]}{right}",
        f"  {gutter} | {gap}{'^' * width}",
    ]


def _shortened(message: str) -> str:
    """The message, with the middle cut out if it is very long."""
    if len(message) <= _MESSAGE_LENGTH:
        return message
    return f"{message[: _MESSAGE_LENGTH * 2 // 3]}…{message[-_MESSAGE_LENGTH // 3 :]}"


class EventCubeError(Exception):
    """Any error that a user can cause and fix."""

    code = "EC000"

    def __init__(self, message: str, *, code: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        shown = f"error[{self.code}]: {self.message}"
        return f"{shown}\nhint: {self.hint}" if self.hint else shown

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.code, self.hint)


def _rebuild(kind: type[EventCubeError], message: str, code: str, hint: str | None) -> EventCubeError:
    return kind(message, code=code, hint=hint)


class QueryError(EventCubeError):
    """All mistakes of one query, in the order of its text, and those of `others` that were given with it."""

    def __init__(
        self, diagnostics: Iterable[Diagnostic], text: str, source: str = "query", others: Iterable[QueryError] = ()
    ) -> None:
        self.diagnostics: Sequence[Diagnostic] = sorted(
            dict.fromkeys(diagnostics), key=lambda d: d.span.start if d.span else len(text)
        )
        self.text = text
        self.source = source
        self.others = tuple(others)
        super().__init__(self.diagnostics[0].message, code=self.diagnostics[0].code)

    def __str__(self) -> str:
        queries = (self, *self.others)
        mistakes = [(d, query) for query in queries for d in query.diagnostics]
        shown = [d.render(query.text, query.source) for d, query in mistakes[:MOST_SHOWN]]
        more = len(mistakes) - MOST_SHOWN
        if more > 0:
            uncounted = any(len(query.diagnostics) >= MOST_COUNTED for query in queries)
            shown.append(f"… and {'at least ' if uncounted else ''}{more} more")
        return "\n\n".join(shown)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (tuple(self.diagnostics), self.text, self.source, self.others)


def for_each(names: Iterable[str], call: Callable[[str], _Result]) -> dict[str, _Result]:
    """The results of a call for each query by name; mistakes in several queries are raised as one error."""
    results: dict[str, _Result] = {}
    errors: list[QueryError] = []
    for name in names:
        try:
            results[name] = call(name)
        except QueryError as error:
            errors.append(error)
    if errors:
        first, *others = errors
        first.others = (*first.others, *others)
        raise first
    return results


class QuerySyntaxError(QueryError):
    """The query's text cannot be read (EC1xx)."""


class BindError(QueryError):
    """The query does not fit the columns of the events (EC2xx)."""


class InputError(EventCubeError):
    """Events, files or columns cannot be used (EC3xx)."""

    code = "EC300"


class OptionError(EventCubeError):
    """A setting, a saved state or a move between queries cannot be used (EC4xx)."""

    code = "EC400"


class EventCubeWarning(UserWarning):
    """The query runs, but probably does not do what the user wants; `code` and `hint` as in an error."""

    def __init__(self, message: str, *, code: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


def warn(problem: Diagnostic, text: str = "", source: str = "query") -> None:
    """Warn of a problem, at the line of the user's code from which eventcube was called."""
    shown = (problem if text else replace(problem, span=None)).render(text, source, "warning")
    message = EventCubeWarning(shown.removeprefix("warning"), code=problem.code, hint=problem.hint)
    warnings.warn(message, stacklevel=_frames_inside() + 1)


def _frames_inside() -> int:
    """The number of innermost stack frames that are in this package."""
    frame: FrameType | None = sys._getframe(1)
    count = 0
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, count = frame.f_back, count + 1
    return count


def did_you_mean(
    name: str, known: Iterable[str], owner: str = "", *, verb: str = "has", cutoff: float = 0.6
) -> str | None:
    """A hint with the most similar known name, if its similarity reaches the cutoff, and all known names."""
    names = sorted(set(known))
    if not names:
        return None
    compared = [n.lower() for n in names] if len(names) <= _MOST_COMPARED_NAMES else []
    close = difflib.get_close_matches(name.lower(), compared, n=1, cutoff=cutoff)
    guess = next((n for n in names if close and n.lower() == close[0]), None)
    shown = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    listing = f"{owner} {verb}: {shown}" if owner else f"known: {shown}"
    return f"did you mean '{guess}'? {listing}" if guess else listing
