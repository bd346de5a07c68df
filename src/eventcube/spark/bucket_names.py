"""Names of the buckets of a stream, which are the keys of its state groups."""

from __future__ import annotations

# The names of the buckets of a pass are this far from those of the one before.
_PASS = 1_000_000


def group_names(buckets: int, place: int = 0) -> tuple[int, ...]:
    """Names of the buckets of the pass at a place, which Spark's hash spreads evenly over as many partitions.

    The first number of a place is always among them: with another number of buckets, a bucket with state is asked.
    """
    names: dict[int, int] = {}
    number = place * _PASS
    while len(names) < buckets:
        names.setdefault(spark_hash(number) % buckets, number)
        number += 1
    return tuple(names[partition] for partition in range(buckets))


def place_of(name: int) -> int:
    """The place of the pass of a bucket."""
    return name // _PASS


def spark_hash(number: int) -> int:
    """Spark's hash of an integer of 32 bits (Murmur3, seed 42)."""
    mask = 0xFFFFFFFF
    mixed = number * 0xCC9E2D51 & mask
    mixed = (mixed << 15 | mixed >> 17) & mask
    state = 42 ^ (mixed * 0x1B873593 & mask)
    state = (state << 13 | state >> 19) & mask
    state = (state * 5 + 0xE6546B64 & mask) ^ 4
    state = (state ^ state >> 16) * 0x85EBCA6B & mask
    state = (state ^ state >> 13) * 0xC2B2AE35 & mask
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state
