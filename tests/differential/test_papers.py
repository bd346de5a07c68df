"""The worked examples of the papers, asked of the engine under any cut of the input."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import eventcube as ec
from tests.oracle.shorthand import stream

HOSPITAL = {"r": "Recycle", "w": "Wash", "dr": "Dry", "s": "Sharpen", "d": "Disinfect", "o": "Operate"}
NESTED = "PATTERN SEQ(Recycle r, SEQ(Wash w, Dry dr, Sharpen s), Disinfect d, Operate o) WITHIN 29 ms"
NESTED_STREAM = "r1 w2 dr3 w5 dr6 s7 d8 w10 dr11 s12 o14 d15 o26 o30"


def table(events: str, types: dict[str, str] | None = None) -> pa.Table:
    found = stream(events, types)
    return pa.table(
        {
            "ts": pa.array([e.ts for e in found], pa.timestamp("us")),
            "type": [e.type for e in found],
            "label": [str(e.attrs["label"]) for e in found],
        }
    )


def labels(batches: list[pa.RecordBatch]) -> list[str]:
    """Each match as the labels of its events."""
    return [
        " ".join(row)
        for b in batches
        for row in zip(*(pc.struct_field(c, "label").to_pylist() for c in b.columns[2:]), strict=True)
    ]


def run(runtime: ec.Runtime, events: pa.Table, cut: list[int]) -> list[str]:
    batches: list[pa.RecordBatch] = []
    start = 0
    for length in (*cut, events.num_rows):
        batches += runtime.push(events.slice(start, length))
        start += length
    return labels([*batches, *runtime.finish()])


def cuts(count: int) -> list[list[int]]:
    rng = Random(count)
    drawn = [[rng.randint(0, 4) for _ in range(6)] for _ in range(20)]
    return [[], [1] * count, *([i] for i in range(1, count)), *drawn]


UNTIL_8 = ["w5 dr6 s7", "w2 dr6 s7", "w2 dr3 s7"]
UNTIL_15 = [
    *UNTIL_8,
    *("w10 dr11 s12", "w5 dr11 s12", "w2 dr11 s12", "w5 dr6 s12", "w2 dr6 s12", "w2 dr3 s12"),
]


@pytest.mark.parametrize(
    ("query", "events", "types", "expected"),
    [
        pytest.param(
            NESTED,
            NESTED_STREAM,
            HOSPITAL,
            [
                *(f"r1 {inner} d8 {o}" for o in ("o14", "o26", "o30") for inner in UNTIL_8),
                *(f"r1 {inner} d15 {o}" for o in ("o26", "o30") for inner in UNTIL_15),
            ],
            id="nested sequence, Ray et al. 2011 Fig. 5",
        ),
        pytest.param(
            "PATTERN SEQ(Recycle r, Wash w, !AND(Sharpen s, Disinfect d), Operate o) WITHIN 1 s",
            "r1 w2 s3 d10 o11 s13 o20",
            HOSPITAL,
            [],
            id="negation over a composite, Ray et al. 2013 Fig. 2",
        ),
        pytest.param(
            "PATTERN SEQ(Recycle r, Wash w, !AND(Sharpen s, Disinfect d), Operate o) WITHIN 1 s",
            "r1 w2 s3 o11 s13 o20",
            HOSPITAL,
            ["r1 w2 o11", "r1 w2 o20"],
            id="negation over a composite without d10",
        ),
        pytest.param(
            "PATTERN SEQ(G, A, T) WITHIN 1 s",
            "G1 A5 A6 T9 D10 T15",
            None,
            ["G1 A5 T9", "G1 A6 T9", "G1 A5 T15", "G1 A6 T15"],
            id="stacks, Liu et al. 2011 Fig. 2",
        ),
        pytest.param(
            "PATTERN SEQ(G, A, D, T) WITHIN 1 s",
            "G1 A5 A6 T9 D10 T15",
            None,
            ["G1 A5 D10 T15", "G1 A6 D10 T15"],
            id="longer stacks, Liu et al. 2011 Fig. 9",
        ),
        pytest.param(
            "PATTERN SEQ(A, B, D) WITHIN 9 events",
            "A1 C2 B3 A4 D5 B6 D7 A8 D9 B10 D11 D12 B13",
            None,
            [
                *("A1 B3 D5", "A1 B3 D7", "A1 B6 D7", "A4 B6 D7", "A1 B3 D9", "A1 B6 D9", "A4 B6 D9"),
                *("A4 B6 D11", "A4 B6 D12", "A8 B10 D11", "A8 B10 D12", "A4 B10 D11", "A4 B10 D12"),
            ],
            id="count window, Nishimura and Kawashima 2014",
        ),
    ],
)
def test_example(query: str, events: str, types: dict[str, str] | None, expected: list[str]) -> None:
    given = table(events, types)
    for cut in cuts(given.num_rows):
        assert sorted(run(ec.Runtime(query, type="type", advise=False), given, cut)) == sorted(expected)


def test_the_nested_example_trigger_by_trigger() -> None:
    """Iterative execution computes 27 inner results: 3 at o14, 3 + 9 at o26, 3 + 9 at o30."""
    runtime = ec.Runtime(NESTED, type="type", strategy="iterative")
    events = table(NESTED_STREAM, HOSPITAL)
    inner: dict[str, int] = {}
    matches: dict[str, int] = {}
    for i in range(events.num_rows):
        label = events.column("label")[i].as_py()
        before = runtime.counters
        batches = [
            *runtime.push(events.slice(i, 1)),
            *runtime.advance(events.column("ts").cast(pa.int64())[i].as_py() + 1),
        ]
        inner[label] = runtime.counters["inner_computed"] - before["inner_computed"]
        matches[label] = sum(b.num_rows for b in batches)
    triggers = {"o14": 3, "o26": 12, "o30": 12}
    assert {k: n for k, n in matches.items() if n} == triggers
    assert {k: n for k, n in inner.items() if n} == triggers
    assert runtime.counters["inner_computed"] == 27


def test_the_nested_example_computes_as_much_under_every_cut() -> None:
    events = table(NESTED_STREAM, HOSPITAL)
    for cut in cuts(events.num_rows):
        runtime = ec.Runtime(NESTED, type="type", strategy="iterative")
        assert len(run(runtime, events, cut)) == runtime.counters["inner_computed"] == 27
