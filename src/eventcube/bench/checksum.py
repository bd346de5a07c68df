"""Compares matches of contestants by a checksum of all rows that does not depend on their order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from eventcube.errors import EventCubeError

_Words = npt.NDArray[np.uint64]
_NULL = 0x6A09E667F3BCC909


class MatchesDifferError(EventCubeError):
    """The contestants found different matches, so their times cannot be compared."""

    code = "EC390"


@dataclass(frozen=True, slots=True)
class Checksum:
    """The number of rows and the sum of their hashes: equal for the same rows in any order."""

    rows: int = 0
    total: int = 0

    def __add__(self, other: Checksum) -> Checksum:
        return Checksum(self.rows + other.rows, (self.total + other.total) % 2**64)


def checksum(batches: Iterable[pa.RecordBatch]) -> Checksum:
    """The checksum of rows; a row's hash depends on the values and order of its columns, not on their names."""
    return sum((_checksum(batch) for batch in batches), Checksum())


def same_matches(name: str, checksums: Mapping[str, Checksum]) -> int:
    """The number of matches, if all contestants found the same ones."""
    if len(set(checksums.values())) > 1:
        sides = ", ".join(f"{side} {sum_.rows:,} ({sum_.total:016x})" for side, sum_ in checksums.items())
        raise MatchesDifferError(f"{name}: different matches, by their number and checksum: {sides}")
    return next(iter(checksums.values())).rows


def _checksum(batch: pa.RecordBatch) -> Checksum:
    hashes: _Words = np.zeros(batch.num_rows, np.uint64)
    for column in batch.columns:
        for words in _words(column):
            hashes = _mixed(hashes * np.uint64(31) + words)
    return Checksum(batch.num_rows, int(hashes.sum(dtype=np.uint64)))


def _words(column: pa.Array) -> list[_Words]:
    """The values as 64 bits each; a struct gives the words of its fields."""
    type_ = column.type
    if pat.is_struct(type_):
        return [words for inner in column.flatten() for words in _words(inner)]
    if pat.is_string(type_) or pat.is_large_string(type_):
        column = column.dictionary_encode()
        texts = [t.encode() for t in column.dictionary.to_pylist()]
        hashes = np.array([_hash(t) for t in texts] or [0], np.uint64)
        return [_filled(pa.array(hashes).take(column.indices))]
    if pat.is_timestamp(type_):
        column = column.cast(pa.timestamp("us")).cast(pa.int64())
    elif pat.is_floating(type_):
        bits = np.asarray(column.cast(pa.float64()).fill_null(0)).view(np.int64)
        column = pc.if_else(column.is_valid(), pa.array(bits), None)
    return [_filled(column.cast(pa.int64()))]


def _filled(column: pa.Array) -> _Words:
    return np.asarray(column.fill_null(_NULL)).astype(np.uint64)


def _hash(text: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def _mixed(words: _Words) -> _Words:
    """Each bit of the result depends on all bits of the word (the finalizer of SplitMix64)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
