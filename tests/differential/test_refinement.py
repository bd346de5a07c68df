"""Refinements hold by meaning: on random pairs of queries and streams, and on pairs easily taken for related."""

from __future__ import annotations

import os
from random import Random
from unittest.mock import patch

import pytest

from eventcube.cube.refinement import Change, Refinement, refinements
from eventcube.language.parse import parse
from tests.differential import refinement
from tests.differential.moved import draw_move, is_related
from tests.differential.refinement import Tally, bound, check_refinements, check_seed
from tests.oracle.brute import evaluate
from tests.oracle.generate import PLAIN, Options, draw_stream
from tests.oracle.patterns import CONCEPTS
from tests.oracle.shorthand import stream

ASKED = int(os.environ.get("EVENTCUBE_FUZZ_CASES", "0"))
KINDS = Options(concepts=CONCEPTS)


def test_random_pairs() -> None:
    tally = Tally()
    for seed in range(ASKED or 300):
        check_seed(seed, tally)
    assert tally.failures == []
    # Enough of them say something, of every kind.
    assert tally.tried > tally.pairs // 3
    assert tally.changes.keys() == {"both", "concept", "condition", "equal", "pattern"}


# Pairs that the paper's definitions, or a slip in ours, would relate, with a stream that tells them apart: the first
# query has a match there that holds none of the second.
_APART = [
    pytest.param("SEQ(A a, !B b, C c, D d)", "SEQ(A a, !B b, D d)", "A1 C2 B3 D4", id="a shorter interval"),
    pytest.param("SEQ(A a, !B b, C c, !B e, D d)", "SEQ(A a, !B b, D d)", "A1 C2 B2 D4", id="a tie in the gap"),
    pytest.param(
        "SEQ(A a, B b, !C c)", "SEQ(A a, !C c)", "A1 C2 B3", id="another neighbour before a trailing negation"
    ),
    pytest.param(
        "SEQ(!A a, B b, C c) WITHIN 2 ms", "SEQ(!A a, B b, C c) WITHIN 5 ms", "A1 B3 C4", id="a smaller window"
    ),
    pytest.param("SEQ(!A a, B b, C c) WITHIN 4 ms", "SEQ(!A a, B b) WITHIN 4 ms", "A1 B4 C6", id="appended"),
    pytest.param("SEQ(B b, C c, !A a) WITHIN 4 ms", "SEQ(C c, !A a) WITHIN 4 ms", "B1 C4 A7", id="prepended"),
    pytest.param("AND(A a, B b, C c, !C d)", "AND(A a, B b, !C d)", "A1 C2 B3", id="bound by the finer AND only"),
    pytest.param("AND(SEQ(A a, C c, B b), !C d)", "AND(SEQ(A a, B b), !C d)", "A1 C2 B3", id="bound in a nested part"),
    pytest.param("SEQ(A a, !B b, D d)", "SEQ(A a, !P p, D d)", "A1 A2 D3", id="a negated type that goes down"),
    pytest.param("SEQ(A a, !SEQ(B b, C c), D d)", "SEQ(A a, !B b, D d)", "A1 B2 D3", id="a longer negated part"),
    pytest.param(
        "SEQ(A a, !SEQ(B b, !P p, C c), D d)",
        "SEQ(A a, !SEQ(B b, !A p, C c), D d)",
        "A1 B2 P3 C4 D5",
        id="a negation in a negation",
    ),
    pytest.param(
        "SEQ(A a, !SEQ(!C c, B b), D d)", "SEQ(A a, !B b, D d)", "A1 C2 B3 D4", id="a negation at the edge of one"
    ),
    pytest.param(
        "SEQ(A a, OR(SEQ(B b, a.x > 1), C c))",
        "SEQ(A a, OR(B b, C c)) WHERE a.x > 1",
        "A1:x=0 C2",
        id="a condition of an alternative",
    ),
    pytest.param(
        "SEQ(A a, OR(B b, C c), D d) WHERE a.x = b.x = d.x",
        "SEQ(A a, OR(B b, C c), D d) WHERE a.x = d.x",
        "A1:x=1 C2 D3:x=2",
        id="an equality by way of an alternative",
    ),
    pytest.param(
        "SEQ(A a, OR(SEQ(B b, !C c), C e), D d)",
        "SEQ(A a, OR(SEQ(B b, !C c), SEQ(C e, !C f)), D d)",
        "A1 C2 C3 D4",
        id="a negated part of one alternative",
    ),
    pytest.param("A a WHERE a.x > 0", "A a WHERE a.k = a.k", "A1:x=1,k=None", id="a null equals not even itself"),
    pytest.param("SEQ(A a, B b) WITHIN 3 events", "SEQ(A a, B b) WITHIN 1 ms", "A1 B9", id="windows of two measures"),
]


