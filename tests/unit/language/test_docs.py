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
