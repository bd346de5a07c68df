"""Batches that are computed as they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class LookAhead(Iterator[Any]):
    """An iterator that can tell whether there is more: it computes the next batch then, and keeps it."""

    def __init__(self, source: Iterator[Any]) -> None:
        self._source = source
        self._next: Any = None

    def __next__(self) -> Any:
        batch, self._next = self._next, None
        return next(self._source) if batch is None else batch

    def more(self) -> bool:
        """Whether there is another batch."""
        if self._next is None:
            self._next = next(self._source, None)
        return self._next is not None
