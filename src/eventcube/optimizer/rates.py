"""The rates of events as they run, and whether they are still those that a decision was made by."""

from __future__ import annotations

from collections.abc import Mapping

# Rates have changed if one has by so much (the paper's theta), and by so many standard deviations: rates of a few
# events are never the same.
DRIFT, DEVIATIONS = 0.2, 3.0
# How many times are averaged, the latest counting most.
MEMORY = 8


class Rates:
    """The share of each stack in all events: a running average, and what it was at the last decision."""

    def __init__(self) -> None:
        self._running: dict[int, float] = {}
        self._decided: dict[int, float] = {}
        self._times = 0
        self._events = 0.0

    def note(self, rates: Mapping[int, float], events: int) -> None:
        """Take note of the rates among some events."""
        self._times = min(MEMORY, self._times + 1)
        part = 1.0 / self._times
        self._events += part * (events - self._events)
        for stack, rate in rates.items():
            before = self._running.get(stack, rate)
            self._running[stack] = before + part * (rate - before)

    def decide(self) -> None:
        """Decide by the rates as they are."""
        self._decided = dict(self._running)

    @property
    def have_changed(self) -> bool:
        """Whether they are no longer those of the last decision, or there was none."""
        if self._running.keys() != self._decided.keys():
            return True
        counted = max(1.0, self._times * self._events)
        for stack, rate in self._running.items():
            change, most = abs(rate - self._decided[stack]), max(rate, self._decided[stack])
            if change > DRIFT * most and change > DEVIATIONS * (most / counted) ** 0.5:
                return True
        return False
