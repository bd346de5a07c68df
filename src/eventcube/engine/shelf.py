"""Kept events of partitions that get none at the moment, laid away so that a batch costs what it touches.

A window of events never closes for a partition in which nothing more comes, so such events stay. They are sorted by a
hash of their key, in tiers each much larger than the next: finding those of some keys goes over none of the others,
and laying away a few moves a few. Two keys of one hash come back together, which does no harm.
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
from eventcube.schema import Kind, kind_of

Hashes = npt.NDArray[np.uint64]

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0x2545F4914F6CDD1D)


def hashes_of(columns: Sequence[pa.ChunkedArray]) -> Hashes:
    """A number for each row, the same for equal values of all columns, in whatever batch they come."""
    found = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        found = (found ^ _hashed(comparable(column))) * _FACTOR
        found ^= found >> np.uint64(29)
    return found


def _hashed(column: pa.ChunkedArray) -> Hashes:
    if kind_of(column.type) in (Kind.INTEGER, Kind.BOOLEAN) or pa.types.is_floating(column.type):
        numbers = to_column(column)
        missing = np.isnan(numbers.values) if numbers.valid is None else ~numbers.valid
        return np.where(missing, _NULL, numbers.values.view(np.uint64))
    encoded = encoded_of(column)
    values = np.array([hash(v) for v in encoded.dictionary.to_pylist()], np.int64).view(np.uint64)
    codes = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    found: Hashes = np.append(values, _NULL)[codes]
    return found


@dataclass(slots=True)
class _Tier:
    """Events and the number of events of each partition, both sorted by hash, and which of them are still there."""

    row_hashes: Hashes
    rows: Rows
    rows_left: Bools
    key_hashes: Hashes
    totals: pa.Table
    totals_left: Bools
    events: int
    partitions: int

    def __len__(self) -> int:
        return self.events + self.partitions

    @property
    def left(self) -> tuple[Rows, pa.Table]:
        """All that is still there."""
        return self.rows.where(self.rows_left), self.totals.filter(pa.array(self.totals_left))


class Shelf:
    """Takes events with the totals of their partitions, and gives back those of some keys."""

    def __init__(self, key: tuple[str, ...]) -> None:
        self._key = key
        self._tiers: list[_Tier] = []

    @property
    def events(self) -> int:
        """How many events are here."""
        return sum(t.events for t in self._tiers)

    @property
    def partitions(self) -> int:
        """How many partitions they are of."""
        return sum(t.partitions for t in self._tiers)

    def put(self, rows: Rows, totals: pa.Table) -> None:
        """Lay events away, with the totals of their partitions."""
        self._tiers.append(self._tier(rows, totals))
        while len(self._tiers) > 1 and len(self._tiers[-2]) < 4 * len(self._tiers[-1]):
            small, large = self._tiers.pop(), self._tiers.pop()
            self._tiers.append(self._tier(*_joined([large.left, small.left])))

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
        )

    def take(self, hashes: Hashes) -> tuple[Rows, pa.Table] | None:
        """The events of partitions with one of these hashes, in no order, and the totals; None if there are none."""
        found = []
        for tier in self._tiers:
            rows, totals = _of(tier.row_hashes, tier.rows_left, hashes), _of(tier.key_hashes, tier.totals_left, hashes)
            if len(totals):
                found.append((tier.rows.take(rows), tier.totals.take(pa.array(totals))))
                tier.rows_left[rows], tier.totals_left[totals] = False, False
                tier.events, tier.partitions = tier.events - len(rows), tier.partitions - len(totals)
        self._tiers = [t for t in self._tiers if len(t)]
        return _joined(found) if found else None

    def take_all(self) -> tuple[Rows, pa.Table] | None:
        """Everything."""
        pairs = [tier.left for tier in self._tiers]
        self._tiers = []
        return _joined(pairs) if pairs else None


def _of(sorted_hashes: Hashes, left: Bools, wanted: Hashes) -> Ints:
    """The places of the wanted hashes, each of which is there once, that are left."""
    lo = np.searchsorted(sorted_hashes, wanted)
    width = np.searchsorted(sorted_hashes, wanted, side="right") - lo
    places = np.arange(int(width.sum())) + np.repeat(lo - np.cumsum(width) + width, width)
    found: Ints = places[left[places]]
    return found


def _joined(pairs: Sequence[tuple[Rows, pa.Table]]) -> tuple[Rows, pa.Table]:
    rows, totals = pairs[0]
    for more, others in pairs[1:]:
        rows, totals = rows.append(more), pa.concat_tables([totals, others])
    return rows, totals
