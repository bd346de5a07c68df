"""The queries of the aggregate benchmark as data, to write them for eventcube and for DuckDB."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eventcube.bench.trades import SYMBOLS
from eventcube.bench.workload import Sequence

LENGTHS = (3, 5, 8)
WINDOWS = (100, 1_000, 10_000, 100_000, 1_000_000)
# The order of the symbols does not matter, as all are equally frequent.
STEPS = ("QQQ", "DELL", "INTC", "FCF", "ROM", "MSFT", "EFC", "ANAT")

# Of the second event: neither the first nor the last, so that the numbers must be carried along.
AGGREGATES: Mapping[str, tuple[str, str]] = {
    "COUNT": ("COUNT(*)", "count(*)"),
    "SUM": ("SUM(b.volume)", "sum(b.volume)"),
    "AVG": ("AVG(b.price)", "avg(b.price)"),
}
"""For each aggregate how eventcube and SQL write it."""


@dataclass(frozen=True, slots=True)
class Case:
    """A SEQ of some length over a window of about so many trades, one a millisecond."""

    length: int
    window: int
    by_events: bool = False
    """WITHIN so many events, else so many milliseconds."""
    keyed: bool = False
    """All events of a match have the same account."""

    @property
    def series(self) -> tuple[bool, bool]:
        """What all cases of a table have in common."""
        return self.by_events, self.keyed

    @property
    def name(self) -> str:
        return f"SEQ of {self.length}{', keyed' if self.keyed else ''}, WITHIN {self.within}"

    @property
    def within(self) -> str:
        return f"{self.window} {'events' if self.by_events else 'ms'}"

    def text(self, aggregate: str) -> str:
        """The query for eventcube."""
        pattern, _, _ = self._sequence().pattern.rpartition(" WITHIN ")
        return f"{pattern} WITHIN {self.within} AGG {AGGREGATES[aggregate][0]} AS answer"

    @property
    def numbering(self) -> str:
        """The query for eventcube that tells about how many matches there are, however many: a sum of floats."""
        return f"{self.text('COUNT').rpartition(' AGG ')[0]} AGG SUM(b.volume * 0.0 + 1.0) AS answer"

    def joined(self, aggregate: str) -> Sequence:
        """The query whose self-joins compute the same in SQL."""
        return self._sequence({"COUNT": (), "SUM": ("volume",), "AVG": ("price",)}[aggregate], AGGREGATES[aggregate][1])

    def _sequence(self, carried: tuple[str, ...] = (), computed: str = "") -> Sequence:
        # The first and the last of n events, one a millisecond, are n - 1 milliseconds apart.
        width = self.window - 1 if self.by_events else self.window
        key = "account" if self.keyed else None
        steps = STEPS[: self.length]
        answer = f"{computed} AS answer" if computed else ""
        return Sequence(self.name, steps, width, key=key, carried=carried, computed=answer)


def cases(
    lengths: Iterable[int] = LENGTHS, windows: Iterable[int] = WINDOWS, *, most_events: int = 1_000_000
) -> list[Case]:
    """All cases, table by table; no window is longer than the events."""
    windows = [window for window in windows if window <= most_events]
    return [
        Case(length, window, by_events, keyed)
        for keyed in (False, True)
        for by_events in (False, True)
        for length in lengths
        for window in windows
    ]


def window_for(matches: float, events: int, length: int) -> int:
    """The window, in milliseconds, in which a SEQ of symbols has about so many matches.

    The last event of a match is one of `events / 13`, the others are `length - 1` of the window in their order.
    """
    frequency = len(SYMBOLS)
    return round(math.pow(matches * math.factorial(length - 1) * frequency**length / events, 1 / (length - 1)))
