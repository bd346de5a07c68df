"""Texts of any size and depth are read or refused with a short message, in work that grows with their length."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from eventcube.errors import BindError, QueryError
from eventcube.language import parse as parsing
from eventcube.language.parse import parse
from eventcube.language.scopes import resolve
from eventcube.language.tokens import MAX_TOKENS

SOME = 20_000
HOSTILE = {
    "negations": "PATTERN SEQ(A a, " + "!(" * SOME,
    "negations, closed": "PATTERN SEQ(A a, " + "!(" * SOME + "B b" + ")" * SOME + ")",
    "parentheses": "PATTERN A a WHERE " + "(" * SOME,
    "parentheses that close nothing": "PATTERN SEQ(A a" + ")" * SOME,
    "operators": "PATTERN " + "SEQ(" * SOME,
    "unknown signs": "PATTERN A a WHERE " + "@#" * 5 * SOME,
    "one unknown sign": "PATTERN A a WHERE " + "@" * 5 * SOME,
    "mistakes in one line": "PATTERN A a WHERE " + " AND ".join(f"x{i} = 1" for i in range(3000)),
    "components": "PATTERN SEQ(" + ", ".join(f"T{i} v{i}" for i in range(50_000)) + ")",
    "components of one name": "PATTERN SEQ(" + ", ".join("A a" for _ in range(5000)) + ")",
    "a line of a megabyte": "PATTERN A a WHERE " + "a.x = 1 AND " * 83_000 + "a.y =",
    "a name of a megabyte": "PATTERN SEQ(A a, B " + "n" * 1_000_000 + ") WHERE q.x = 1",
    "an unknown clause of a megabyte": "PATTERN A a WITHIN 5 s " + "W" * 1_000_000 + " 5",
    "a text of a megabyte": "PATTERN A a WHERE a.x = '" + "t" * 1_000_000,
    "quotes": "PATTERN A a WHERE a.x = " + "'" * 1_000_001,
    "clauses": "PATTERN A a " + "WHERE a.x = 1 " * 10_000,
    "misspelt clauses": "PATTERN A a " + "RETRUN a " * 10_000,
    "misspelt clauses after numbers": "PATTERN A a WHERE a.x = 1" + " LIMT 3" * 10_000,
    "clauses in parentheses": "PATTERN SEQ(A a" + " LIMIT 5" * 10_000 + ")",
    "NOT": "PATTERN A a WHERE " + "NOT " * SOME + "a.x",
    "NOT without a condition": "PATTERN A a WHERE " + "NOT " * SOME,
    "terms": "PATTERN A a WHERE a.x = " + "1 + " * SOME + "1",
    "units": "PATTERN A a WHERE a.x = " + " + ".join(f"1 u{i}" for i in range(5000)),
    "unknown variables": "PATTERN A a WHERE " + " AND ".join(f"b{i}.x = 1" for i in range(3000)),
    "negated parts compared": "PATTERN SEQ(A a, "
    + ", ".join(f"!T{i} v{i}" for i in range(1500))
    + ") WHERE "
    + " OR ".join(f"v{i}.x = v{i + 1}.x" for i in range(1499)),
    "repetitions": "PATTERN SEQ(" + "A{3} [0] " * SOME,
    "arrows": "PATTERN A " + "-> B " * SOME,
    "digits": "PATTERN A a WITHIN 0." + "9" * 1_000_000 + " s",
    "lines": "PATTERN" + "\n" * 1_000_000 + "A a WHERE a.x =",
}


def _check(text: str) -> None:
    query = parse(text)
    if problems := resolve(query)[1]:
        raise BindError(problems, text)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_refused_with_a_short_message(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        _check(text)
    assert len(str(caught.value)) < 15_000
    assert max(map(len, str(caught.value).splitlines())) < 450


def _calls(work: Callable[[], object]) -> int:
    """How many Python functions are called for some work."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        work()
    except QueryError as error:
        str(error)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda n: "PATTERN SEQ(A a, " + "!(" * n, id="negations"),
        pytest.param(lambda n: "PATTERN SEQ(A a, " + "!(" * n + "B b" + ")" * n + ")", id="negations, closed"),
        pytest.param(lambda n: "PATTERN A a WHERE " + "(" * n, id="parentheses"),
        pytest.param(lambda n: "PATTERN A a WHERE " + "@#" * n, id="unknown signs"),
        pytest.param(lambda n: "PATTERN SEQ(" + ", ".join(f"T{i} v{i}" for i in range(n)) + ")", id="components"),
        pytest.param(
            lambda n: (
                "PATTERN SEQ(A a, "
                + ", ".join(f"!T{i} v{i}" for i in range(n))
                + ") WHERE "
                + " AND ".join(f"v{i}.x = a.x" for i in range(n))
            ),
            id="conditions beside negated parts",
        ),
        pytest.param(lambda n: "PATTERN A a " + "WHERE a.x = 1 " * n, id="clauses"),
        pytest.param(lambda n: "PATTERN A a " + "RETRUN a " * n, id="misspelt clauses"),
        pytest.param(lambda n: "PATTERN A a WHERE " + "NOT " * n, id="NOT"),
        pytest.param(lambda n: "PATTERN A a WHERE " + "x AND " * n + "x", id="mistakes"),
    ],
)
def test_twice_the_text_is_twice_the_work(make: Callable[[int], str]) -> None:
    _check("PATTERN A a")
    once, twice = (_calls(lambda n=n: _check(make(n))) for n in (600, 1200))  # type: ignore[misc]
    assert twice < 2.2 * once


def test_a_query_of_too_many_words_is_refused_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "tokens_to_clauses", None)
    with pytest.raises(QueryError) as caught:
        parse("PATTERN A a WHERE a.x IN (" + "1, " * MAX_TOKENS)
    assert [(d.code, d.message) for d in caught.value.diagnostics] == [("EC129", "more than 100000 words and signs")]


def test_a_long_list_is_read() -> None:
    query = parse("PATTERN A a WHERE a.x IN (" + ", ".join(map(str, range(10_000))) + ")")
    assert len(query.where[0].options) == 10_000  # type: ignore[union-attr]
