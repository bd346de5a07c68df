"""Stages as the tables of numbers that the compiled loops walk through."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import numpy as np

from eventcube.engine.kernels import Ints
from eventcube.engine.stage_kernels import Steps
from eventcube.plan.stages import Move, Stages


@dataclass(frozen=True, slots=True)
class Layout:
    """What events do: the slot with the number i in `slots` has the code 2 i, and 2 i + 1 for events that are not due.

    `slots` are in the order in which their events of equal rank are taken. `steps` has the steps of each code, which
    are those in `numbers` of the stages. `ends` tells how many of them end a match.
    """

    slots: tuple[int, ...]
    steps: Steps
    numbers: Ints
    ends: Ints


@lru_cache(maxsize=256)
def layout_of(stages: Stages, *, due_first: bool, due_last: bool) -> Layout:
    """The layout of stages, whose first or last events must be due."""
    slots = stages.slots
    # The steps of a slot follow each other, as each slot is in one place of the pattern.
    steps = [
        (n, s.slot, *((s.start, s.end) if isinstance(s, Move) else (s.stage, s.stage)))
        for n, s in enumerate(stages.steps)
    ]
    by_slot = [[*same] for _, same in groupby(steps, key=lambda step: step[1])]
    assert len(by_slot) == len(slots)

    def needs_due(source: int, target: int) -> bool:
        return (due_last and target == stages.final) or (due_first and source == 0 != target)

    of_codes = [
        [step for step in same if is_due or not needs_due(*step[2:])] for same in by_slot for is_due in (True, False)
    ]
    starts = np.cumsum([0, *map(len, of_codes)], dtype=np.int64)
    listed = np.array([step for same in of_codes for step in same], np.int64)
    numbers, _, sources, targets = (column.copy() for column in listed.T)
    ends = np.array([sum(step[3] == stages.final for step in same) for same in of_codes], np.int64)
    return Layout(slots, (sources, targets, starts), numbers, ends)
