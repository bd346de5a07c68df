"""What the documents say is there, is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from eventcube.concepts.concepts import Concepts
from tests.documents.pages import PAGES, ROOT, blocks

PACKAGE = ROOT / "src" / "eventcube"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://|mailto:|#)([^)#\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    pages = {p.name for p in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages <= set(re.findall(r"\]\(([^)]+)\)", index))


def test_the_readme_links_every_page() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    pages = {f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md")} - {"docs/README.md"}
    assert pages <= set(re.findall(r"\]\(([^)]+)\)", readme))


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


def test_every_error_code_is_listed_once() -> None:
    listed = re.findall(r"^\| (EC\d{3}) \| \S", (ROOT / "docs" / "errors.md").read_text("utf-8"), re.MULTILINE)
    used = {code for file in PACKAGE.rglob("*.py") for code in re.findall(r"\bEC[1-9]\d\d\b", file.read_text("utf-8"))}
    assert listed == sorted(used)


def test_the_hierarchy_of_types_that_is_shown_can_be_read() -> None:
    (shown,) = (block for block in blocks(ROOT / "docs" / "language.md") if block.language == "yaml")
    concepts = Concepts(yaml.safe_load(shown.text))
    assert concepts.closure("Phone") == {"Phone", "Nokia", "Smartphone", "Pixel", "Galaxy"}
    assert concepts.closure("Shop") == {"Shop", "Online", "Amazon", "Street", "Corner shop"}
