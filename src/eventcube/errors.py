"""What can go wrong, said so that a person can mend it.

Every error has a stable code, and where it concerns a query, the place in its text.
Codes: EC1xx the text cannot be read, EC2xx it does not fit the schema, EC3xx the events or files, EC4xx settings
and saved state.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a query's text, as offsets into it."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is wrong with a query: what, where, and what would be right."""

    code: str
    message: str
    span: Span | None = None
    hint: str | None = None

    def render(self, text: str, source: str) -> str:
        """The diagnostic as shown to a person, with the line it concerns underlined."""
        lines = [f"error[{self.code}]: {self.message}"]
        if self.span is not None:
            lines += _excerpt(text, source, self.span)
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """The place of an offset, both counted from 1."""
    offset = min(offset, len(text))
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1


def _excerpt(text: str, source: str, span: Span) -> list[str]:
    line, column = line_and_column(text, span.start)
    shown = text.split("\n")[line - 1]
    width = max(1, min(span.end - span.start, len(shown) - column + 1))
    gutter = " " * len(f"{line}")
    # Tabs stay tabs in the gap, so that the marks stand under what they mark.
    gap = "".join("\t" if c == "\t" else " " for c in shown[: column - 1])
    return [
        f" --> {source}:{line}:{column}",
        f"  {line} | {shown}",
        f"  {gutter} | {gap}{'^' * width}",
    ]


class EventCubeError(Exception):
    """Anything a user of eventcube can cause and mend."""

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
    """All that is wrong with one query, in the order of its text."""

    def __init__(self, diagnostics: Iterable[Diagnostic], text: str, source: str = "query") -> None:
        self.diagnostics: Sequence[Diagnostic] = sorted(
            dict.fromkeys(diagnostics), key=lambda d: d.span.start if d.span else len(text)
        )
        self.text = text
        self.source = source
        super().__init__(self.diagnostics[0].message, code=self.diagnostics[0].code)

    def __str__(self) -> str:
        return "\n\n".join(d.render(self.text, self.source) for d in self.diagnostics)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (tuple(self.diagnostics), self.text, self.source)


class QuerySyntaxError(QueryError):
    """The query's text cannot be read (EC1xx)."""


class BindError(QueryError):
    """The query does not fit the events it is asked of (EC2xx)."""


class InputError(EventCubeError):
    """Events, files or columns are not as they should be (EC3xx)."""

    code = "EC300"


class OptionError(EventCubeError):
    """A setting or a saved state cannot be used (EC4xx)."""

    code = "EC400"


class EventCubeWarning(UserWarning):
    """Something that works, but may not be what was meant."""


def did_you_mean(name: str, known: Iterable[str], owner: str = "") -> str | None:
    """A hint that names the closest of the known names and lists them all."""
    names = sorted(set(known))
    if not names:
        return None
    close = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1, cutoff=0.6)
    guess = next((n for n in names if close and n.lower() == close[0]), None)
    shown = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    listing = f"{owner} has: {shown}" if owner else f"known: {shown}"
    return f"did you mean '{guess}'? {listing}" if guess else listing
