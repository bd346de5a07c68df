"""Words of the language, and how names are written so that they are not taken for them."""

from __future__ import annotations

import re

CLAUSES = ("PATTERN", "FROM", "WHERE", "GROUPBY", "AGG", "WITHIN", "RETURN", "LIMIT")
OPERATORS = ("SEQ", "AND", "OR")
KEYWORDS = (*CLAUSES, *OPERATORS, "AS", "NOT", "IN", "BETWEEN", "IS", "NULL", "TRUE", "FALSE")

_PLAIN = re.compile(r"[^\W\d]\w*")
# The same way of ignoring case as the lexer's, which takes a few letters beyond ASCII for i and s.
_KEYWORD = re.compile("|".join(KEYWORDS), re.IGNORECASE)


def is_keyword(name: str) -> bool:
    """Whether the language keeps the word for itself."""
    return _KEYWORD.fullmatch(name) is not None


def write_name(name: str) -> str:
    """The name as it stands in a query, in backticks if it must be.

    >>> write_name("price"), write_name("ins-type"), write_name("limit")
    ('price', '`ins-type`', '`limit`')
    """
    # `by` is free, but after a type named `group` it would read as GROUP BY.
    if _PLAIN.fullmatch(name) and not is_keyword(name) and name.lower() != "by":
        return name
    return "`" + name.replace("`", "``") + "`"


def read_name(written: str) -> str:
    """The name that stands in a query as `written`; the inverse of `write_name`."""
    return written[1:-1].replace("``", "`") if written.startswith("`") else written
