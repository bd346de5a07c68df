"""Dictionary codes of text, for columns, constants and results of functions; ordered like the text if needed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventcube.engine.kernels import Bools, Ints
from eventcube.plan.dictionary import Dictionary, TextFunction


class TextCodes:
    """One set of codes for some columns of text, constants, and what functions return for them; null is -1.

    `texts` has the text of each code.
    """

    def __init__(self, columns: Sequence[pa.ChunkedArray], dictionary: Dictionary) -> None:
        chunks = [chunk for column in columns for chunk in column.cast(pa.large_string()).chunks]
        chunks.append(pa.array(dictionary.constants, pa.large_string()))
        encoded = pa.chunked_array(chunks, pa.large_string()).combine_chunks().dictionary_encode()
        codes = _positions(encoded.indices)
        self.texts = encoded.dictionary
        self._results: dict[TextFunction, Ints] = {}
        for _ in range(dictionary.depth):
            self._extend(dictionary.functions)
        if dictionary.ordered:
            codes = self._sort(codes)
        ends = np.cumsum([len(c) for c in columns])
        *self.columns, constants = np.split(codes, ends)
        self.constants: Mapping[str, int] = dict(zip(dictionary.constants, constants.tolist(), strict=True))
        self._likes: dict[tuple[str, str], Bools] = {}
        self._lengths: Ints | None = None

    def _extend(self, functions: Sequence[TextFunction]) -> None:
        """Add a code for the result of each function on every text."""
        texts = self.texts.to_pylist()
        results = [pa.array(_apply(f, texts), pa.large_string()) for f in functions]
        count = len(texts)
        combined = pa.concat_arrays([self.texts, *results]).dictionary_encode()
        self.texts = combined.dictionary
        codes = _positions(combined.indices)
        # Text added in the last round has no results: functions are not nested deeper.
        for i, function in enumerate(functions, 1):
            result_codes = np.full(len(self.texts) + 1, -1, np.int64)
            result_codes[:count] = codes[i * count : (i + 1) * count]
            self._results[function] = result_codes

    def _sort(self, codes: Ints) -> Ints:
        """Renumber the codes so that they sort like the text."""
        order = np.asarray(pc.array_sort_indices(self.texts))
        rank = np.empty(len(order) + 1, np.int64)
        rank[order] = np.arange(len(order))
        rank[-1] = -1
        self.texts = self.texts.take(pa.array(order))
        for function, result_codes in self._results.items():
            self._results[function] = np.append(rank[result_codes[order]], -1)
        sorted_codes: Ints = rank[codes]
        return sorted_codes

    def results(self, function: TextFunction) -> Ints:
        """For each code, the code of the function's result."""
        return self._results[function]

    def lengths(self) -> Ints:
        """The number of characters of each text."""
        if self._lengths is None:
            self._lengths = np.append(np.asarray(pc.utf8_length(self.texts), np.int64), 0)
        return self._lengths

    def like(self, pattern: str, escape: str) -> Bools:
        """For each code, whether its text matches a pattern of LIKE."""
        if (pattern, escape) not in self._likes:
            fits = like_regex(pattern, escape).fullmatch
            matches = [fits(text) is not None for text in self.texts.to_pylist()]
            self._likes[pattern, escape] = np.array([*matches, False], np.bool_)
        return self._likes[pattern, escape]


_WILDCARDS = {"%": ".*", "_": "."}


def like_regex(pattern: str, escape: str) -> re.Pattern[str]:
    """The regular expression that matches a whole text as LIKE does.

    >>> bool(like_regex("10\\\\%%", "\\\\").fullmatch("10% off"))
    True
    """
    parts = []
    characters = iter(pattern)
    for character in characters:
        wild = _WILDCARDS.get(character) if character != escape else None
        parts.append(wild or re.escape(next(characters) if character == escape else character))
    return re.compile("".join(parts), re.DOTALL)


def _positions(indices: pa.Array) -> Ints:
    places: Ints = indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return places


_CASE_FUNCTIONS: dict[str, Callable[[str], str]] = {"LOWER": str.lower, "UPPER": str.upper}


def _apply(function: TextFunction, texts: list[str]) -> list[str]:
    if isinstance(function, str):
        return [_CASE_FUNCTIONS[function](text) for text in texts]
    table = dict(function)
    return [table.get(text, text) for text in texts]
