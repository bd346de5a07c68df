"""How long the fault tests run: by default for a few kills, in `make soak` for many, at other moments each time."""

from __future__ import annotations

import os
from random import Random

# So many in each test that kills at random moments.
KILLS = int(os.environ.get("FAULT_KILLS", "2"))
SEED = int(os.environ.get("FAULT_SEED", "1"))
IS_LONG = KILLS > 2


def random_of(test: str) -> Random:
    """The random numbers of a test."""
    return Random(f"{SEED} {test}")
