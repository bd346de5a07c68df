"""What is said while a stream runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from eventcube.cli.watch_stream import watch_stream

WAITING, RUNNING = "waiting for events", "the first micro-batch runs"


class Query:
    """A query whose first micro-batch has not ended, and which ends after a while."""

    id = "1"

    def __init__(self, status: dict[str, Any]) -> None:
        self.status, self.waits = status, 2

    def awaitTermination(self, seconds: float) -> bool:
        self.waits -= 1
        return self.waits < 0


@pytest.mark.parametrize(
    ("status", "note"),
    [
        ({"isTriggerActive": True, "isDataAvailable": True}, RUNNING),
        ({"isTriggerActive": True, "isDataAvailable": False}, WAITING),
        ({}, WAITING),
    ],
)
def test_the_first_micro_batch_is_not_called_waiting(status: dict[str, Any], note: str) -> None:
    notes: list[str] = []
    shown = SimpleNamespace(show=lambda _, note=WAITING: notes.append(note), end=lambda: None)
    metrics = SimpleNamespace(of=lambda _: None, has_ended=lambda _: True)
    query: Any = Query(status)
    assert watch_stream(query, metrics, shown, []) is None  # type: ignore[arg-type]
    assert notes == [WAITING, note, note]
