"""The values that conditions make claims about."""

from __future__ import annotations

from dataclasses import dataclass

from eventcube.language.syntax import Attribute, Call

# What a value is compared with: numbers, numbers of microseconds, texts, true and false, or itself.
NUMBER, MICROSECONDS, TEXT, TRUTH, SAME = "number", "microseconds", "text", "truth", "same"


@dataclass(frozen=True, slots=True)
class Term:
    """An attribute or a function, or with `since` the time from that event to the one whose time is `value`.

    `unit` says what constants are.
    """

    value: Attribute | Call
    unit: str
    since: str | None = None
