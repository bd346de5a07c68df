"""The worked examples of the papers, as far as they say which matches there are."""

import pytest

from eventcube.language.parse import parse
from tests.oracle.shorthand import matches, stream

HOSPITAL = {"r": "Recycle", "w": "Wash", "dr": "Dry", "s": "Sharpen", "d": "Disinfect", "o": "Operate"}


def test_nested_sequence_of_ray_et_al_2011_has_27_matches() -> None:
    query = parse(
        "PATTERN SEQ(Recycle r, SEQ(Wash w, Dry dr, Sharpen s), Disinfect d, Operate o) WITHIN 29 ms",
    )
    found = matches(query, stream("r1 w2 dr3 w5 dr6 s7 d8 w10 dr11 s12 o14 d15 o26 o30", HOSPITAL))
    until_8 = ["w5 dr6 s7", "w2 dr6 s7", "w2 dr3 s7"]
    until_15 = [
        *until_8,
        *("w10 dr11 s12", "w5 dr11 s12", "w2 dr11 s12", "w5 dr6 s12", "w2 dr6 s12", "w2 dr3 s12"),
    ]
    expected = [f"r1 {inner} d8 {o}" for o in ("o14", "o26", "o30") for inner in until_8]
    expected += [f"r1 {inner} d15 {o}" for o in ("o26", "o30") for inner in until_15]
    assert len(found) == 27
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ("r1 w2 s3 d10 o11 s13 o20", []),
        ("r1 w2 s3 o11 s13 o20", ["r1 w2 o11", "r1 w2 o20"]),
    ],
    ids=["both filtered out", "both returned without d10"],
)
def test_negation_over_a_composite_of_ray_et_al_2013(events: str, expected: list[str]) -> None:
    query = parse("PATTERN SEQ(Recycle r, Wash w, !AND(Sharpen s, Disinfect d), Operate o)")
    assert matches(query, stream(events, HOSPITAL)) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("SEQ(G, A, T)", ["G1 A5 T9", "G1 A6 T9", "G1 A5 T15", "G1 A6 T15"]),
        ("SEQ(G, A, D, T)", ["G1 A5 D10 T15", "G1 A6 D10 T15"]),
    ],
)
def test_stacks_of_liu_et_al_2011(pattern: str, expected: list[str]) -> None:
    assert matches(parse(f"PATTERN {pattern}"), stream("G1 A5 A6 T9 D10 T15")) == expected


def test_count_window_of_nishimura_and_kawashima_2014_has_13_matches() -> None:
    query = parse("PATTERN SEQ(A, B, D) WITHIN 9 events")
    first = ["A1 B3 D5", "A1 B3 D7", "A1 B6 D7", "A4 B6 D7", "A1 B3 D9", "A1 B6 D9", "A4 B6 D9"]
    second = ["A4 B6 D11", "A4 B6 D12", "A8 B10 D11", "A8 B10 D12", "A4 B10 D11", "A4 B10 D12"]
    found = matches(query, stream("A1 C2 B3 A4 D5 B6 D7 A8 D9 B10 D11 D12 B13"))
    assert len(found) == 13
    assert sorted(found) == sorted(first + second)
