"""What the documents say is there, is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documents.pages import PAGES, ROOT

PACKAGE = ROOT / "src" / "eventcube"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://|mailto:|#)([^)#\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    pages = {p.name for p in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages <= set(re.findall(r"\]\(([^)]+)\)", index))


def test_the_modules_that_architecture_names_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    named = set(re.findall(r"`((?:\w+/)*\w+\.py)`", text))
    assert [name for name in sorted(named) if not (PACKAGE / name).is_file()] == []


def test_architecture_names_every_module() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    modules = {str(p.relative_to(PACKAGE)) for p in PACKAGE.rglob("*.py") if p.name != "__init__.py"}
    assert [name for name in sorted(modules) if f"`{name}`" not in text] == []


def test_the_commands_that_documents_show_exist() -> None:
    from eventcube.cli import main

    for page in PAGES:
        for name in re.findall(r"(?:`|\$ |\n\n?```\n)eventcube (\w[\w-]*)", page.read_text("utf-8")):
            assert name in main.commands, f"{page.name}: eventcube {name}"
