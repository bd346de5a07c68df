"""When groups by buckets of time are final: once no match to come can fall into them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eventcube.language.syntax import TimeWindow
from eventcube.plan.expressions import ColumnRef, Every
from eventcube.plan.logical import LogicalQuery


@dataclass(frozen=True, slots=True)
class ClosingKey:
    """A key of groups, by its number, that is a bucket of the time column: its length (microseconds) and zone.

    No match to come falls into a bucket once the watermark is at its end, or as much as `delay` after it.
    """

    number: int
    microseconds: int
    zone: str | None
    delay: int


def closing_of(logical: LogicalQuery, forward: bool, last: tuple[int, ...]) -> tuple[ClosingKey, ...]:
    """The keys that close groups as the watermark moves on; none if only the end of the input does.

    `forward` plans report a match once its window has closed; `last` are the slots that may hold its last event.
    """
    return tuple(_closing_keys(logical, forward, last))


def _closing_keys(logical: LogicalQuery, forward: bool, last: tuple[int, ...]) -> Iterator[ClosingKey]:
    for number, key in enumerate(logical.results.group_by):
        match key.value.expression:
            case Every(ColumnRef(slot, column), microseconds, clock) if column == logical.schema.time:
                # In an alternative that a match does not take there is no time.
                delay = None if logical.slots[slot].alternatives else _delay(logical, slot, forward, last)
                if delay is not None:
                    yield ClosingKey(number, microseconds, clock.zone, delay)


def _delay(logical: LogicalQuery, slot: int, forward: bool, last: tuple[int, ...]) -> int | None:
    """How far before the watermark the event of a slot can be in a match that is still to be reported; None: any time.

    A match is reported when its last event is before the watermark, so that of a match to come is not: its time is the
    watermark's or later, and that of every other event at most a window earlier. A forward plan reports a match when
    its first event is more than a window before the watermark, so the first event of a match to come is at most a
    window before it, and no other is earlier. A window of events bounds no time, but by the last event itself.
    """
    if not forward and last == (slot,):
        return 0
    return logical.window.microseconds if isinstance(logical.window, TimeWindow) else None
