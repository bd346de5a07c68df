"""Fixtures of titled cases: `=== title`, the input, and after a line `---` what is expected of it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Titled(NamedTuple):
    """One case of a fixture file; `expected` is empty where the case has none."""

    title: str
    given: str
    expected: str


def read_titled(name: str) -> list[Titled]:
    """The cases of a fixture file in this folder."""
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    cases = []
    for block in ("\n" + text).split("\n=== ")[1:]:
        title, _, body = block.partition("\n")
        given, _, expected = body.partition("---\n")
        cases.append(Titled(title.strip(), given.rstrip("\n"), expected.strip("\n")))
    return cases
