"""Every reuse case: what is computed from another query's matches is what the query finds by itself, by any cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from unittest.mock import patch

import pyarrow as pa
import pytest
from tests.differential.compare import engine_batches
from tests.differential.rows import compare_rows
from tests.oracle.generate import Options
from tests.oracle.shorthand import stream

import eventcube as ec
from eventcube.engine import kept_sources
from eventcube.engine.reuse.case import reuse_cases
from eventcube.language.parse import parse
from eventcube.language.syntax import Query
from eventcube.optimizer.derivations import DerivationChoice, with_sources
from eventcube.plan.routes import leads_back
from eventcube.plan.workload import Derivation

CONCEPTS = {"A": "P", "B": "P", "P": "R"}
# For each case pairs of a source and a target.
PAIRS: dict[str, list[tuple[str, str]]] = {
    "pattern-down": [
        ("SEQ(A a, C c) WITHIN 8 ms", "SEQ(A x, B y, C z) WITHIN 8 ms"),
        ("SEQ(A a, C c) WITHIN 8 ms", "SEQ(A a, C c, D d) WITHIN 8 ms"),
        ("SEQ(A a, C c) WITHIN 8 ms", "SEQ(D d, A a, B b, C c, B e) WITHIN 6 ms"),
        ("SEQ(A a, C c) WITHIN 8 ms", "SEQ(A a, !B b, C c, !D d, A e) WITHIN 8 ms"),
        ("A a", "SEQ(A a, C c) WITHIN 8 ms"),
        ("SEQ(A a, C c) WITHIN 6 events", "SEQ(A a, C c, c.x > a.x) WITHIN 5 events"),
        ("SEQ(A a, C c, a.k = c.k) WITHIN 8 ms", "SEQ(A a, B b, C c, a.k = c.k = b.k) WITHIN 8 ms"),
        ("AND(A a, C c) WITHIN 8 ms", "SEQ(A a, C c) WITHIN 8 ms"),
        ("AND(A a, C c) WITHIN 8 ms", "AND(A a, C c, SEQ(B b, D d)) WITHIN 8 ms"),
        ("SEQ(A a, !(B b, b.x = a.x), C c) WITHIN 8 ms", "SEQ(A a, !(B b, b.x = a.x), C c, D d) WITHIN 8 ms"),
        ("SEQ(A a, C c, !B b) WITHIN 6 ms", "SEQ(A a, D d, C c, !B b) WITHIN 6 ms"),
        ("SEQ(!B b, A a, C c) WITHIN 6 ms", "SEQ(!B b, A a, D d, C c) WITHIN 6 ms"),
    ],
    "concept-down": [
        ("SEQ(R a, C c) WITHIN 8 ms", "SEQ(A a, C c) WITHIN 8 ms"),
        ("SEQ(P a, P b) WITHIN 8 ms", "SEQ(A a, B b) WITHIN 8 ms"),
        ("SEQ(C c, !A n, D d) WITHIN 8 ms", "SEQ(C c, !P n, D d) WITHIN 8 ms"),
    ],
    "mixed-down": [
        ("ANY x", "SEQ(A a, C c) WITHIN 8 ms"),
        ("SEQ(P a, C c) WITHIN 8 ms", "SEQ(A a, C c, D d) WITHIN 8 ms"),
        ("SEQ(R a, R c) WITHIN 6 events", "SEQ(A a, !D d, B b, P c) WITHIN 6 events"),
    ],
    "pattern-up": [
        ("SEQ(A a, B b, C c) WITHIN 8 ms", "SEQ(A a, C c) WITHIN 8 ms"),
        ("SEQ(A a, B b, D d, C c) WITHIN 8 ms", "SEQ(A a, C c) WITHIN 8 ms"),
        ("SEQ(B b, A a, C c) WITHIN 6 events", "SEQ(A a, C c) WITHIN 6 events"),
        ("SEQ(A a, B b, C c, b.x > a.x, b.y < 2.0) WITHIN 8 ms", "SEQ(A a, C c) WITHIN 8 ms"),
        ("SEQ(A a, B b, C c, b.k = c.k) WITHIN 8 ms", "SEQ(A a, C c) WITHIN 8 ms"),
        ("SEQ(A a, B b, C c, !D d) WITHIN 6 ms", "SEQ(A a, C c, !D d) WITHIN 6 ms"),
    ],
    "concept-up": [
        ("SEQ(A a, C c) WITHIN 8 ms", "SEQ(P a, C c) WITHIN 8 ms"),
        ("SEQ(A a, B b, C c) WITHIN 8 ms", "SEQ(P a, R b, C c) WITHIN 8 ms"),
        ("AND(A a, C c, !D d) WITHIN 6 events", "AND(P a, C c, !D d) WITHIN 6 events"),
    ],
    "mixed-up": [
        ("SEQ(A a, D d, C c) WITHIN 8 ms", "SEQ(P a, C c) WITHIN 8 ms"),
        ("SEQ(D d, A a, B b) WITHIN 7 events", "SEQ(P a, R b) WITHIN 7 events"),
    ],
}
ENDINGS = ("", " AGG COUNT(*) AS n")


@contextmanager
def only_by(case: str) -> Iterator[Counter[str]]:
    """Compute whatever can be by a case, in whatever order that leads to no circle; counts how often."""
    used: Counter[str] = Counter()

    def chosen(self: DerivationChoice, names: Sequence[str], _: object) -> dict[str, Derivation]:
        plan: dict[str, Derivation] = {}
        for query in self.queries.values():
            # One from several sources replaces one from a single source.
            for derivation in sorted(query.derivations, key=lambda d: len(d.sources)):
                if derivation.case == case and not leads_back(derivation, plan):
                    plan[derivation.target] = derivation
        found = with_sources(names, plan)
        used[case] += len(found)
        used["unions"] += sum(len(derivation.sources) > 1 for derivation in found.values())
        return found

    with patch.object(DerivationChoice, "derivations", chosen):
        yield used


def draw_stream(rng: Random, size: int, steps: Sequence[int]) -> str:
    """Events so many steps apart."""
    at, events = 0, []
    for _ in range(size):
        at += rng.choice(steps)
        x, y, k = rng.randint(0, 3), rng.randint(0, 3), rng.randint(0, 1)
        events.append(f"{rng.choice('AABBCCDPR')}{at}:x={x},y={y}.0,k={k}")
    return " ".join(events)


def check(queries: Sequence[Query], text: str, options: Options, case: str, cut: list[int]) -> Counter[str]:
    events = stream(text)
    with only_by(case) as used:
        batches = list(engine_batches(queries, events, options, cut, {1}, separate=True, aggregates="enumerate"))
    for i, query in enumerate(queries, 1):
        compare_rows(query, events, options, [batch for name, batch in batches if name == f"q{i}"], cut, {1})
    return used


def test_every_case_is_tested() -> None:
    assert set(PAIRS) == set(reuse_cases())


@pytest.mark.parametrize("case", PAIRS)
@pytest.mark.parametrize("ending", ENDINGS, ids=["matches", "counted"])
def test_a_target_from_its_source(case: str, ending: str) -> None:
    options = Options(concepts=CONCEPTS)
    for number, pair in enumerate(PAIRS[case]):
        queries = [parse(f"PATTERN {text}{ending}") for text in pair]
        used = 0
        for seed in range(6):
            events = draw_stream(Random(f"{case} {number} {seed}"), 22, [0, 1] if seed % 2 else [1])
            cut = [[], [1] * 22, [5, 6, 7]][seed % 3]
            used += check(queries, events, options, case, cut)[case]
        assert used, f"{case} is never used for {pair}"


# Sources, and a target that is computed from all of them at once.
UNIONS = [
    ("SEQ(A a, C c) WITHIN 8 ms", "SEQ(B a, C c) WITHIN 8 ms", "SEQ(P a, C c) WITHIN 8 ms"),
    (
        "SEQ(P a, C c) WITHIN 8 ms",
        "SEQ(E a, C c) WITHIN 8 ms",
        "SEQ(A a, C c) WITHIN 8 ms",
        "SEQ(R a, C c) WITHIN 8 ms",
    ),
    (
        "SEQ(C c, !D d, A a) WITHIN 6 events",
        "SEQ(C c, !D d, B b) WITHIN 6 events",
        "SEQ(C c, !D d, P p) WITHIN 6 events",
    ),
    ("SEQ(C c, A a, !D d) WITHIN 6 ms", "SEQ(C c, B b, !D d) WITHIN 6 ms", "SEQ(C c, R p, !D d) WITHIN 6 ms"),
    (
        "AND(A a, C c, a.x < c.x) WITHIN 6 ms",
        "AND(B b, C c, b.x < c.x) WITHIN 6 ms",
        "AND(P p, C c, p.x < c.x) WITHIN 6 ms",
    ),
    ("SEQ(A a, A b, D d) WITHIN 9 ms", "SEQ(A a, B b, D d) WITHIN 9 ms", "SEQ(A a, P b, D d) WITHIN 9 ms"),
    # Once more from the target.
    ("A a", "B b", "P p", "SEQ(P p, C c) WITHIN 6 ms"),
]


@pytest.mark.parametrize("texts", UNIONS, ids=[texts[-1] for texts in UNIONS])
@pytest.mark.parametrize("ending", ENDINGS, ids=["matches", "counted"])
def test_a_target_from_several_sources(texts: Sequence[str], ending: str) -> None:
    queries = [parse(f"PATTERN {text}{ending}") for text in texts]
    used = 0
    for seed in range(9):
        events = draw_stream(Random(f"union {seed}"), 22, [0, 1] if seed % 2 else [1])
        cut = [[], [1] * 22, [5, 6, 7]][seed % 3]
        used += check(queries, events, Options(concepts=CONCEPTS | {"E": "R"}), "concept-up", cut)["unions"]
    assert used


def test_the_stacks_of_the_paper() -> None:
    """Liu et al. 2011, figures 2 and 9: two matches come from the longer query, and t9 is left to the delta."""
    events = "G1 A5 A6 T9 D10 T15"
    queries = [parse(f"PATTERN SEQ({types}) WITHIN 20 ms") for types in ("G g, A a, T t", "G g, A a, D d, T t")]
    assert check(queries, events, Options(), "pattern-up", [])["pattern-up"]
    assert check(queries, events, Options(), "pattern-down", [1] * 6)["pattern-down"]


def test_matches_that_later_batches_complete_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = {
        "ab": "PATTERN SEQ(A a, B b) WITHIN 50 us AGG COUNT(*) AS n",
        "abc": "PATTERN SEQ(A a, B b, C c) WITHIN 50 us AGG COUNT(*) AS n",
        "abcd": "PATTERN SEQ(A a, B b, C c, D d) WITHIN 50 us AGG COUNT(*) AS n",
    }
    types = ["A", "B", "C", "B", "D"] * 40
    events = pa.table({"ts": list(range(len(types))), "type": types})

    def run(sharing: str) -> tuple[dict[str, int], int]:
        runtime = ec.Runtime(queries, type="type", separate=True, sharing=sharing, aggregates="enumerate")
        found = [r for start in range(len(types)) for r in runtime.push(events.slice(start, 1))]
        counts = {name: batch.to_pylist()[0]["n"] for name, batch in [*found, *runtime.finish()]}
        return counts, runtime.counters["made"]

    expected, apart = run("independent")
    kept, made = run("top-down")
    # Each match of a source is made once, when its last event comes.
    assert kept == expected
    assert made < apart
    monkeypatch.setattr(kept_sources, "MOST_KEPT", 1)
    found_again, made_again = run("top-down")
    assert found_again == expected
    assert made_again > 4 * made
