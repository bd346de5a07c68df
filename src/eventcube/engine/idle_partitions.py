"""Retained events of idle partitions, stored apart so that a batch costs only the partitions it touches.

A window of events never closes in a partition without new events, so its events stay. They are sorted by a hash of
their key, in tiers each much larger than the next, as in a log-structured merge tree: a look-up reads no other keys,
and adding a few events moves few. Two keys with the same hash come back together, which does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventcube.engine.columns import comparable, encoded_of, to_column
from eventcube.engine.kernels import Bools, Ints
from eventcube.engine.rows import Rows
from eventcube.engine.saved import BOUND
from eventcube.schema import Kind, kind_of

Hashes = npt.NDArray[np.uint64]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_NULL_HASH = np.uint64(0x2545F4914F6CDD1D)


def hashes_of(columns: Sequence[pa.ChunkedArray]) -> Hashes:
    """A hash for each row, the same for equal values in all batches."""
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashes = (hashes ^ _hashed(comparable(column))) * _MULTIPLIER
        hashes ^= hashes >> np.uint64(29)
    return hashes


def _hashed(column: pa.ChunkedArray) -> Hashes:
    if kind_of(column.type) in (Kind.INTEGER, Kind.BOOLEAN) or pa.types.is_floating(column.type):
        numbers = to_column(column)
        null = np.isnan(numbers.values) if numbers.valid is None else ~numbers.valid
        return np.where(null, _NULL_HASH, numbers.values.view(np.uint64))
    encoded = encoded_of(column)
    values = np.array([hash(v) for v in encoded.dictionary.to_pylist()], np.int64).view(np.uint64)
    codes = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    hashes: Hashes = np.append(values, _NULL_HASH)[codes]
    return hashes


@dataclass(slots=True)
class _Tier:
    """Events, and the totals of each partition, both sorted by hash; the masks tell which are still present."""

    row_hashes: Hashes
    rows: Rows
    rows_present: Bools
    key_hashes: Hashes
    totals: pa.Table
    totals_present: Bools
    events: int
    partitions: int
    # A number that no event is below.
    first_sequence: int

    def __len__(self) -> int:
        return self.events + self.partitions

    @property
    def remaining(self) -> tuple[Rows, pa.Table]:
        """The events and totals that are still present."""
        return self.rows.where(self.rows_present), self.totals.filter(pa.array(self.totals_present))


class IdlePartitions:
    """Events of idle partitions, with the totals of the partitions, by hash of the key."""

    def __init__(self, key: tuple[str, ...]) -> None:
        self._key = key
        self._tiers: list[_Tier] = []

    @property
    def events(self) -> int:
        """The number of events."""
        return sum(t.events for t in self._tiers)

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        return sum(t.partitions for t in self._tiers)

    @property
    def first_sequence(self) -> int:
        """A number that no event is below."""
        return min((tier.first_sequence for tier in self._tiers), default=BOUND)

    def put(self, rows: Rows, totals: pa.Table) -> None:
        """Add events, with the totals of their partitions."""
        self._tiers.append(self._tier(rows, totals))
        while len(self._tiers) > 1 and len(self._tiers[-2]) < 4 * len(self._tiers[-1]):
            small, large = self._tiers.pop(), self._tiers.pop()
            self._tiers.append(self._tier(*_joined([large.remaining, small.remaining])))

    def _tier(self, rows: Rows, totals: pa.Table) -> _Tier:
        row_hashes = hashes_of([rows.payload.column(k) for k in self._key])
        key_hashes = hashes_of(totals.columns[:-1])
        by_row, by_key = np.argsort(row_hashes, kind="stable"), np.argsort(key_hashes, kind="stable")
        return _Tier(
            row_hashes[by_row],
            rows.take(by_row),
            np.ones(len(by_row), np.bool_),
            key_hashes[by_key],
            totals.take(pa.array(by_key)),
            np.ones(len(by_key), np.bool_),
            len(by_row),
            len(by_key),
            int(rows.seq.min()) if len(rows) else BOUND,
        )

    def take(self, hashes: Hashes) -> tuple[Rows, pa.Table] | None:
        """Remove and return the events of partitions with these hashes, unordered, and the totals; None if none."""
        taken = []
        for tier in self._tiers:
            rows, totals = (
                _positions(tier.row_hashes, tier.rows_present, hashes),
                _positions(tier.key_hashes, tier.totals_present, hashes),
            )
            if len(totals):
                taken.append((tier.rows.take(rows), tier.totals.take(pa.array(totals))))
                tier.rows_present[rows], tier.totals_present[totals] = False, False
                tier.events, tier.partitions = tier.events - len(rows), tier.partitions - len(totals)
        self._tiers = [t for t in self._tiers if len(t)]
        return _joined(taken) if taken else None

    def take_all(self) -> tuple[Rows, pa.Table] | None:
        """Remove and return everything; None if there is nothing."""
        pairs = [tier.remaining for tier in self._tiers]
        self._tiers = []
        return _joined(pairs) if pairs else None


def _positions(sorted_hashes: Hashes, present: Bools, wanted: Hashes) -> Ints:
    """The positions of the wanted hashes, which are distinct, that are still present."""
    lo = np.searchsorted(sorted_hashes, wanted)
    width = np.searchsorted(sorted_hashes, wanted, side="right") - lo
    positions = np.arange(int(width.sum())) + np.repeat(lo - np.cumsum(width) + width, width)
    remaining: Ints = positions[present[positions]]
    return remaining


def _joined(pairs: Sequence[tuple[Rows, pa.Table]]) -> tuple[Rows, pa.Table]:
    rows, totals = pairs[0]
    for more, others in pairs[1:]:
        rows, totals = rows.append(more), pa.concat_tables([totals, others])
    return rows, totals