@pytest.mark.parametrize(("finer", "coarser", "events"), _APART)
def test_what_looks_related_and_is_not(finer: str, coarser: str, events: str) -> None:
    one, other = parse(f"PATTERN {finer}"), parse(f"PATTERN {coarser}")
    found = [
        {tuple(m.bound[v] for v in m.bound if v in names) for m in evaluate(query, stream(events), concepts=CONCEPTS)}
        for query in (one, other)
        for names in [{slot.name for slot in bound(other, KINDS).positive}]
    ]
    assert not found[0] <= found[1], "the stream tells nothing"
    assert refinements(bound(one, KINDS), bound(other, KINDS)) == ()


@pytest.mark.parametrize(
    ("finer", "coarser"),
    [
        ("SEQ(A a, !P p, C c)", "SEQ(A a, !A x, !B b, C c)"),
        ("AND(SEQ(A a, D d, B b), !C c)", "AND(SEQ(A a, B b), !C c)"),
        ("SEQ(A a, !AND(B b, C c), D d)", "SEQ(A a, !SEQ(C c, B b), D d)"),
        ("SEQ(!A a, B b, D d, C c) WITHIN 5 ms", "SEQ(!A a, B b, C c) WITHIN 5 ms"),
        ("SEQ(B b, D d, C c, !A a) WITHIN 6 events", "SEQ(B b, C c, !A a) WITHIN 6 events"),
        ("SEQ(A a, !(B b, b.x = a.x), C c) WHERE a.x = c.x", "SEQ(A a, !(B b, b.x = c.x), C c)"),
        ("SEQ(A a, OR(B b, C c))", "SEQ(A a, OR(C c, D d, B b))"),
        ("SEQ(A a, OR(SEQ(B b, !D d), C c), D e)", "SEQ(P a, OR(B b, C c), D e)"),
    ],
)
def test_related_for_every_stream(finer: str, coarser: str) -> None:
    one, other = parse(f"PATTERN {finer}"), parse(f"PATTERN {coarser}")
    rng = Random(1)
    streams = [draw_stream(rng, KINDS, one)[:9] for _ in range(40)]
    found, tried = check_refinements(one, other, KINDS, streams)
    assert found
    assert tried


@pytest.mark.parametrize(
    ("slots", "change", "kept", "words"),
    [
        ((0, 3), Change.PATTERN, {1}, "not all matches are"),
        ((0, 2), Change.EQUAL, set(), "not equal"),
        ((0, 2), Change.PATTERN, {1}, "not kept"),
    ],
)
def test_the_check_finds_wrong_claims(slots: tuple[int, ...], change: Change, kept: set[int], words: str) -> None:
    one, other = parse("PATTERN SEQ(A a, !D d, B b, C c)"), parse("PATTERN SEQ(A a, B b)")
    claim = Refinement(slots, change, frozenset(kept))
    with (
        patch.object(refinement, "refinements", return_value=(claim,)),
        pytest.raises(refinement.UnsoundError, match=words),
    ):
        check_refinements(one, other, PLAIN, [stream("A1 B2 A3 D4 B5 C6")])


def test_what_moves_claim_holds() -> None:
    claims = tried = 0
    for seed in range(ASKED or 250):
        rng = Random(seed)
        moved = draw_move(rng)
        if moved is None:
            continue
        streams = [draw_stream(rng, moved.options, moved.finer)[: refinement.LENGTH] for _ in range(3)]
        found, was_tried = check_refinements(moved.finer, moved.coarser, moved.options, streams)
        assert found or not moved.claimed
        assert moved.claimed or moved.inserted or not found
        claims += moved.claimed
        tried += was_tried
    assert tried > claims // 2 > 80


def test_moves_lead_to_related_queries_unless_a_negated_part_looks_elsewhere() -> None:
    missed = []
    for seed in range(ASKED or 400):
        moved = draw_move(Random(seed))
        if moved is None or is_related(moved):
            continue
        if not (moved.negations and moved.kind.endswith("positive part") and moved.kind.startswith("pattern")):
            missed.append((moved.kind, moved.finer.text, moved.coarser.text))
    assert missed == []
