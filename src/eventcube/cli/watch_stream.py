"""Waits for a stream: until it ends, or until a signal or a condition stops it."""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from eventcube.cli.stream_status import StatusLine

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from eventcube.spark.metrics import StreamMetrics, StreamTotals

_POLL_SECONDS = 0.25
# Spark's listeners are told of the end in a thread of their own.
_TOLD_SECONDS = 10


def _never(_: StreamTotals) -> bool:
    return False


def watch_stream(
    query: StreamingQuery,
    metrics: StreamMetrics,
    status: StatusLine,
    signals: list[int],
    is_done: Callable[[StreamTotals], bool] = _never,
) -> StreamTotals | None:
    """Show the status until the query ends; stop it at a signal, or when it is done, and at a second signal at once.

    Gives the figures of all its micro-batches. `signals` are those that came so far.
    """
    name = str(query.id)
    stopping: Thread | None = None
    try:
        status.show(None)
        # Spark takes fractions of seconds, whatever its types say.
        while not query.awaitTermination(_POLL_SECONDS):  # type: ignore[arg-type]
            if len(signals) > 1:
                raise KeyboardInterrupt
            totals = metrics.of(name)
            if signals:
                status.show(None, note="stopping; once more to stop at once")
            else:
                status.show(totals, note=_first_note(query) if totals is None else "")
            if stopping is None and (signals or (totals is not None and is_done(totals))):
                stopping = _start_to_stop(query)
    finally:
        status.end()
    end = clock.monotonic() + _TOLD_SECONDS
    while not metrics.has_ended(name) and clock.monotonic() < end:
        clock.sleep(0.01)
    return metrics.of(name)


def _first_note(query: StreamingQuery) -> str:
    """What is to be said before the first micro-batch has ended."""
    now: dict[str, object] = {}
    # A stream that fails is told of elsewhere.
    with suppress(Exception):
        now = dict(query.status)
    return (
        "the first micro-batch runs"
        if now.get("isTriggerActive") and now.get("isDataAvailable")
        else "waiting for events"
    )


def _start_to_stop(query: StreamingQuery) -> Thread:
    """Stop a query in a thread of its own, as Spark waits for what runs; it tells what fails where one waits for it."""

    def stop() -> None:
        with suppress(Exception):
            query.stop()

    thread = Thread(target=stop, name="eventcube-stop", daemon=True)
    thread.start()
    return thread
