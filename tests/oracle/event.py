"""Events as the oracle sees them, and the two ranks every event has."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


class Nanoseconds(int):
    """A time in nanoseconds; conditions see it in microseconds, rounded down."""


class Seconds(int):
    """A time in seconds; conditions see it in microseconds, and as null if it is too far away for those."""


@dataclass(frozen=True)
class Event:
    """One event; `id` is its place in the order of arrival, `ts` its time in microseconds.

    `order` holds the values of the order column(s), or None if there is none; `key` the partition's key, or None.
    `zones` has the columns of times, each with its zone or None; times with a zone are counted in UTC.
    """

    id: int
    type: str | None
    ts: int
    order: tuple[Any, ...] | None = None
    key: Hashable = None
    attrs: Mapping[str, Any] = field(default_factory=dict)
    zones: Mapping[str, str | None] = field(default_factory=lambda: {"ts": None, "t": "America/New_York"})

    def __hash__(self) -> int:
        return self.id

    @property
    def moment(self) -> tuple[Any, ...]:
        """What events are ordered by; equal moments come neither before nor after one another."""
        return (self.ts, *map(_order_key, self.order or ()))


def _order_key(value: Any) -> tuple[Any, ...]:
    """Null and NaN come first, and are equal."""
    return (0,) if value is None or (isinstance(value, float) and math.isnan(value)) else (1, value)


@dataclass(frozen=True)
class Ranked:
    """An event with its `ord` (place in the order of time) and its `pos` (place in the stream)."""

    event: Event
    ord: int
    pos: int

    @property
    def id(self) -> int:
        return self.event.id


def rank(events: Iterable[Event]) -> list[Ranked]:
    """The events by (`ord`, arrival), with both ranks; `pos` counts among the events of the same key."""
    ordered = sorted(events, key=lambda e: (e.moment, e.id))
    moments = {moment: i for i, moment in enumerate(sorted({e.moment for e in ordered}))}
    seen: Counter[Hashable] = Counter()
    ranked = []
    for event in ordered:
        ranked.append(Ranked(event, moments[event.moment], seen[event.key]))
        seen[event.key] += 1
    return ranked
