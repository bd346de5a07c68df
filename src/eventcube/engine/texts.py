"""Text as numbers: equal where it is equal, in order where that is asked; what is computed of it has numbers, too."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventcube.engine.kernels import Bools, Ints
from eventcube.plan.dictionary import Dictionary, TextFunction


class Codes:
    """One set of codes for some columns of text, constants, and all that functions make of them; null is -1."""

    def __init__(self, columns: Sequence[pa.ChunkedArray], texts: Dictionary) -> None:
        chunks = [chunk for column in columns for chunk in column.cast(pa.large_string()).chunks]
        chunks.append(pa.array(texts.constants, pa.large_string()))
        encoded = pa.chunked_array(chunks, pa.large_string()).combine_chunks().dictionary_encode()
        codes = _places(encoded.indices)
        self.words = encoded.dictionary
        self._images: dict[TextFunction, Ints] = {}
        for _ in range(texts.depth):
            self._extend(texts.functions)
        if texts.ordered:
            codes = self._sort(codes)
        cuts = np.cumsum([len(c) for c in columns])
        *self.columns, constants = np.split(codes, cuts)
        self.constants: Mapping[str, int] = dict(zip(texts.constants, constants.tolist(), strict=True))
        self._likes: dict[tuple[str, str], Bools] = {}
        self._lengths: Ints | None = None

    def _extend(self, functions: Sequence[TextFunction]) -> None:
        """Give a code to what each function makes of every word."""
        words = self.words.to_pylist()
        made = [pa.array(_apply(f, words), pa.large_string()) for f in functions]
        count = len(words)
        joint = pa.concat_arrays([self.words, *made]).dictionary_encode()
        self.words = joint.dictionary
        own = _places(joint.indices)
        # The words that were new in this round have an image only if there is a next one; nothing asks for it.
        for i, function in enumerate(functions, 1):
            images = np.full(len(self.words) + 1, -1, np.int64)
            images[:count] = own[i * count : (i + 1) * count]
            self._images[function] = images

    def _sort(self, codes: Ints) -> Ints:
        """Make the codes places in order."""
        order = np.asarray(pc.array_sort_indices(self.words))
        rank = np.empty(len(order) + 1, np.int64)
        rank[order] = np.arange(len(order))
        rank[-1] = -1
        self.words = self.words.take(pa.array(order))
        for function, images in self._images.items():
            self._images[function] = np.append(rank[images[order]], -1)
        sorted_codes: Ints = rank[codes]
        return sorted_codes

    def image(self, function: TextFunction) -> Ints:
        """What the function makes of each code."""
        return self._images[function]

    def lengths(self) -> Ints:
        """How many characters each text has."""
        if self._lengths is None:
            self._lengths = np.append(np.asarray(pc.utf8_length(self.words), np.int64), 0)
        return self._lengths

    def like(self, pattern: str, escape: str) -> Bools:
        """Which texts fit a pattern of LIKE."""
        if (pattern, escape) not in self._likes:
            fits = like_regex(pattern, escape).fullmatch
            found = [fits(word) is not None for word in self.words.to_pylist()]
            self._likes[pattern, escape] = np.array([*found, False], np.bool_)
        return self._likes[pattern, escape]


_WILD = {"%": ".*", "_": "."}


def like_regex(pattern: str, escape: str) -> re.Pattern[str]:
    """The regular expression that all of a text has to fit.

    >>> bool(like_regex("10\\\\%%", "\\\\").fullmatch("10% off"))
    True
    """
    parts = []
    characters = iter(pattern)
    for character in characters:
        wild = _WILD.get(character) if character != escape else None
        parts.append(wild or re.escape(next(characters) if character == escape else character))
    return re.compile("".join(parts), re.DOTALL)


def _places(indices: pa.Array) -> Ints:
    places: Ints = indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return places


_CASES: dict[str, Callable[[str], str]] = {"LOWER": str.lower, "UPPER": str.upper}


def _apply(function: TextFunction, words: list[str]) -> list[str]:
    if isinstance(function, str):
        return [_CASES[function](word) for word in words]
    table = dict(function)
    return [table.get(word, word) for word in words]
