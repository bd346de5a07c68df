"""What the text of a query alone shows to be a slip."""

from __future__ import annotations

import pytest

from eventcube.language.parse import parse
from eventcube.plan.suspicions import missing_window, small_windows, suspicions


@pytest.mark.parametrize(
    "pattern", ["A a", "OR(A a, B b)", "SEQ(A a)", "OR(A a, SEQ(B b), AND(OR(C c, D d)))", "SEQ(A a, a.x > 1)"]
)
def test_a_pattern_of_one_event_needs_no_window(pattern: str) -> None:
    assert list(missing_window(parse(f"PATTERN {pattern}"))) == []


@pytest.mark.parametrize("pattern", ["SEQ(A a, B b)", "AND(A a, B b)", "OR(A a, SEQ(B b, C c))", "SEQ(A a, !B b)"])
def test_others_do(pattern: str) -> None:
    (found,) = missing_window(parse(f"PATTERN {pattern} WHERE a.x = 1"))
    assert found.message.startswith("the query has no WITHIN, so it keeps all its events")
    assert list(missing_window(parse(f"PATTERN {pattern} WITHIN 1 hour"))) == []


@pytest.mark.parametrize(
    ("pattern", "events", "least"),
    [
        ("SEQ(A a, B b, C c)", 2, 3),
        ("AND(A a, B b)", 1, 2),
        ("SEQ(A a, AND(B b, C c), !D d)", 2, 3),
        ("SEQ(A a, OR(B b, AND(C c, D d)))", 1, 2),
    ],
)
def test_a_window_too_small_for_any_match(pattern: str, events: int, least: int) -> None:
    (found,) = small_windows(parse(f"PATTERN {pattern} WITHIN {events} events"))
    shown = f"{events} event{'s' * (events > 1)}"
    assert found.message == f"a window of {shown} is too small: a match has at least {least}, so nothing matches"
    assert found.hint == f"write WITHIN {least} events, or more"
    assert list(small_windows(parse(f"PATTERN {pattern} WITHIN 100 events"))) == []


def test_a_window_too_small_for_an_alternative() -> None:
    text = "PATTERN SEQ(A a, OR(B b, OR(C c, SEQ(D d, E e)))) WITHIN 2 events"
    (found,) = small_windows(parse(text))
    assert found.span is not None
    assert text[found.span.start : found.span.end] == "SEQ(D d, E e)"
    assert found.message.startswith("a match with this alternative of OR has at least 3 events, and the window holds 2")


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B b, C c) WITHIN 3 events",
        "PATTERN SEQ(A a, !B b, C c) WITHIN 2 events",
        "PATTERN SEQ(A a, OR(B b, C c)) WITHIN 2 events",
        "PATTERN SEQ(A a, B b) WITHIN 1 us",
    ],
)
def test_a_window_that_is_large_enough(text: str) -> None:
    assert list(small_windows(parse(text))) == []


def test_all_that_the_text_shows() -> None:
    text = "PATTERN SEQ(A a, !(B b, b.x != NULL), C c, a.y LIKE 'x*') WHERE NOT a.x = NULL"
    assert [d.code for d in suspicions(parse(text))] == ["EC500", "EC510", "EC516", "EC510"]
