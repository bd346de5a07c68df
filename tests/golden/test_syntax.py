"""What queries say back: every message of the parser, word for word, and every query of the papers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.golden.titled import Titled, read_titled

import eventcube.language
from eventcube.errors import QuerySyntaxError
from eventcube.language.parse import parse
from eventcube.language.printer import print_query

ERRORS = read_titled("syntax_errors.txt")
PAPERS = read_titled("papers.txt")
PRINTED = read_titled("printed.txt")


def _title(case: Titled) -> str:
    return case.title


@pytest.mark.parametrize("case", ERRORS, ids=_title)
def test_a_mistake_is_explained(case: Titled) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse(case.given)
    assert str(caught.value) == case.expected


def test_every_code_of_the_parser_has_a_golden_message() -> None:
    folder = Path(eventcube.language.__file__).parent
    used = {code for file in folder.glob("*.py") for code in re.findall(r'"(EC1\d\d)"', file.read_text("utf-8"))}
    shown = {code for case in ERRORS for code in re.findall(r"error\[(EC\d+)\]", case.expected)}
    # A query of so many words would fill the page (EC129); tests/unit/language/test_size.py has it.
    assert shown == used - {"EC129"}


@pytest.mark.parametrize("case", PAPERS, ids=_title)
def test_the_papers_queries_parse_and_come_back(case: Titled) -> None:
    query = parse(case.given)
    assert parse(print_query(query)) == query


@pytest.mark.parametrize("case", PRINTED, ids=_title)
def test_a_query_is_printed(case: Titled) -> None:
    printed = print_query(parse(case.given))
    assert printed == case.expected
    assert print_query(parse(printed)) == printed
