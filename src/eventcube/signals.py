"""Signals that wait for a piece of work."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ENDING = [number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None]


@contextmanager
def signals_wait() -> Iterator[list[int]]:
    """Handle signals once the block is done, such as a callback from C, where what a handler raises is lost.

    The block gets the list of those that came so far.
    """
    came: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    handlers = {number: handler for number in _ENDING if is_main and callable(handler := signal.getsignal(number))}
    for number in handlers:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield came
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for number in came:
        signal.raise_signal(number)
