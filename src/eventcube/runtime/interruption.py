"""Calls that were interrupted, as by Ctrl-C, and left their work half done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from eventcube.errors import EventCubeError, OptionError


class Interruption:
    """Whether some call was interrupted."""

    def __init__(self) -> None:
        self._happened = False

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Take note if the work inside is interrupted; to refuse input changes nothing, and is no interruption."""
        try:
            yield
        except (EventCubeError, GeneratorExit):
            raise
        except BaseException:
            self._happened = True
            raise

    def check(self) -> None:
        """Refuse to go on after an interruption."""
        if self._happened:
            raise OptionError(
                "a call before was interrupted, so that matches may be lost",
                code="EC407",
                hint="make a new runtime, restore the last snapshot, and push the events since then again",
            )
