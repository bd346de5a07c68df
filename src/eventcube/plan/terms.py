"""Terms: the values that conditions compare with constants."""

from __future__ import annotations

from dataclasses import dataclass

from eventcube.language.syntax import Attribute, Call

# What a condition compares a term with: numbers, microseconds, texts, true and false, or the term itself.
NUMBER, MICROSECONDS, TEXT, TRUTH, SAME = "number", "microseconds", "text", "truth", "same"


@dataclass(frozen=True, slots=True)
class Term:
    """An attribute or a function, or with `since` the time from that event to the one whose time is `value`.

    `unit` is the kind of constants that it is compared with.
    """

    value: Attribute | Call
    unit: str
    since: str | None = None
