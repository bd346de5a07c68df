"""Checks of LIKE patterns."""

from __future__ import annotations

ESCAPE = "\\"


def wrong_escape(pattern: str, escape: str) -> str | None:
    """The wrong escape in a pattern, as text for a message, or None; the rules are those of Spark SQL."""
    at = 0
    while (at := pattern.find(escape, at)) >= 0:
        if at + 1 == len(pattern):
            return f"{escape} at the end"
        if pattern[at + 1] not in ("%", "_", escape):
            return f"{escape} before {pattern[at + 1]}"
        at += 2
    return None
