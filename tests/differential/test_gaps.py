"""Every strategy in stores that rows leave in the middle."""

from __future__ import annotations

import pytest

from eventcube.engine.views.strategy import strategies
from eventcube.errors import OptionError
from eventcube.language.parse import parse
from tests.differential.compare import check
from tests.differential.gaps import rows_leave_in_the_middle
from tests.oracle.generate import PLAIN
from tests.oracle.shorthand import stream

TYPES = "ABCDBCADBBCADCABCDDABCCDBADBCDABBCDA"
EVENTS = " ".join(f"{t}{i * 2 // 3}:x={i * i % 3}" for i, t in enumerate(TYPES * 2))


@pytest.mark.parametrize("strategy", sorted(strategies()))
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(
    "query",
    [
        "SEQ(SEQ(B b), A a)",
        "SEQ(A a, SEQ(B b, C c), D d) WITHIN 7 ms",
        "SEQ(A a, SEQ(B b, C c, b.x = c.x = a.x), D d) WITHIN 12 ms",
        "SEQ(A a, SEQ(B b, C c, b.x < a.x), D d) WITHIN 11 events",
        "SEQ(A a, !SEQ(B b, C c), D d) WITHIN 7 ms",
        "SEQ(A a, !SEQ(B b, C c, c.x = a.x), D d) WITHIN 7 ms",
        "SEQ(A a, !SEQ(B b, C c, b.x = c.x), D d, !SEQ(B e, C f, e.x = d.x)) WITHIN 5 ms",
    ],
)
def test_matches_where_rows_leave_in_the_middle(query: str, size: int, strategy: str) -> None:
    events = stream(EVENTS)
    with rows_leave_in_the_middle():
        try:
            assert check(parse(f"PATTERN {query}"), events, PLAIN, [size] * len(events), strategy=strategy)
        except OptionError as error:
            if (strategy, error.code) != ("rewrite", "EC418"):
                raise
