"""Walking syntax trees whatever their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from eventcube.errors import Span


def children(node: object) -> Iterator[object]:
    """The nodes directly below a node of the syntax tree."""
    if not is_dataclass(node):
        return
    for field in fields(node):
        value = getattr(node, field.name)
        for child in value if isinstance(value, tuple) else (value,):
            if is_dataclass(child) and not isinstance(child, Span):
                yield child
