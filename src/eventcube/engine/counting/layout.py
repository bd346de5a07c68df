"""Stages as the tables of numbers that the compiled loops walk through."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import numpy as np

from eventcube.engine.kernels import Bools, Ints
from eventcube.plan.stages import Move, Stages


@dataclass(frozen=True, slots=True)
class Layout:
    """The steps of each slot: from which stage to which, the same for a barrier; those of a slot begin at `steps_at`.

    `slots` are in the order in which their events of equal rank are taken.
    """

    slots: tuple[int, ...]
    sources: Ints
    targets: Ints
    only_due: Bools
    steps_at: Ints


@lru_cache(maxsize=256)
def layout_of(stages: Stages, *, due_first: bool, due_last: bool) -> Layout:
    """The layout of stages, whose first or last events must be due."""
    slots = tuple(dict.fromkeys(step.slot for step in stages.steps))
    # The steps of a slot follow each other, as each slot is in one place of the pattern.
    steps = [(s.slot, s.start, s.end) if isinstance(s, Move) else (s.slot, s.stage, s.stage) for s in stages.steps]
    assert [slot for slot, _ in groupby(steps, key=lambda step: step[0])] == [*slots]
    _, sources, targets = np.array(steps, np.int64).T
    due = (due_last & (targets == stages.final)) | (due_first & (sources == 0) & (targets != 0))
    sizes = [sum(step[0] == slot for step in steps) for slot in slots]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Layout(slots, sources.copy(), targets.copy(), due, starts)
