"""The examples in docstrings run, and say what they say."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import eventcube

ROOT = Path(eventcube.__file__).parent
MODULES = sorted(
    ".".join(["eventcube", *path.relative_to(ROOT).with_suffix("").parts])
    for path in ROOT.rglob("*.py")
    if ">>> " in path.read_text("utf-8") and "spark" not in path.parts
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    result = doctest.testmod(import_module(name))
    assert result.attempted
    assert not result.failed
