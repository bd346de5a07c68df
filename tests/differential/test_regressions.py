"""Cases that once went wrong, and what was wrong about each; the engine's answer is the oracle's under every cut."""

from __future__ import annotations

import pytest

from eventcube.language.parse import parse
from tests.differential.compare import check
from tests.differential.rows import check_rows
from tests.oracle.brute import Event
from tests.oracle.generate import PLAIN, Options
from tests.oracle.shorthand import stream

ORDERED = Options(ordered=True)
PARTITIONED = Options(partitioned=True)


def _cuts(events: list[Event]) -> list[list[int]]:
    return [[], [1] * len(events), *([i] for i in range(1, len(events)))]


@pytest.mark.parametrize(
    ("query", "events", "options"),
    [
        pytest.param(
            "SEQ(A a1, B b2, !(C c3, c3.x = b2.x AND b2.x = a1.x)) WITHIN 5 ms",
            "A1:x=1 B2:x=2 C3:x=2 A4:x=1 B5:x=1 C6:x=1 A12:x=3 B13:x=3",
            PLAIN,
            id="an equality between outer variables written in a negated part ties only what is inside it",
        ),
        pytest.param(
            "OR(A a1, SEQ(!A a3, A a2)) WITHIN 3 ms",
            "A1 A1 A3",
            PLAIN,
            id="a negation in an alternative that is not taken has no limits, among ties",
        ),
        pytest.param(
            "SEQ(C c1, !(C, c1.x = C.x)) WITHIN 3 ms",
            "C1:x=None C2:x=1 C3:x=None C4:x=1 C9:x=2",
            PLAIN,
            id="a lone positive event need not equal anything, so its key may be null",
        ),
        pytest.param(
            "SEQ(C c1, !(C, c1.x = C.x)) WITHIN 3 events",
            "C1:x=None C2:x=1 C3:x=None C4:x=1 C9:x=2",
            PLAIN,
            id="a lone positive event with a null key in a count window",
        ),
        pytest.param(
            "OR(SEQ(!C c2, B b1), A a7) WITHIN 2 ms",
            "C1 B1 A1 B2 C3 A3 B3 B5 A9",
            PLAIN,
            id="a leading negation in an alternative of an OR does not see its own moment",
        ),
        pytest.param(
            "OR(SEQ(!C c2, B b1), A a7) WITHIN 2 ms",
            "C1/1 B1/2 A1/0 B2/0 C3/1 A3/1 B3/0 B5/0 A9/0",
            ORDERED,
            id="a leading negation in an alternative of an OR, with an order among ties",
        ),
        pytest.param(
            "AND(AND(A a1, A a2, !(A a3, a6.s > a3.s)), OR(A a5, C a6)) WITHIN 4 events",
            "A1:s='b' A2:s='b' A3:s='a' C4:s='b' A5:s='c' A6:s='a'",
            PLAIN,
            id="a negation that speaks of an alternative beside it holds also where another one is taken",
        ),
        pytest.param(
            "SEQ(A a, B b) WITHIN 3 events LIMIT 2",
            "A1:k=1 A1:k=2 B2:k=2 B2:k=1 B2:k=2 B2:k=1",
            PARTITIONED,
            id="LIMIT with ties across partitions under a count window",
        ),
        pytest.param(
            "SEQ(A a, B b, !C c) WITHIN 3 events LIMIT 2",
            "A1:k=1 A1:k=2 B2:k=2 B2:k=1 B2:k=2 B2:k=1 C3:k=1 A4:k=1 B4:k=2 B4:k=1",
            PARTITIONED,
            id="LIMIT with ties across partitions where matches wait for their window to close",
        ),
        pytest.param(
            "SEQ(A a1, !D d2) WITHIN 2 events LIMIT 6",
            "A1:k=2 A2:k=1 A3:k=1 A4:k=None A5:k=2 A6:k=2 A7:k=2 A8:k=2 A9:k=2 A10:k=2",
            PARTITIONED,
            id="LIMIT waits for an early event of a partition in which nothing more comes",
        ),
    ],
)
def test_matches(query: str, events: str, options: Options) -> None:
    given = stream(events, key="k" if options.partitioned else None)
    for cut in _cuts(given):
        check(parse(f"PATTERN {query}"), given, options, cut)


@pytest.mark.parametrize(
    ("query", "events"),
    [
        pytest.param(
            "SEQ(A a, B b, C c) WITHIN 9 ms RETURN a.ts AS a, b.ts AS b, c.ts AS c",
            "A1 B2 C3 A4 C5 B6 C7",
            id="the times of several components are each its own",
        ),
        pytest.param(
            "AND(A a, B b) WITHIN 9 ms RETURN b.ts AS b, a.ts AS a",
            "A1 B2 B3 A4",
            id="the times of components in any order are each its own",
        ),
        pytest.param(
            "SEQ(A a, B b) WITHIN 9 ms AGG MIN(b.ts - a.ts) AS l, MAX(b.ts - a.ts) AS m, AVG(b.ts - a.ts) AS n",
            "A1 B2 B4 A5 B8",
            id="lengths of time have a least, a greatest and a mean",
        ),
        pytest.param(
            "A a GROUPBY a AGG COUNT(*) AS n, COUNT(*) AS m", "A1 A2", id="one aggregate may be asked for twice"
        ),
        pytest.param(
            "A a GROUPBY a.y AS y AGG COUNT(*) AS n",
            "A1:y=0.0 A2:y=-0.0 A3:y=nan A4:y=None A5:y=1.0",
            id="0.0 and -0.0 are one group, and so are NaN and null",
        ),
    ],
)
def test_rows(query: str, events: str) -> None:
    given = stream(events)
    for cut in _cuts(given):
        check_rows(parse(f"PATTERN {query}"), given, PLAIN, cut)
        check_rows(parse(f"PATTERN {query}"), given, PLAIN, cut, restarts=range(len(cut) + 2))
