"""The twelve questions: each query finds the rows that its SQL finds, and the page shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from eventcube.bench.purchases import purchase_log
from tests.documents.answers import ask, ask_sql, rows, shown
from tests.documents.pages import ROOT, Section, blocks, sections

QUESTIONS = [section for section in sections(ROOT / "docs" / "questions.md") if section.title[0].isdigit()]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    """The purchases, and the flights as `docs/flights.md` makes them."""
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("flights"))
        for block in blocks(ROOT / "docs" / "flights.md"):
            if block.language == "python" and "events" not in names:
                exec(compile("\n" * block.line + block.text, "docs/flights.md", "exec"), names)
        assert Path("flights.parquet").is_file()
    events: pd.DataFrame = names["events"]
    return {"flights": pa.Table.from_pandas(events, preserve_index=False), "purchases": purchase_log()}


def test_there_are_twelve() -> None:
    assert [section.title.partition(".")[0] for section in QUESTIONS] == [str(n) for n in range(1, 13)]


@pytest.mark.parametrize("section", QUESTIONS, ids=lambda section: section.title)
def test_a_question_has_the_answer_that_sql_gives(section: Section, tables: dict[str, pa.Table]) -> None:
    sql = section.block("sql")
    (name,) = (name for name in tables if f" {name} " in sql or f" {name}\n" in sql or f" {name})" in sql)
    kind = {"flights": "kind", "purchases": "activity"}[name]
    answer = ask(tables[name], section.block("neel"), type=None if "without `type=`" in section.text else kind)
    expected = ask_sql(tables, sql)
    assert list(answer.columns) == list(expected.columns)
    assert rows(answer) == rows(expected)
    assert len(answer) > 0
    assert section.block("text") == shown(answer)
