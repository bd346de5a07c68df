"""Reserved words, and the quoting of names that clash with them."""

from __future__ import annotations

import re

CLAUSES = ("PATTERN", "FROM", "WHERE", "PARTITIONBY", "GROUPBY", "AGG", "HAVING", "WITHIN", "RETURN", "LIMIT")
OPERATORS = ("SEQ", "AND", "OR")
KEYWORDS = (*CLAUSES, *OPERATORS, "AS", "NOT", "IN", "BETWEEN", "IS", "NULL", "TRUE", "FALSE")

# The wildcard type; a type of that name needs backticks.
ANY = "ANY"
# Not reserved, but after a type named `group`, `partition` or `at` they would read as GROUP BY and the like.
_SECOND_WORDS = ("by", "level")
_PLAIN = re.compile(r"[^\W\d]\w*")
# Ignores case as the lexer does, which matches a few letters beyond ASCII to i and s.
_KEYWORD = re.compile("|".join(KEYWORDS), re.IGNORECASE)


def is_keyword(name: str) -> bool:
    """Whether the word is reserved."""
    return _KEYWORD.fullmatch(name) is not None


def spoken(clause: str) -> str:
    """The keyword of a clause as users write it."""
    return "PARTITION BY" if clause == "PARTITIONBY" else clause


def write_name(name: str) -> str:
    """The name as written in a query, in backticks if needed.

    >>> write_name("price"), write_name("ins-type"), write_name("limit")
    ('price', '`ins-type`', '`limit`')
    """
    if _PLAIN.fullmatch(name) and not is_keyword(name) and name.lower() not in _SECOND_WORDS:
        return name
    return "`" + name.replace("`", "``") + "`"


def read_name(written: str) -> str:
    """The name written in a query as `written`; the inverse of `write_name`."""
    return written[1:-1].replace("``", "`") if written.startswith("`") else written
