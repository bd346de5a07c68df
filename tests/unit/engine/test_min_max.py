"""The min-max index finds what going through all candidates finds, and looks at few where few qualify."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.engine import min_max
from eventcube.engine.candidates import Candidates, stacked
from eventcube.engine.kernels import OPERATORS
from eventcube.engine.min_max import COUNT, EXIST, EXPAND, LATEST, JoinIndex, MinMaxIndex, Question
from eventcube.engine.min_max_kernels import WIDTH
from eventcube.match import run
from eventcube.optimizer.choose import IndexChoice

INFINITY, LEAST, MOST = np.inf, -(2**63), 2**63 - 1
INTS = [
    [0, 1, 2, 3],
    [LEAST, LEAST + 1, -1, 0, MOST - 1, MOST],
    [2**53, 2**53 + 1, -(2**53) - 1],
    list(range(-500, 500)),
]
FLOATS = [[-INFINITY, -1.5, -0.0, 0.0, 0.5, INFINITY, np.nan], [np.nan], [1e300, 5e-324, 0.0, -5e-324]]


def _values(rng: np.random.Generator, size: int, kind: type) -> Any:
    """Values at random, few different ones or many, or ones that rise and fall slowly."""
    if rng.random() < 0.3:
        return np.cumsum(rng.integers(-1, 2, size)).astype(kind)
    pool = (INTS if kind is np.int64 else FLOATS)[rng.integers(0, 3)]
    return rng.choice(np.array(pool, kind), size)


def _candidates(rng: np.random.Generator) -> Candidates:
    """Ranges of a stack for some partial matches, one to three tests of which one at least is an inequality."""
    size, matches = int(rng.choice([1, 7, 8, 9, 60, 64, 65, 520, 4100])), int(rng.integers(1, 30))
    lo = rng.integers(0, size + 1, matches)
    hi = np.minimum(lo + rng.integers(0, rng.choice([2, 20, size + 1]), matches), size)
    tests: dict[type, list[tuple[Any, Any, int]]] = {np.int64: [], np.float64: []}
    for i in range(rng.integers(1, 4)):
        kind = (np.int64, np.float64)[rng.integers(0, 2)]
        op = str(rng.choice(list(OPERATORS) if i else ["<", "<=", ">", ">="]))
        tests[kind].append((_values(rng, size, kind), _values(rng, matches, kind), OPERATORS[op]))
    rows = np.sort(rng.choice(10**6, size, replace=False)).astype(np.int64)
    return Candidates(lo, hi, rows, (*stacked(tests[np.int64], np.int64), *stacked(tests[np.float64], np.float64)))


def _expanded(candidates: Candidates, room: int) -> tuple[list[list[int]], int]:
    table = np.arange(2 * len(candidates.lo)).reshape(2, -1)
    chunks = [*candidates.expand(table, np.empty((4, room), np.int64))]
    return np.concatenate([data for data, _ in chunks], axis=1).tolist(), sum(looked_at for _, looked_at in chunks)


@pytest.mark.parametrize("seed", range(300))
def test_it_finds_what_going_through_all_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    candidates = _candidates(rng)
    index = MinMaxIndex(candidates, backwards=False)
    for asked in (candidates, candidates.sampled(3)):
        indexed = index.of(asked)
        assert indexed.count()[0] == asked.count()[0]
        assert indexed.exist()[0].tolist() == asked.exist()[0].tolist()
        wanted, _ = _expanded(asked, 1 << 16)
        for room in (WIDTH, 3 * WIDTH + 1, 1 << 16):
            assert _expanded(indexed, room)[0] == wanted, "in the same order, whatever the size of a chunk"
        latest = MinMaxIndex(candidates, backwards=True).of(asked).latest()[0]
        assert latest.tolist() == asked.latest()[0].tolist()


def _of_one(values: Any, bound: Any, op: str, matches: int = 200) -> Candidates:
    """All of a stack for each of some partial matches, with one comparison."""
    lo, hi = np.zeros(matches, np.int64), np.full(matches, len(values))
    test = (np.asarray(values), np.full(matches, bound), OPERATORS[op])
    whole = test[0].dtype == np.int64
    tests = (*stacked([test] if whole else [], np.int64), *stacked([] if whole else [test], np.float64))
    return Candidates(lo, hi, np.arange(len(values)), tests)


QUESTIONS = pytest.mark.parametrize("question", [COUNT, EXIST, LATEST, EXPAND], ids=["count", "exist", "latest", "all"])


@QUESTIONS
@pytest.mark.parametrize(("op", "bound"), [(">", 1.0), (">=", 1.01), ("<", 0.0), ("<=", -0.01), (">", np.nan)])
def test_a_few_looks_show_that_none_qualifies(question: Question[Any], op: str, bound: float) -> None:
    candidates = _of_one(np.random.default_rng(1).random(10_000), bound, op)
    _, looked_at = question.ask(MinMaxIndex(candidates, backwards=question.backwards).of(candidates))
    assert looked_at <= 3 * len(candidates.lo)


def test_each_that_qualifies_takes_few_looks() -> None:
    values = np.zeros(100_000, np.int64)
    values[[5, 40_000, 40_001, 99_999]] = 1
    candidates = _of_one(values, 0, ">", matches=1)
    found, looked_at = MinMaxIndex(candidates, backwards=False).of(candidates).count()
    assert found == 4
    assert looked_at < 200


def _choice(candidates: Candidates, question: Question[Any], times: int = 1) -> tuple[IndexChoice, list[bool]]:
    """What is chosen for a join that is asked several times."""
    choice = IndexChoice("b.x > a.x")
    index = JoinIndex(choice, question)
    return choice, [index.applied(candidates) is not candidates for _ in range(times)]


@QUESTIONS
def test_it_is_chosen_where_few_qualify(question: Question[Any]) -> None:
    values = np.random.default_rng(2).random(10_000)
    choice, chosen = _choice(_of_one(values, 0.9999, ">"), question)
    assert chosen == [True]
    assert choice.expected["index"] < choice.expected["scan"] / 4


@QUESTIONS
def test_it_is_not_chosen_where_most_qualify(question: Question[Any]) -> None:
    values = np.random.default_rng(2).random(10_000)
    choice, chosen = _choice(_of_one(values, 0.2, ">"), question)
    assert chosen == [False]
    assert choice.expected["index"] > choice.expected["scan"]


def test_nothing_is_weighed_while_there_is_little_to_look_at() -> None:
    values = np.random.default_rng(2).random(10_000)
    choice, chosen = _choice(_of_one(values, 1.0, ">", matches=3), COUNT, times=4)
    assert min_max.LEAST_PER_EVENT == 8
    assert chosen == [False, False, True, True], "three times three candidates for each event are more"
    choice, chosen = _choice(_of_one(values[: min_max.LEAST_PER_MATCH], 1.0, ">", matches=1000), COUNT, times=100)
    assert not any(chosen)
    assert not choice.expected


def test_it_is_weighed_again_after_many_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(2).random(1_000)
    choice = IndexChoice("")
    index = JoinIndex(choice, COUNT)
    few, most = _of_one(values, 0.999, ">"), _of_one(values, 0.1, ">")
    monkeypatch.setattr(min_max, "HOLD_CANDIDATES", 3 * few.size)
    chosen = [index.applied(candidates) is not candidates for candidates in (few, most, most, most, few, few, few)]
    assert chosen == [True, True, True, False, False, False, True]


# Queries.


def _trades(size: int = 3_000) -> pa.Table:
    rng = np.random.default_rng(5)
    price = pa.array(rng.random(size), mask=rng.random(size) < 0.05)
    columns = {"ts": np.arange(size), "type": rng.choice(["A", "B", "C"], size), "price": price}
    return pa.table({**columns, "n": rng.integers(0, 1000, size)})


def _work(query: str, **settings: Any) -> tuple[list[str], int, str]:
    """The matches, how many candidates were looked at, and what was chosen."""
    runtime = ec.Runtime(query, type="type", **settings)
    found = [repr(row) for batch in run(runtime, _trades()) for row in batch.to_pylist()]
    return sorted(found), runtime.counters["candidates"], runtime.report()


SELECTIVE = [
    "SEQ(A a, B b, b.price > 0.99 + a.price / 1000) WITHIN 1 ms",
    "SEQ(A a, B b, b.price < a.price / 100) WITHIN 700 us",
    "SEQ(A a, B b, b.n BETWEEN a.n + 990 AND a.n + 995) WITHIN 1 ms",
    "SEQ(A a, !(C c, c.price > 0.99 + a.price / 1000), B b) WITHIN 100 us",
    "AND(A a, B b, a.n < b.n - 990) WITHIN 700 events",
    "SEQ(A a, !SEQ(C c, A d, c.price > 0.99 + a.price / 1000), B b) WITHIN 300 us",
]


@pytest.mark.parametrize("end", ["", " AGG COUNT(*) AS n"])
@pytest.mark.parametrize("query", SELECTIVE)
def test_a_selective_query_looks_at_fewer_candidates(query: str, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"strategy": "iterative", "aggregates": "enumerate"}
    found, looked_at, report = _work(f"PATTERN {query}{end}", **settings)
    assert found
    assert ": decided for index (" in report
    monkeypatch.setattr(min_max, "LEAST_PER_EVENT", 10**9)
    expected, scanned, report = _work(f"PATTERN {query}{end}", **settings)
    assert "index" not in report
    assert found == expected
    assert looked_at < scanned / 2


def test_explain_says_how_a_join_looks_at_its_candidates() -> None:
    query = "PATTERN SEQ(A a, B b, b.price > 0.99 + a.price / 1000) WITHIN 1 ms"
    assert "\n  where b.price > 0.99 + a.price / 1000: index, scan" in ec.explain(query, _trades().schema, type="type")
    shown = ec.explain(query, _trades(), type="type").splitlines()
    assert shown[-2] == "choices     over the first 3,000 events, by estimated cost"
    assert shown[-1].startswith("  where b.price > 0.99 + a.price / 1000: decided for index (1 call); estimated index ")
    assert "choices" not in ec.explain(query, _trades(20), type="type")


def test_explain_says_so_of_steps_that_queries_share() -> None:
    query = "PATTERN SEQ({} x, A a, B b, b.price > 0.99 + a.price / 1000) WITHIN 1 ms"
    shown = ec.explain({"one": query.format("A"), "two": query.format("C")}, _trades(), type="type")
    line = "\n  steps that several queries share: where b.price > 0.99 + a.price / 1000: decided for index ("
    assert line in shown
