"""Random queries over random streams, cut into random batches: the engine's matches are the oracle's."""

import os
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.differential.compare import check, draw_cut
from tests.oracle.generate import Case, cases

CASES = int(os.environ.get("EVENTCUBE_FUZZ_CASES", "0")) or max(300, settings.default.max_examples)


@settings(max_examples=CASES)
@given(case=cases(), cut=st.randoms(use_true_random=False))
def test_matches_are_the_oracles(case: Case, cut: Random) -> None:
    check(*case, draw_cut(cut, len(case.events)))
