"""Compiled loops that look up type names in a perfect hash table."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from eventcube.engine.compiled import compiled
from eventcube.engine.kernels import Array, Ints

Words = npt.NDArray[np.uint64]


@compiled
def _word(data: Array, start: Any, end: Any) -> Any:
    word = np.uint64(0)
    for k in range(end - start):
        word |= np.uint64(data[start + k]) << np.uint64(8 * k)
    return word


@compiled
def _hash(first: Any, last: Any, length: Any, factor: Any, shift: Any) -> Any:
    mixed = (first ^ (last * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(length)) * factor
    return np.int64(mixed >> shift)


@compiled
def name_table(firsts: Words, lasts: Words, lengths: Ints, bits: int) -> tuple[Ints, Any]:
    """A perfect hash table of 2**bits entries: the number of the name in each entry, -1 for none, and the hash factor.

    A name is identified by its first and last eight bytes and its length. The factor is 0 if none avoids collisions.
    """
    shift = np.uint64(64 - bits)
    factor = np.uint64(0x9E3779B97F4A7C15)
    for _ in range(1000):
        table = np.full(1 << bits, -1, np.int64)
        collision = False
        for i in range(lengths.size):
            at = _hash(firsts[i], lasts[i], lengths[i], factor, shift)
            if table[at] >= 0:
                collision = True
                break
            table[at] = i
        if not collision:
            return table, factor
        factor = (factor * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)) | np.uint64(1)
    return np.full(1 << bits, -1, np.int64), np.uint64(0)


@compiled
def ends_of(offsets: Ints, data: Array) -> tuple[Words, Words, Ints]:
    """The first and the last eight bytes of each text, and its length."""
    size = offsets.size - 1
    firsts, lasts = np.empty(size, np.uint64), np.empty(size, np.uint64)
    lengths = np.empty(size, np.int64)
    for i in range(size):
        start, end = offsets[i], offsets[i + 1]
        firsts[i] = _word(data, start, min(end, start + 8))
        lasts[i] = _word(data, max(start, end - 8), end)
        lengths[i] = end - start
    return firsts, lasts, lengths


@compiled
def names_to_codes(
    offsets: Array,
    data: Array,
    words: Words,
    factor: Any,
    bits: int,
    firsts: Words,
    lasts: Words,
    lengths: Ints,
    codes: Array,
) -> Array:
    """For each text the code of the name with the same ends and length, or -1. `words[i]` are the bytes from i on.

    The table is that of `name_table`. No branch depends on the text of a short name: types come in no order that a
    branch predictor could learn.
    """
    out = np.empty(offsets.size - 1, np.int32)
    shift = np.uint64(64 - bits)
    start = np.int64(offsets[0])
    for i in range(out.size):
        end = np.int64(offsets[i + 1])
        length = end - start
        if 0 < length <= 8 and start + 8 <= data.size:
            unused = np.uint64(64 - 8 * length)
            first = (words[start] << unused) >> unused
            last = first
        elif length > 8:
            first, last = words[start], words[end - 8]
        else:
            first = _word(data, start, end)
            last = first
        at = _hash(first, last, length, factor, shift)
        same = (firsts[at] == first) & (lasts[at] == last) & (lengths[at] == length)
        out[i] = codes[at] if same else -1
        start = end
    return out


@compiled
def short_names_to_codes(
    offsets: Array,
    data: Array,
    words: Words,
    factor: Any,
    bits: int,
    masks: Words,
    names: Words,
    lengths: Ints,
    codes: Array,
) -> Array:
    """`names_to_codes` for a table of names of at most eight bytes, which are one word each.

    `masks[n]` keeps the first n bytes of a word; that of texts too long for a name keeps none. Numbers are unsigned
    throughout, so that none is looked at as a place counted from the end.
    """
    size = np.uint64(offsets.size - 1)
    out = np.empty(size, np.int32)
    shift, one, eight, long = np.uint64(64 - bits), np.uint64(1), np.uint64(8), np.uint64(9)
    # Words from here on reach beyond the data.
    safe = np.uint64(max(data.size - 8, 0))
    start = np.uint64(offsets[0])
    for i in range(size):
        end = np.uint64(offsets[i + one])
        length = end - start
        if start <= safe:
            word = words[start] & masks[min(length, long)]
        else:
            word = _word(data, np.int64(start), np.int64(start + min(length, eight)))
        at = (word * factor) >> shift
        same = (names[at] == word) & (lengths[at] == np.int64(length))
        out[i] = (codes[at] + 1) * same - 1
        start = end
    return out
