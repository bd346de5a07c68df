"""Random queries over random streams, cut into random batches: the engine's answers are the oracle's, in every mode."""

import os
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.differential.modes import MODES

ASKED = int(os.environ.get("EVENTCUBE_FUZZ_CASES", "0"))
SHORT = {"matches": 300, "purged": 300, "spread": 100}


@pytest.mark.parametrize("mode", MODES)
def test_answers_are_the_oracles(mode: str) -> None:
    @settings(max_examples=ASKED or max(SHORT.get(mode, 150), settings.default.max_examples))
    @given(rng=st.randoms(use_true_random=False), cut=st.randoms(use_true_random=False))
    def ask(rng: Random, cut: Random) -> None:
        MODES[mode].check(MODES[mode].draw(rng), cut)

    ask()
