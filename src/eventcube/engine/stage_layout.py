"""Stages as the tables of numbers that the compiled loops walk through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from eventcube.engine.kernels import Ints
from eventcube.engine.stage_kernels import BARRIER, BIT, END, FINAL, MAP, ONLY_DUE, START
from eventcube.plan.stages import Move, Stages


@dataclass(frozen=True, slots=True)
class Layout:
    """The steps, those of each slot, and which stages lead to each stage.

    `slots` has the slot of each bit. The product of some events has an entry for each stage and each of its
    `ancestors`, from which partial matches can come; `offsets` and `lengths` say where these are, `reach` up to which
    stage one can lead.
    """

    slots: tuple[int, ...]
    steps: Ints
    by_bit: Ints
    by_bit_at: Ints
    places: Ints
    ancestors: Ints
    offsets: Ints
    lengths: Ints
    reach: Ints


@lru_cache(maxsize=256)
def layout_of(stages: Stages, *, due_first: bool, due_last: bool) -> Layout:
    """The layout of stages, whose first or last events must be due."""
    final = stages.final
    slots = tuple(dict.fromkeys(step.slot for step in stages.steps))
    bits = {slot: bit for bit, slot in enumerate(slots)}
    before: list[set[int]] = [{stage} for stage in range(final)]
    reach = list(range(1, final + 1))
    for move in sorted(stages.moves, key=lambda move: move.end):
        if move.end < final:
            before[move.end] |= before[move.start]
    for move in sorted(stages.moves, key=lambda move: -move.start):
        if move.end < final:
            reach[move.start] = max(reach[move.start], reach[move.end])
    ancestors = [sorted(stage) for stage in before]
    lengths = [len(stage) for stage in ancestors]
    steps = np.zeros((len(stages.steps), 8), np.int64)
    places: list[int] = []
    for row, step in zip(steps, stages.steps, strict=True):
        row[BIT] = bits[step.slot]
        if not isinstance(step, Move):
            row[BARRIER], row[START] = 1, step.stage
            continue
        row[START], row[END], row[FINAL] = step.start, step.end, step.end == final
        row[ONLY_DUE] = (due_last and step.end == final) or (due_first and step.start == 0)
        if step.end < final:
            row[MAP] = len(places)
            places += [ancestors[step.end].index(stage) for stage in ancestors[step.start]]
    by_bit = [[o for o, step in enumerate(stages.steps) if bits[step.slot] == bit] for bit in range(len(slots))]
    return Layout(
        slots,
        steps,
        _flat(by_bit),
        _starts([len(own) for own in by_bit]),
        np.array(places or [0], np.int64),
        _flat(ancestors),
        _starts(lengths)[:-1].copy(),
        np.array(lengths, np.int64),
        np.array(reach, np.int64),
    )


def _flat(lists: Sequence[Sequence[int]]) -> Ints:
    return np.array([value for values in lists for value in values], np.int64)


def _starts(lengths: Sequence[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
