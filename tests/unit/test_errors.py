"""Errors: how they are shown, what they hint at, and that they survive the way from a worker."""

from __future__ import annotations

import pickle

import pytest

from eventcube.errors import (
    BindError,
    Diagnostic,
    EventCubeError,
    InputError,
    OptionError,
    QueryError,
    QuerySyntaxError,
    Span,
    did_you_mean,
    line_and_column,
)


@pytest.mark.parametrize("kind", [EventCubeError, InputError, OptionError])
def test_plain_errors_survive_pickling(kind: type[EventCubeError]) -> None:
    error = kind("what", code="EC999", hint="how")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error) == "error[EC999]: what\nhint: how"


@pytest.mark.parametrize("kind", [QueryError, QuerySyntaxError, BindError])
def test_errors_of_queries_survive_pickling(kind: type[QueryError]) -> None:
    error = kind(
        [Diagnostic("EC201", "b", Span(4, 5)), Diagnostic("EC202", "a", Span(0, 1), "hint")], "ab\nc", "f.neel"
    )
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.source) == (kind, str(error), "f.neel")
    assert [d.code for d in copy.diagnostics] == ["EC202", "EC201"], "in the order of the text"
    assert copy.code == "EC202"


def test_the_same_problem_is_told_once() -> None:
    twice = Diagnostic("EC201", "x", Span(0, 1))
    assert len(QueryError([twice, twice], "x").diagnostics) == 1


@pytest.mark.parametrize(
    ("text", "span", "marks"),
    [
        pytest.param("WHERE x", Span(6, 7), "    |       ^", id="one sign"),
        pytest.param("\tx = 1", Span(1, 2), "    | \t^", id="a tab stays a tab"),
        pytest.param("ab\ncd", Span(0, 5), "    | ^^", id="no further than the line"),
        pytest.param("ab", Span(2, 2), "    |   ^", id="at the end"),
        pytest.param("ab", Span(9, 12), "    |   ^", id="beyond the end"),
    ],
)
def test_the_place_is_marked(text: str, span: Span, marks: str) -> None:
    assert Diagnostic("EC100", "m", span).render(text, "q").splitlines()[3] == marks


LONG = "x" * 150 + "HERE" + "y" * 150


@pytest.mark.parametrize(
    ("text", "span", "shown", "marks"),
    [
        pytest.param(LONG, Span(150, 154), f"…{'x' * 33}HERE{'y' * 63}…", " " * 34 + "^^^^", id="in the middle"),
        pytest.param(LONG, Span(2, 4), f"{'x' * 100}…", "  ^^", id="near the start"),
        pytest.param(LONG, Span(301, 304), f"…{'y' * 100}", " " * 98 + "^^^", id="at the end"),
        pytest.param(LONG, Span(304, 304), f"…{'y' * 100}", " " * 101 + "^", id="after the end"),
        pytest.param(LONG, Span(150, 304), f"…{'x' * 33}HERE{'y' * 63}…", " " * 34 + "^" * 67, id="longer than shown"),
        pytest.param("x" * 100, Span(0, 1), "x" * 100, "^", id="a line that fits"),
        pytest.param("\t" * 200 + "x", Span(200, 201), "…" + "\t" * 99 + "x", " " + "\t" * 99 + "^", id="tabs"),
        pytest.param(
            f"short\n{LONG}\nshort",
            Span(156, 160),
            f"…{'x' * 33}HERE{'y' * 63}…",
            " " * 34 + "^^^^",
            id="one of several lines",
        ),
    ],
)
def test_of_a_long_line_the_part_around_the_place_is_shown(text: str, span: Span, shown: str, marks: str) -> None:
    line, marked = Diagnostic("EC100", "m", span).render(text, "q").splitlines()[2:4]
    assert (line[6:], marked[6:]) == (shown, marks)


@pytest.mark.parametrize(
    ("count", "last"), [(30, None), (31, "… and 1 more"), (999, "… and 969 more"), (2000, "… and at least 1970 more")]
)
def test_of_very_many_mistakes_a_few_dozen_are_shown(count: int, last: str | None) -> None:
    error = QueryError([Diagnostic("EC100", f"m{i}", Span(i, i + 1)) for i in range(count)], "x" * count)
    shown = str(error).split("\n\n")
    assert len([part for part in shown if part.startswith("error[EC100]")]) == 30
    assert (shown[-1] if not shown[-1].startswith("error") else None) == last


def test_very_long_names_do_not_make_messages_long() -> None:
    name = "n" * 1_000_000
    error = QueryError([Diagnostic("EC201", f"unknown variable '{name}'", Span(0, 1), f"known: {name}")], name)
    assert str(error).startswith("error[EC201]: unknown variable 'nnn")
    assert len(str(error)) < 1200
    assert did_you_mean("x1", [f"x{i}" for i in range(2000)], "").startswith("known: x0, x1, ")  # type: ignore[union-attr]


def test_lines_and_columns_count_from_one() -> None:
    assert [line_and_column("ab\nc\n", i) for i in (0, 1, 3, 5, 99)] == [(1, 1), (1, 2), (2, 1), (3, 1), (3, 1)]


@pytest.mark.parametrize(
    ("name", "known", "owner", "expected"),
    [
        ("pirce", ["price", "volume"], "Trade", "did you mean 'price'? Trade has: price, volume"),
        ("PRICE", ["price"], "", "did you mean 'price'? known: price"),
        ("zzz", ["price", "volume"], "", "known: price, volume"),
        ("x", [], "", None),
        ("x", [f"c{i:02}" for i in range(25)], "", "known: " + ", ".join(f"c{i:02}" for i in range(20)) + ", …"),
    ],
)
def test_hints(name: str, known: list[str], owner: str, expected: str | None) -> None:
    assert did_you_mean(name, known, owner) == expected
