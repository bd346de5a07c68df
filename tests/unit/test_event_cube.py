"""`ec.Cube`: queries that relate, moves between them, and answers for every kind of frame."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.errors import OptionError
from eventcube.options import SHARINGS

SIZE = 3000
KINDS = ["DBus", "DShelter", "G", "A", "TBus", "THospital"]
EVENTS = pa.table({"ts": range(SIZE), "type": Random(7).choices(KINDS, k=SIZE), "k": range(SIZE)})
CONCEPTS = {"TX": {"D": ["DBus", "DShelter"], "G": [], "A": []}, "OK": {"T": ["TBus", "THospital"]}}
QUERIES = {
    "q1": "PATTERN SEQ(TX x, OK o) WITHIN 12 us",
    "q2": "PATTERN SEQ(D d, T t) WITHIN 12 us",
    "q3": "PATTERN SEQ(G g, A a, T t) WITHIN 12 us",
    "q4": "PATTERN SEQ(G g, !DBus d, A a, T t) WITHIN 12 us",
    "q6": "PATTERN SEQ(G g, A a, D d, T t) WITHIN 12 us",
    "q7": "PATTERN SEQ(G g, !D d, A a, T t) WITHIN 12 us",
}


def cube() -> ec.Cube:
    return ec.Cube(QUERIES, concepts=CONCEPTS)


def alone() -> dict[str, int]:
    found = {n: ec.match(EVENTS, q, type="type", concepts=CONCEPTS) for n, q in QUERIES.items()}
    return {name: table.num_rows for name, table in found.items()}


@pytest.mark.parametrize("sharing", SHARINGS)
def test_every_sharing_plan_counts_and_finds_what_each_query_finds_alone(sharing: str) -> None:
    counts = cube().counts(EVENTS, type="type", sharing=sharing)
    assert dict(zip(*counts.to_pydict().values(), strict=True)) == alone()
    matches = cube().match(EVENTS, type="type", sharing=sharing)
    assert matches.schema.names == ["query", "start", "end", "events"]
    assert {n: matches.column("query").to_pylist().count(n) for n in QUERIES} == alone()
    each = cube().match_all(EVENTS, type="type", sharing=sharing)
    assert {name: table.num_rows for name, table in each.items()} == alone()


@pytest.mark.parametrize(
    ("make", "kind"),
    [(lambda t: t, pa.Table), (lambda t: t.to_pandas(), pd.DataFrame), (pl.from_arrow, pl.DataFrame)],
    ids=["Arrow", "pandas", "polars"],
)
def test_every_kind_of_frame(make: Callable[[pa.Table], Any], kind: type) -> None:
    counts = cube().counts(make(EVENTS), type="type")
    assert isinstance(counts, kind)
    assert list(counts["query"].to_pylist() if kind is pa.Table else counts["query"]) == list(QUERIES)


def test_the_graph_of_the_paper() -> None:
    edges = {(edge.coarser, edge.finer): edge.change.value for edge in cube().graph.edges}
    assert edges["q1", "q2"] == "concept"
    assert edges["q2", "q6"] == "pattern"
    assert edges["q3", "q6"] == "pattern"
    assert edges["q4", "q7"] == "concept"


def test_moves_add_queries() -> None:
    own = cube()
    own.pattern_drill_down("q3", [("!D", 2)], name="q7a")
    own.pattern_roll_up("q6", [("G", 1), ("A", 2)], name="q2a")
    own.concept_roll_up("q2", [("D", "TX", 1), ("T", "OK", 2)])
    assert list(own)[-3:] == ["q7a", "q2a", "q2.1"]
    found = dict(zip(*own.counts(EVENTS, type="type").to_pydict().values(), strict=True))
    assert (found["q7a"], found["q2a"], found["q2.1"]) == (found["q7"], found["q2"], found["q1"])


def test_limits_bound_counts() -> None:
    own = ec.Cube({"few": "PATTERN G g LIMIT 2", "none": "PATTERN Zebra z", "all": "PATTERN G g"})
    with pytest.warns(ec.EventCubeWarning, match="Zebra"):
        counts = own.counts(EVENTS, type="type")
    with pytest.warns(ec.EventCubeWarning, match="Zebra"):
        few = own.counts(EVENTS, type="type", limit=3)
    assert counts.column("matches").to_pylist() == [2, 0, EVENTS.column("type").to_pylist().count("G")]
    assert few.column("matches").to_pylist() == [2, 0, 3]


def test_a_graph_needs_no_columns() -> None:
    own = ec.Cube(
        {
            "near": "PATTERN SEQ(A a, B b, a.city = b.city, b.ts - a.ts < 1 min, a.name LIKE 'x%') WITHIN 1 hour",
            "far": "PATTERN SEQ(A a, B b, a.city = b.city) WITHIN 1 hour",
            "home": "PATTERN SEQ(A a, B b, a.city = b.city, a.city = 'Ulm', HOUR(a.seen) < 6, a.home) WITHIN 1 hour",
        }
    )
    assert {(e.coarser, e.finer) for e in own.graph.edges} == {("far", "near"), ("far", "home")}


def test_columns_that_cannot_be_guessed_are_asked_for() -> None:
    own = ec.Cube({"odd": "PATTERN SEQ(A a, B b, a.x = 1, b.x = 'one')"})
    with pytest.raises(OptionError, match=r"columns=events\.schema") as caught:
        _ = own.graph
    assert caught.value.code == "EC468"
    known = ec.Cube({"one": "PATTERN SEQ(A a, B b, a.x = b.x)"}, columns=pa.schema({"x": pa.string()}))
    assert len(known.graph.queries) == 1


def test_bad_input_is_told_in_one_message_each() -> None:
    own = cube()
    cases: list[tuple[Callable[[], object], str, str]] = [
        (lambda: ec.Cube({}), "EC413", "there is no query"),
        (lambda: own["q"], "EC467", "has no query 'q'"),
        (lambda: own.concept_drill_down("q1", [("TX", "T", 1)]), "EC462", "not below"),
        (lambda: own.concept_drill_down("q1", [("TX", "D", 1)], name="q2"), "EC469", "already"),
        (lambda: ec.Cube("PATTERN A a").concept_roll_up("q1", [("A", "B", 1)]), "EC469", "no hierarchy"),
        (lambda: own.counts(EVENTS, concepts={"A": ["B"]}), "EC469", "own hierarchy"),
        (lambda: own.counts(EVENTS, type="type", sharing="fast"), "EC401", "unknown sharing"),
    ]
    for call, code, message in cases:
        with pytest.raises(OptionError, match=message) as caught:
            call()
        assert caught.value.code == code


def test_it_shows_itself() -> None:
    own = cube()
    assert repr(own) == "<Cube: q1, q2, q3, q4, q6, q7>"
    assert str(own).startswith("q1: SEQ(TX x, OK o)")
    assert "q7" in own._repr_html_()
    assert "q6: computed from" in str(own.explain(EVENTS, type="type", sharing="top-down"))
    runtime = own.runtime(type="type", separate=True)
    found = [name for name, _ in (*runtime.push(EVENTS), *runtime.finish())]
    assert set(found) == {name for name, n in alone().items() if n}
