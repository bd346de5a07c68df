"""The functions of the language: their names and arity."""

from __future__ import annotations

from collections.abc import Iterable

from eventcube.errors import did_you_mean

AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX")
# The parts of a time, as a clock in the zone of its column shows them.
TIME_PARTS = ("YEAR", "MONTH", "DAY", "WEEKDAY", "HOUR", "MINUTE")
# The least and the greatest number of values of each function; None: no limit.
FUNCTIONS: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys((*TIME_PARTS, "DATE", "ABS", "LOWER", "UPPER", "LENGTH"), (1, 1)),
    "ROUND": (1, 2),
    "COALESCE": (2, None),
}

_PARTS_OF_DAYS = "use DATE(a.ts) for the day, HOUR(a.ts), MONTH(a.ts) and others for parts of a time"
_BUCKETS = "group by buckets of time: GROUPBY a.ts EVERY 1 hour"
_NO_CLOCK = "a query has no current time: write a timestamp, as '2024-01-31 12:00:00'"
_NO_CASES = "COALESCE(x, y) is the first value that is not null; compute other cases beforehand"
_LIKE = "use LIKE: a.s LIKE 'abc%'"
# Functions of SQL and others, and the hint what to write here.
_ELSEWHERE = {
    **dict.fromkeys(("DATE_TRUNC", "TRUNC", "EXTRACT", "DATE_PART"), _PARTS_OF_DAYS),
    **dict.fromkeys(("DATE_BIN", "TIME_BUCKET", "TUMBLE", "WINDOW"), _BUCKETS),
    **dict.fromkeys(("DAYOFWEEK", "DAY_OF_WEEK", "DOW", "DAYNAME"), "WEEKDAY(a.ts) is 1 on Monday and 7 on Sunday"),
    **dict.fromkeys(("NOW", "CURRENT_TIMESTAMP", "CURRENT_DATE", "TODAY", "GETDATE", "SYSDATE"), _NO_CLOCK),
    **dict.fromkeys(("DATEDIFF", "DATE_DIFF", "TIMESTAMPDIFF"), "subtract one time from another: b.ts - a.ts < 1 hour"),
    **dict.fromkeys(("DATEADD", "DATE_ADD", "TIMESTAMPADD"), "add a duration to a time: a.ts + 1 hour"),
    **dict.fromkeys(("CAST", "TRY_CAST", "CONVERT"), "convert the column beforehand"),
    **dict.fromkeys(("IFNULL", "NVL"), "COALESCE(x, y) is the first that is not null"),
    **dict.fromkeys(("CASE", "IF", "IIF", "NULLIF"), _NO_CASES),
    **dict.fromkeys(("CONCAT", "CONCAT_WS"), "there is no concatenation; return each text"),
    **dict.fromkeys(("CONTAINS", "STARTSWITH", "ENDSWITH", "SUBSTRING", "SUBSTR"), _LIKE),
    **dict.fromkeys(("LEN", "CHAR_LENGTH"), "LENGTH(a.s) counts characters"),
    **dict.fromkeys(("MEAN", "AVERAGE"), "AVG(a.x) is the mean"),
}
# Suggest a known function only for a name at least this similar.
_SIMILARITY = 0.75


def replacement_hint(name: str, known: Iterable[str]) -> str | None:
    """The hint for an unknown function: its name here, or the known functions.

    >>> replacement_hint("sumx", AGGREGATES), replacement_hint("MEDIAN", AGGREGATES)
    ("did you mean 'SUM'? known: AVG, COUNT, MAX, MIN, SUM", 'known: AVG, COUNT, MAX, MIN, SUM')
    """
    return _ELSEWHERE.get(name.upper()) or did_you_mean(name, known, cutoff=_SIMILARITY)


def arity(function: str) -> str:
    """How many values a function takes, in words.

    >>> arity("LOWER"), arity("ROUND"), arity("COALESCE")
    ('one value', 'one or two values', 'two values or more')
    """
    match FUNCTIONS[function]:
        case 1, 1:
            return "one value"
        case 1, 2:
            return "one or two values"
        case _:
            return "two values or more"
