"""The chunks that hold the state of a bucket of a stream.

The first chunk has the whole state, each later one what changed since the one before it. A micro-batch adds a chunk
and never writes the others again. So that what left the window does not stay, a chunk takes the place of those before
it once half of their rows are not needed any more; and of the last ones of its size once there are many of them, so
that there are few chunks, however long the stream runs.

Nothing here needs Spark, so it can be tested without it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from eventcube.engine.state import Version
from eventcube.errors import OptionError
from eventcube.runtime.snapshot import damaged

# The format of what a bucket stores: what it is of, the list of its chunks, and these. A checkpoint of a later format
# is refused; one of an earlier format must be read.
FORMAT = 1
# How many chunks of a tier become one of the next.
PER_TIER = 16


@dataclass(frozen=True, slots=True)
class Chunk:
    """A saved part of a state: its number, the tier of its size, its rows and bytes, and the version it leads to.

    No other chunk has its number, not even one that a failed attempt wrote in its place.
    """

    number: int
    tier: int
    rows: int
    size: int
    version: Version


@dataclass(frozen=True, slots=True)
class Manifest:
    """The chunks of a bucket, in order, and the timer that is set."""

    chunks: tuple[Chunk, ...] = ()
    timer: int | None = None

    def to_bytes(self) -> bytes:
        """The manifest as it is stored."""
        chunks = [[c.number, c.tier, c.rows, c.size, *c.version.numbers, c.version.line] for c in self.chunks]
        stored = {"format": FORMAT, "chunks": chunks, "timer": self.timer}
        return json.dumps(stored, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """A stored manifest."""
        try:
            stored = json.loads(data)
            if stored["format"] > FORMAT:
                raise OptionError(
                    f"the checkpoint has format {stored['format']}, this eventcube reads formats up to {FORMAT}",
                    code="EC411",
                    hint="run the stream with the version of eventcube that wrote the checkpoint, or a later one",
                )
            chunks = tuple(
                Chunk(number, tier, rows, size, Version(*at)) for number, tier, rows, size, *at in stored["chunks"]
            )
            return cls(chunks, stored["timer"])
        except (ValueError, TypeError, KeyError) as error:
            raise damaged(f"the list of its chunks cannot be read: {error!r}") from None


def place_of_next(chunks: tuple[Chunk, ...], fresh: int, retained: int) -> tuple[tuple[Chunk, ...], int]:
    """The chunks that stay before a new one, which has all that changed since them, and the tier of the new one.

    `fresh` rows came since the last chunk, and the state has `retained` rows in all.
    """
    if sum(chunk.rows for chunk in chunks) + fresh > 2 * retained:
        return (), 0
    tier = 0
    while len(chunks) >= PER_TIER and all(chunk.tier == tier for chunk in chunks[1 - PER_TIER :]):
        chunks, tier = chunks[: 1 - PER_TIER], tier + 1
    return chunks, tier
