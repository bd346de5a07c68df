"""The documents, and the blocks in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; `line` is where it begins."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page that name a language, in order."""
    text = page.read_text("utf-8")
    return list(_blocks(text, 0, len(text)))


def _blocks(text: str, start: int, end: int) -> Iterator[Block]:
    for block in _BLOCK.finditer(text, start, end):
        yield Block(block[1], block[2], text.count("\n", 0, block.start()) + 1)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page below a heading of the second level."""

    title: str
    text: str
    blocks: tuple[Block, ...]

    def block(self, language: str) -> str:
        """The text of the section's only block in a language."""
        (found,) = (block.text for block in self.blocks if block.language == language)
        return found


def sections(page: Path) -> list[Section]:
    """The sections of a page, in order."""
    text = page.read_text("utf-8")
    heads = list(re.finditer(r"^## (.*)$", text, re.MULTILINE))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return [
        Section(head[1], text[head.end() : end], tuple(_blocks(text, head.end(), end)))
        for head, end in zip(heads, ends, strict=True)
    ]
