"""The five questions of `docs/coming-from.md`: each query finds what its SQL finds, and the page shows it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.documents.answers import ask, ask_sql, rows, shown
from tests.documents.pages import ROOT, Section, blocks, sections

PAGE = ROOT / "docs" / "coming-from.md"
QUESTIONS = [section for section in sections(PAGE) if section.title[0].isdigit()]


@pytest.fixture(scope="module")
def events() -> pa.Table:
    names: dict[str, Any] = {}
    (block,) = (block for block in blocks(PAGE) if block.language == "python")
    exec(compile("\n" * block.line + block.text, "docs/coming-from.md", "exec"), names)
    return pa.Table.from_pandas(names["events"], preserve_index=False)


def test_there_are_five() -> None:
    assert len(QUESTIONS) == 5


@pytest.mark.parametrize("section", QUESTIONS, ids=lambda section: section.title)
def test_a_question_has_the_answer_that_sql_gives(section: Section, events: pa.Table) -> None:
    answer = ask(events, section.block("neel"), type="kind")
    expected = ask_sql({"events": events}, section.block("sql"))
    assert list(answer.columns) == list(expected.columns)
    assert rows(answer) == rows(expected)
    assert section.block("text") == shown(answer)
