"""Every query shown in the documentation is a query."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eventcube.language.parse import parse
from eventcube.language.printer import print_query

ROOT = Path(__file__).parents[3]
SHOWN = [
    (f"{page.name}:{page.read_text('utf-8').count(chr(10), 0, block.start()) + 2}", block[1])
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    for block in re.finditer(r"^```neel\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
]


@pytest.mark.parametrize("text", [text for _, text in SHOWN], ids=[place for place, _ in SHOWN])
def test_a_query_in_the_documentation_parses(text: str) -> None:
    query = parse(text)
    assert parse(print_query(query)) == query


def test_the_reference_lists_every_code_of_the_parser() -> None:
    page = (ROOT / "docs" / "language.md").read_text("utf-8")
    folder = ROOT / "src" / "eventcube" / "language"
    used = {code for file in folder.glob("*.py") for code in re.findall(r'"(EC1\d\d)"', file.read_text("utf-8"))}
    assert set(re.findall(r"^\| (EC1\d\d) \|", page, re.MULTILINE)) == used
