"""A min-max index of a join's candidates, to skip those among which no value meets an inequality.

It has the least value of each block of candidates for `<` and `<=`, the greatest for `>` and `>=`, then those of blocks
of blocks, and so on. To find k of n candidates takes about k log(n / k) looks, and only a few if k is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Generic, TypeVar

import numpy as np

from eventcube.engine.candidates import Candidates
from eventcube.engine.kernels import GE, LE, Array, Bools, Ints
from eventcube.engine.min_max_kernels import WIDTH, Blocks, pairs_by_blocks
from eventcube.optimizer.choose import IndexChoice
from eventcube.optimizer.cost import EXPANDED, INDEXED, TESTED

# An index is built if a join has more candidates than so many for each partial match and for each event of the stack.
LEAST_PER_MATCH, LEAST_PER_EVENT = 16, 8
# Whether to use it is decided for so many candidates, by one partial match in so many, but not by more than enough.
HOLD_CANDIDATES, SAMPLED, ENOUGH = 1 << 22, 64, 64
# Candidates that are found at a time.
_CHUNK = 1 << 16

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Question(Generic[_Answer]):
    """What is asked of candidates, what a look at one of them costs if all are gone through, and from which end."""

    ask: Callable[[Candidates], tuple[_Answer, int]]
    look: float = TESTED
    backwards: bool = False


COUNT = Question(lambda candidates: candidates.count())
EXIST = Question(lambda candidates: candidates.exist())
LATEST = Question(lambda candidates: candidates.latest(), backwards=True)
# Those that are to be expanded look at as many as if they were counted.
EXPAND = Question(lambda candidates: candidates.count(), look=EXPANDED)


class JoinIndex:
    """The min-max index of a join over one store, and whether it is used to answer a question."""

    def __init__(self, choice: IndexChoice, question: Question[Any]) -> None:
        self._choice, self._question = choice, question
        self._index: MinMaxIndex | None = None
        self._candidates = self._matches = self._held = 0

    def applied(self, candidates: Candidates) -> Candidates:
        """The candidates, by the index if that should cost less."""
        size = candidates.size
        self._candidates += size
        self._matches += len(candidates.lo)
        least = LEAST_PER_MATCH * self._matches + LEAST_PER_EVENT * len(candidates.stack)
        if not size or self._candidates <= least:
            return candidates
        if self._index is None:
            self._index = MinMaxIndex(candidates, backwards=self._question.backwards)
        if self._held <= 0:
            self._held = HOLD_CANDIDATES
            sample = candidates.sampled(max(SAMPLED, len(candidates.lo) // ENOUGH))
            (_, scanned), (_, indexed) = (self._question.ask(one) for one in (sample, self._index.of(sample)))
            share = len(candidates.lo) / len(sample.lo)
            self._choice.weigh(share * scanned * self._question.look, share * indexed * INDEXED)
        self._held -= size
        return self._index.of(candidates) if self._choice.takes_index() else candidates


class MinMaxIndex:
    """The values that a join tests its candidates by, and the least or greatest of each block of them."""

    def __init__(self, candidates: Candidates, *, backwards: bool) -> None:
        ints, _, int_ops, floats, _, float_ops = candidates.tests
        self._backwards = backwards
        self._ints, self._floats = (
            _Values.of(new, ops, backwards=backwards) for new, ops in ((ints, int_ops), (floats, float_ops))
        )
        sizes = [0, 0]
        blocks = len(candidates.stack)
        while blocks > WIDTH:
            blocks = -(-blocks // WIDTH)
            sizes.append(blocks)
        self._starts = np.cumsum(sizes[:-1])

    def of(self, candidates: Candidates) -> IndexedCandidates:
        """The candidates for some of the join's partial matches, by the index."""
        _, ints, int_ops, _, floats, float_ops = candidates.tests
        lo, hi, end = candidates.lo, candidates.hi, len(candidates.stack)
        return IndexedCandidates(
            *((end - hi, end - lo) if self._backwards else (lo, hi)),
            candidates.stack,
            (self._ints.each, ints, int_ops, self._floats.each, floats, float_ops),
            ((*self._ints.blocks_for(ints, int_ops), *self._floats.blocks_for(floats, float_ops)), self._starts),
        )


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of candidates for each test, and those of blocks for each test that is an inequality."""

    each: Array
    blocks: Array
    inequalities: Ints

    @classmethod
    def of(cls, new: Array, ops: Ints, *, backwards: bool) -> _Values:
        each = np.ascontiguousarray(new[:, ::-1]) if backwards else new
        inequalities = np.flatnonzero(ops <= GE)
        blocks = [_blocks(each[test], least=ops[test] <= LE) for test in inequalities]
        return cls(each, np.stack(blocks) if blocks else new[:0], inequalities)

    def blocks_for(self, bound: Array, ops: Ints) -> tuple[Array, Array, Ints]:
        """The tests of blocks."""
        return self.blocks, bound[self.inequalities], ops[self.inequalities]


def _blocks(values: Array, *, least: bool) -> Array:
    """The least or the greatest values of blocks, of blocks of these, and so on; NaN is neither if there is another."""
    levels = [values[:0]]
    while len(values) > WIDTH:
        padded = np.pad(values, (0, -len(values) % WIDTH), mode="edge")
        values = reduce(np.fmin if least else np.fmax, padded.reshape(-1, WIDTH).T)
        levels.append(values)
    return np.concatenate(levels)


@dataclass(frozen=True, slots=True)
class IndexedCandidates(Candidates):
    """Candidates of which blocks are skipped; positions count from the end of the stack if the latest are sought."""

    blocks: Blocks

    def expand(self, table: Ints, scratch: Ints) -> Iterator[tuple[Ints, int]]:
        """The table's rows extended by each event that qualifies, in chunks."""
        for parent, place, looked_at in self._found(scratch[:2], only_first=False):
            out = np.empty((len(table) + 1, len(parent)), np.int64)
            for column, extended in zip(table, out, strict=False):
                np.take(column, parent, out=extended, mode="clip")
            np.take(self.stack, place, out=out[-1], mode="clip")
            yield out, looked_at

    def count(self) -> tuple[int, int]:
        """How many qualify in all."""
        room = np.empty((2, min(_CHUNK, self.size) + WIDTH), np.int64)
        found = [(len(parent), looked_at) for parent, _, looked_at in self._found(room, only_first=False)]
        return sum(number for number, _ in found), sum(looked_at for _, looked_at in found)

    def exist(self) -> tuple[Bools, int]:
        """For each partial match whether one qualifies."""
        parent, _, looked_at = self._first()
        exist = np.zeros(len(self.lo), np.bool_)
        exist[parent] = True
        return exist, looked_at

    def latest(self) -> tuple[Ints, int]:
        """For each partial match the row of the last that qualifies, -1 for none."""
        parent, place, looked_at = self._first()
        rows = np.full(len(self.lo), -1)
        rows[parent] = self.stack[len(self.stack) - 1 - place]
        return rows, looked_at

    def _first(self) -> tuple[Ints, Ints, int]:
        (first,) = self._found(np.empty((2, len(self.lo) + WIDTH), np.int64), only_first=True)
        return first

    def _found(self, room: Ints, *, only_first: bool) -> Iterator[tuple[Ints, Ints, int]]:
        """Partial matches and the places of candidates that qualify, and how much was looked at, chunk by chunk."""
        match = offset = 0
        while match < len(self.lo):
            found, match, offset, looked_at = pairs_by_blocks(
                self.lo, self.hi, self.tests, self.blocks, only_first, match, offset, *room
            )
            yield room[0, :found], room[1, :found], looked_at
