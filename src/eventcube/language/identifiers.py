"""Words of the language, and how names are written so that they are not taken for them."""

from __future__ import annotations

import re

CLAUSES = ("PATTERN", "FROM", "WHERE", "PARTITIONBY", "GROUPBY", "AGG", "HAVING", "WITHIN", "RETURN", "LIMIT")
OPERATORS = ("SEQ", "AND", "OR")
KEYWORDS = (*CLAUSES, *OPERATORS, "AS", "NOT", "IN", "BETWEEN", "IS", "NULL", "TRUE", "FALSE")

# The type that every event has, where a type may stand; a type of that name goes in backticks.
ANY = "ANY"
# These are free, but after a type named `group`, `partition` or `at` they would read as GROUP BY and the like.
_SECOND_WORDS = ("by", "level")
_PLAIN = re.compile(r"[^\W\d]\w*")
# The same way of ignoring case as the lexer's, which takes a few letters beyond ASCII for i and s.
_KEYWORD = re.compile("|".join(KEYWORDS), re.IGNORECASE)


def is_keyword(name: str) -> bool:
    """Whether the language keeps the word for itself."""
    return _KEYWORD.fullmatch(name) is not None


def spoken(clause: str) -> str:
    """The word of a clause as it is written."""
    return "PARTITION BY" if clause == "PARTITIONBY" else clause


def write_name(name: str) -> str:
    """The name as it stands in a query, in backticks if it must be.

    >>> write_name("price"), write_name("ins-type"), write_name("limit")
    ('price', '`ins-type`', '`limit`')
    """
    if _PLAIN.fullmatch(name) and not is_keyword(name) and name.lower() not in _SECOND_WORDS:
        return name
    return "`" + name.replace("`", "``") + "`"


def read_name(written: str) -> str:
    """The name that stands in a query as `written`; the inverse of `write_name`."""
    return written[1:-1].replace("``", "`") if written.startswith("`") else written
