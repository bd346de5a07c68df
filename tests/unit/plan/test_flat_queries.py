"""What `explain` says of parts that are rewritten."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from eventcube.explain import explain
from eventcube.plan.flat_queries import MAX_QUERIES

COLUMNS = pa.schema({"ts": pa.int64(), "kind": pa.string(), "dock": pa.int64(), "kg": pa.float64()})


def _explained(query: str, strategy: Any = "rewrite") -> list[str]:
    return explain(f"PATTERN {query}", COLUMNS, type="kind", strategy=strategy, aggregates="enumerate").splitlines()


def _said(query: str, strategy: Any = "rewrite") -> list[str]:
    """What is said from the flat queries on to the result."""
    lines = _explained(query, strategy)
    heads = [i for i, line in enumerate(lines) if line in ("flat queries", "rewritten queries", "stays nested")]
    return [line.strip() for line in lines[heads[0] : lines.index("result")]] if heads else []


def test_conditions_stay_with_their_events() -> None:
    there = "SEQ(Pick p, !(Scan s, s.dock = p.dock), Weigh w, !(Weigh w2, w2.kg > 3), Load l) WHERE w.kg > 3"
    assert _said("SEQ(Pick p, !SEQ(Scan s, Weigh w, s.dock = p.dock, w.kg > 3), Load l) WITHIN 1 s") == [
        "flat queries",
        "PATTERN SEQ(Pick p, !(Weigh w, w.kg > 3), Load l) WITHIN 1 second",
        f"PATTERN {there} WITHIN 1 second RETURN p, l",
        "every match is of one of them; it comes once for each last w where several have the same time",
    ]


def test_a_key_of_all_events_is_told_of_each() -> None:
    said = _said("SEQ(Pick p, !SEQ(Scan s, Weigh w, p.dock = s.dock = w.dock), Load l) WHERE p.dock = l.dock")
    assert "PATTERN SEQ(Pick p, !(Weigh w, w.dock = p.dock), Load l) WHERE p.dock = l.dock" in said


def test_a_name_that_is_taken_is_not_given_again() -> None:
    said = _said("SEQ(Pick w2, !SEQ(Scan s, Weigh w), Load l)")
    assert "PATTERN SEQ(Pick w2, !Scan s, Weigh w, !Weigh w3, Load l) RETURN w2, l" in said


def test_what_no_flat_query_says_is_told_by_cases() -> None:
    tied = "a SEQ cannot say that an event is missing at the very time of another; it holds in one of these cases"
    assert _said("SEQ(Pick p, !AND(Scan s, Weigh w, w.kg > 3), !SEQ(Fault f, Fix x), Load l)") == [
        "stays nested",
        f"!AND(Scan s, Weigh w, w.kg > 3): {tied}",
        "no Scan s",
        "no Weigh w where w.kg > 3, but there is Scan s",
        f"!SEQ(Fault f, Fix x): something else is negated in the same place, and {tied}",
        "no Fix x",
        "no Fault f before the last Fix x",
    ]


def test_cases_are_told_of_each_alternative() -> None:
    said = _said("SEQ(Pick p, !AND(Scan s, Weigh w, w.kg = b.kg), OR(Label b, Load l))")
    assert said.count("no Scan s") == 2
    assert "no Weigh w where w.kg = b.kg, but there is Scan s" in said
    assert "no Weigh w, but there is Scan s" in said


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SEQ(Pick p, !SEQ(Scan s, Weigh w))", "an event more would move the start or the end of the match"),
        ("AND(Pick p, Load l, !SEQ(Scan s, Weigh w))", "no event can be added to what is around it"),
        ("AND(Fix x, SEQ(Pick p, !SEQ(Scan s, Weigh w), Load l))", "no event can be added to what is around it"),
    ],
)
def test_why_a_negated_sequence_stays(query: str, reason: str) -> None:
    said = _said(query)
    assert f"!SEQ(Scan s, Weigh w): {reason}; it holds in one of these cases" in said
    assert not any(line.startswith("flat") for line in said)


def test_an_and_of_a_sequence_is_not_called_flat() -> None:
    assert _said("SEQ(Pick p, AND(Scan s, SEQ(Weigh w, Fix x)), Load l)") == [
        "stays nested",
        "AND(Scan s, SEQ(Weigh w, Fix x)): its events are bound in place, without an inner query",
    ]


def test_alternatives_are_queries_of_their_own() -> None:
    query = (
        "SEQ(Pick p, OR(Label b, SEQ(Scan s, Weigh w), p.kg > 1), Load l) WHERE b.kg > 2 AND s.kg = w.kg RETURN p, b.kg"
    )
    assert _said(query) == [
        "flat queries",
        "PATTERN SEQ(Pick p, Label b, Load l) WHERE p.kg > 1, b.kg > 2 RETURN p, b.kg",
        "PATTERN SEQ(Pick p, Scan s, Weigh w, Load l) WHERE p.kg > 1, s.kg = w.kg RETURN p, NULL AS `b.kg`",
    ]


def test_what_is_of_all_queries_together_is_in_none() -> None:
    shown = ["PATTERN Pick p RETURN p, NULL AS l", "PATTERN Load l RETURN NULL AS p, l"]
    assert _said("OR(Pick p, Load l) LIMIT 3")[1:] == [*shown, "LIMIT is of the matches of all of them together"]
    assert _said("OR(Pick p, Load l) AGG COUNT(*)")[1:] == [*shown, "AGG is of the matches of all of them together"]
    assert _said("SEQ(Pick p, SEQ(Scan s, Load l)) AGG COUNT(*)")[1:] == [
        "PATTERN SEQ(Pick p, Scan s, Load l) AGG COUNT(*)"
    ]


def test_not_all_of_many_queries_are_shown() -> None:
    ors = ", ".join(f"OR({', '.join(f'A a{i}_{j}' for j in range(9))})" for i in range(9))
    said = _said(f"SEQ({ors})")
    assert len(said) == 1 + MAX_QUERIES + 1
    assert said[-1] == "… and more of them"


def test_one_part_may_be_rewritten_alone() -> None:
    query = "SEQ(Pick p, SEQ(Fault f, Fix x), !SEQ(Scan s, Weigh w), Load l)"
    assert _said(query, {"s": "rewrite"})[:2] == [
        "rewritten queries",
        "PATTERN SEQ(Pick p, SEQ(Fault f, Fix x), !Weigh w, Load l)",
    ]
    assert _said(query)[:2] == ["flat queries", "PATTERN SEQ(Pick p, Fault f, Fix x, !Weigh w, Load l)"]
    assert _said(query, {"f": "balanced"}) == []
    assert any(line.endswith("a flat form exists (strategy rewrite shows it)") for line in _explained(query, "auto"))


def test_the_steps_of_a_rewritten_part_are_its_cases() -> None:
    lines = _explained("SEQ(Pick p, !SEQ(Scan s, Weigh w), Load l)")
    steps = "\n".join(lines[lines.index("steps") : lines.index("flat queries")])
    assert "take the last Weigh w, there" in steps
    assert steps.count("bind w: Weigh") == steps.count("bind s: Scan") == 1


def test_every_nested_part_has_its_strategy() -> None:
    query = "SEQ(Pick p, AND(Scan s, SEQ(Weigh w, Fix x)), Load l)"
    balanced = _explained(query, {"s": "balanced", "w": "passive"})
    assert "  nested part (s, w, x) after p, before l, by balanced" in balanced
    assert "    nested part (w, x) after p, before l, by passive inside the view" in balanced
    anew = _explained(query, {"s": "iterative", "w": "passive"})
    assert "    nested part (w, x) after p, before l, by passive" in anew
    assert "    nested part (w, x) after p, before l, by iterative" in _explained(query, "iterative")
