"""`ec.Cube`: queries that relate, moves between them, and answers for every kind of frame."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructType

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
    frame = pd.DataFrame(cube().graph.edges)
    assert dict(zip(zip(frame.coarser, frame.finer, strict=True), frame.change, strict=True)) == edges


def test_moves_add_queries() -> None:
    own = cube()
    own.pattern_drill_down("q3", [("!D", 2)], name="q7a")
    own.pattern_roll_up("q6", [("G", 1), ("A", 2)], name="q2a")
    own.concept_roll_up("q2", [("D", "TX", 1), ("T", "OK", 2)])
    assert list(own)[-3:] == ["q7a", "q2a", "q2.1"]
    found = dict(zip(*own.counts(EVENTS, type="type").to_pydict().values(), strict=True))
    assert (found["q7a"], found["q2a"], found["q2.1"]) == (found["q7"], found["q2"], found["q1"])


def test_moves_are_compared_by_columns_that_are_known() -> None:
    query = "PATTERN SEQ(A a, B b, C c) WHERE a.k = b.x = c.k"
    kinds = [pa.int64(), pa.float64()]
    claims = []
    for kind in kinds:
        own = ec.Cube({"q": query}, columns=pa.schema({"k": kinds[0], "x": kind}))
        claims.append([move.related for move in own.moves("q") if move.change == ("B", 2)])
    # Whole numbers that equal the same float may differ.
    assert claims == [[True], [False]]


def test_a_cube_without_queries_says_so() -> None:
    own = ec.Cube("PATTERN A a")
    own.remove("q1")
    assert (str(own), repr(own)) == ("no queries", "<Cube: no queries>")
    assert "no queries" in own._repr_html_()
    for call in (own.counts, own.match, own.match_all, own.explain):
        assert "EC413]: there is no query" in _told(lambda call=call: call(EVENTS))  # type: ignore[misc]


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
    own = ec.Cube({"fine": "PATTERN A a", "odd": "PATTERN SEQ(A a, B b, a.x = 1, b.x = 'one')"})
    for call in (lambda: own.graph, lambda: own.moves("odd")):
        assert _told(call) == (
            "error[EC468]: the kinds of columns cannot be guessed: cannot compare a number with text\n"
            " --> odd:1:32\n"
            "  1 | PATTERN SEQ(A a, B b, a.x = 1, b.x = 'one')\n"
            "    |                                ^^^^^^^^^^^\n"
            "hint: give Cube(…, columns=events.schema); otherwise x is taken for a number"
        )
    known = ec.Cube({"one": "PATTERN SEQ(A a, B b, a.x = b.x)"}, columns=pa.schema({"x": pa.string()}))
    assert len(known.graph.queries) == 1


def test_bad_input_is_told_in_one_message_each() -> None:
    own = cube()
    cases: list[tuple[Callable[[], object], str, str]] = [
        (lambda: ec.Cube({}), "EC413", "there is no query"),
        (lambda: ec.Cube({" ": "PATTERN A a"}), "EC413", "the name of a query is empty"),
        (lambda: own.concept_drill_down("q1", [("TX", "D", 1)], name=""), "EC413", "the name of a query is empty"),
        (lambda: own["q"], "EC467", "has no query 'q'"),
        (lambda: own.concept_drill_down("q1", [("TX", "T", 1)]), "EC462", "not below"),
        (lambda: own.concept_drill_down("q1", [("TX", "D", 1)], name="q2"), "EC469", "already"),
        (lambda: ec.Cube("PATTERN A a").concept_roll_up("q1", [("A", "B", 1)]), "EC458", "no hierarchy"),
        (lambda: own.counts(EVENTS, concepts={"A": ["B"]}), "EC459", "own concepts"),
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


def test_settings_of_a_cube_hold_for_its_graph_and_all_answers() -> None:
    queries = {
        "all": "PATTERN SEQ(TX x, OK o) WITHIN 12 us",
        "by_k": "PATTERN SEQ(D d, T t) WITHIN 12 us PARTITION BY k",
    }
    table = EVENTS.set_column(2, "k", pa.array([i % 7 for i in range(SIZE)])).rename_columns(["at", "kind", "k"])
    assert not ec.Cube(queries, concepts=CONCEPTS).graph.pairs, "one has no key"
    own = ec.Cube(queries, concepts=CONCEPTS, time="at", type="kind", partition_by="k")
    assert list(own.graph.pairs) == [("by_k", "all")]
    assert list(ec.Cube(queries, columns=table.schema, **own.settings).graph.pairs) == [("by_k", "all")]
    expected = ec.Cube(queries, concepts=CONCEPTS).counts(table, time="at", type="kind", partition_by=["k"])
    assert own.counts(table).equals(expected)
    assert own.counts(table, partition_by=["k"], limit=10**9).equals(expected), "the same again, and another setting"
    assert [own.match(table).num_rows] == [sum(expected.column("matches").to_pylist())]
    assert "split by k" in own.explain(table)
    assert own.runtime(lateness=3).options.partition_by == ("k",)


def test_times_of_a_cube_may_be_whole_numbers() -> None:
    own = ec.Cube({"q": "PATTERN SEQ(A a, B b, b.at - a.at < 5, a.at > 3)"}, time="at", type="kind")
    assert len(own.graph.queries) == 1
    every = ec.Cube({"one": "PATTERN SEQ(A a, B b)", "two": "PATTERN SEQ(C a, D b)"}, type=None)
    assert every.graph.groups == (("one", "two"),), "without types, every event fits every component"


def test_a_call_that_contradicts_the_cube() -> None:
    own = ec.Cube(QUERIES, type="type", partition_by="k")
    for settings, name in (
        ({"type": None}, "type, 'type'"),
        ({"partition_by": ["k", "v"]}, "partition_by, 'k'"),
        ({"partition_by": None}, "partition_by, 'k'"),
        ({"concepts": CONCEPTS}, "concepts, None"),
    ):
        for call in (own.counts, own.match, own.match_all, own.explain):
            with pytest.raises(OptionError, match=rf"EC459\]: the cube has its own {name}") as caught:
                call(EVENTS, **settings)
            assert "leave" in str(caught.value.hint)
        with pytest.raises(OptionError, match="EC459"):
            own.runtime(**settings)
    with pytest.raises(ec.InputError, match="EC302"):
        _ = ec.Cube(QUERIES, time="at", columns=EVENTS.schema).graph


def test_mistakes_in_the_graph_are_told_without_internal_names() -> None:
    own = ec.Cube(
        {"q": "PATTERN SEQ(A a, B b, a.v = 1, a.w = 1)", "p": "PATTERN A PARTITION BY q"}, columns=EVENTS.schema
    )
    with pytest.raises(ec.BindError) as caught:
        _ = own.graph
    assert str(caught.value).count("hint: the input has: k, ts, type") == 3
    assert "EC201" in _told(lambda: ec.Cube({"q": "PATTERN SEQ(A a, B b, c.x = 1)"}).graph), "no matter of columns"


@pytest.mark.parametrize(
    "columns",
    [
        EVENTS,
        EVENTS.schema,
        EVENTS.to_pandas(),
        EVENTS.to_pandas().dtypes,
        pl.DataFrame(EVENTS),
        pl.DataFrame(EVENTS).lazy(),
        pl.DataFrame(EVENTS).schema,
        StructType().add("ts", LongType()).add("type", StringType()).add("k", LongType()),
    ],
    ids=lambda columns: f"{type(columns).__module__.split('.')[0]} {type(columns).__name__}",
)
def test_columns_of_every_kind(columns: Any) -> None:
    own = ec.Cube({"q": "PATTERN SEQ(A a, B b, a.k = b.k)"}, columns=columns)
    assert len(own.graph.queries) == 1
    assert "hint: b.k holds numbers" in _told(lambda: own.add("odd", "PATTERN SEQ(A a, B b, b.k = 'x')"))


@pytest.mark.parametrize("columns", [5, ["ts", "k"], "ts"])
def test_what_are_no_columns(columns: Any) -> None:
    assert "EC414]: columns cannot be" in _told(lambda: ec.Cube(QUERIES, columns=columns))


WORKLOAD = """\
concepts: places.yaml
within: 12 us
queries:
  q1: PATTERN SEQ(TX x, OK o)
  q2: PATTERN SEQ(D d, T t)
settings: {type: type, sharing: top-down}
"""


def test_a_cube_from_the_workload_file_of_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "moves.yaml").write_text(WORKLOAD, encoding="utf-8")
    (tmp_path / "places.yaml").write_text(json.dumps(CONCEPTS), encoding="utf-8")
    own = ec.Cube.from_yaml(tmp_path / "moves.yaml")
    assert str(own) == (
        "q1: SEQ(TX x, OK o) WITHIN 12 microseconds\n  concept → q2: SEQ(D d, T t) WITHIN 12 microseconds"
    )
    found = alone()
    assert own.counts(EVENTS).column("matches").to_pylist() == [found["q1"], found["q2"]]
    assert "q2: computed from q1" in str(own.explain(EVENTS))
    assert own.copy().runtime().options.sharing == "top-down"
    assert own.runtime(sharing="independent").options.sharing == "independent"
    assert "EC459]: the cube has its own type" in _told(lambda: own.counts(EVENTS, type=None))
    (tmp_path / "moves.yaml").write_text(WORKLOAD.replace("(D d", "(D d d"), encoding="utf-8")
    assert "EC101]" in _told(lambda: ec.Cube.from_yaml(str(tmp_path / "moves.yaml")))
    assert "EC320]: there is no workload file" in _told(lambda: ec.Cube.from_yaml(tmp_path / "none.yaml"))


@pytest.mark.parametrize("name", ["places.yaml", "places.JSON"])
def test_a_hierarchy_by_its_path(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(json.dumps(CONCEPTS), encoding="utf-8")
    own = ec.Cube(QUERIES, concepts=path)
    assert own.copy().counts(EVENTS, type="type").equals(cube().counts(EVENTS, type="type"))
    path.unlink()
    assert len(own.copy().graph.queries) == len(QUERIES), "the file is read once"
    assert "EC314]: cannot read" in _told(lambda: ec.match(EVENTS, QUERIES, concepts=str(path)))


def test_queries_are_added_and_replaced() -> None:
    own = cube()
    assert str(own.add("q8", "PATTERN G g")) == "PATTERN G g"
    assert "EC469]: the cube has a query 'q8' already" in _told(lambda: own.add("q8", "PATTERN A a"))
    own.match(EVENTS, type="type", keep=100_000)
    own["q8"] = "PATTERN SEQ(G g, A a) WITHIN 12 us"
    own["q9"] = own["q7"]
    assert list(own)[-2:] == ["q8", "q9"]
    assert "EC482]: the kept matches know another query 'q8'" in _told(lambda: own.answer("q8"))
    assert own.answer("q9").matches.num_rows == alone()["q7"]
    assert "EC413" in _told(lambda: own.add("", "PATTERN A a"))


def test_a_move_can_be_applied() -> None:
    own = cube()
    for number, move in enumerate(own.moves("q4")):
        if move.change is not None:
            assert str(own.apply("q4", move, name=f"m{number}")).split("\n")[0] == f"PATTERN {move.gives}"
    insertion = next(move for move in own.moves("q4") if move.change is None)
    told = _told(lambda: own.apply("q4", insertion))
    assert "EC465]: the move inserts any part\nhint: say which, and where: pattern_drill_down(query, (" in told
    assert "EC414]: a move cannot be 'up'" in _told(lambda: own.apply("q4", "up"))  # type: ignore[arg-type]


def test_types_that_look_like_those_of_the_hierarchy_are_doubted() -> None:
    query = {"q": "PATTERN SEQ(THospitl h, TX t, Zebra z, DB b)"}
    with pytest.warns(ec.EventCubeWarning) as caught:
        own = ec.Cube(query, concepts=CONCEPTS)
    (warned,) = caught
    assert str(warned.message) == (
        "[EC506]: the hierarchy has no type 'THospitl'\n"
        " --> q:1:13\n"
        "  1 | PATTERN SEQ(THospitl h, TX t, Zebra z, DB b)\n"
        "    |             ^^^^^^^^\n"
        "hint: did you mean 'THospital'? the hierarchy has: A, D, DBus, DShelter, G, OK, T, TBus, THospital, TX"
    )
    assert warned.filename == __file__
    with pytest.warns(ec.EventCubeWarning, match="no type 'DShltr'"):
        own.pattern_drill_down("q", ("!DShltr", 1))
    own.pattern_drill_down("q", ("!DShltr", 2))
    own.copy()
    ec.Cube(query, concepts=CONCEPTS, advise=False).pattern_drill_down("q", ("!DShltr", 1))


def _told(call: Callable[[], object]) -> str:
    with pytest.raises(ec.EventCubeError) as caught:
        call()
    return str(caught.value)


def test_a_move_takes_one_change_or_several() -> None:
    own = cube()
    assert str(own.pattern_drill_down("q2", ("A", 2))) == str(own.pattern_drill_down("q2", [("A", 2)]))
    assert str(own.pattern_roll_up("q6", ("G", np.int64(1)))) == str(own.pattern_roll_up("q6", [("G", 1)]))  # type: ignore[arg-type]
    assert str(own.concept_drill_down("q1", ("TX", "D", 1))) == str(own.concept_drill_down("q1", [("TX", "D", 1)]))
    assert str(own.concept_roll_up("q2", ["D", "TX", 1])) == str(own.concept_roll_up("q2", iter([("D", "TX", 1)])))  # type: ignore[arg-type, list-item]


@pytest.mark.parametrize(
    "changes", [None, 5, "D", {"D": 1}, [None], ["D"], [("D",)], [("D", "1")], [("D", 1.0)], [(1, 1)]]
)
@pytest.mark.parametrize("move", ["concept_drill_down", "concept_roll_up", "pattern_drill_down", "pattern_roll_up"])
def test_changes_of_another_form(move: str, changes: Any) -> None:
    assert "error[EC414]: a change cannot be" in _told(lambda: getattr(cube(), move)("q2", changes))


def test_a_change_without_its_position_is_shown_as_a_whole() -> None:
    told = _told(lambda: cube().concept_drill_down("q1", ("TX", "D")))  # type: ignore[arg-type]
    assert told.startswith("error[EC414]: a change cannot be ('TX', 'D')\n")
    assert told.endswith(": the position is missing")


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("sharing", SHARINGS)
def test_explain_tells_the_work_of_each_query(sharing: str, counts: bool) -> None:
    own, counters = cube(), ec.Counts()
    (own.counts if counts else own.match)(EVENTS, type="type", sharing=sharing, counters=counters)
    lines = own.explain(EVENTS, type="type", sharing=sharing, counts=counts, analyze=True).splitlines()
    told = [re.search(r"measured ([\d,]+) candidates, ([\d,]+) made$", line) for line in lines]
    for place, name in enumerate(("candidates", "made"), 1):
        assert sum(int(found[place].replace(",", "")) for found in told if found) == counters[name]
    assert {line.split(":")[0].strip() for line in lines if ": computed from " in line} == set(QUERIES)
    assert any("AGG COUNT" in line for line in lines) is counts


def test_explain_tells_the_estimate_beside_the_work() -> None:
    kinds = Random(1).choices("ABCDE", [1, 20, 20, 20, 20], k=60_000)
    own = ec.Cube(
        {"two": "PATTERN SEQ(A a, C c) WITHIN 99 us", "three": "PATTERN SEQ(A a, B b, C c) WITHIN 99 us"}, type="type"
    )
    lines = own.explain(pa.table({"ts": range(60_000), "type": kinds}), analyze=True).splitlines()
    beside = (
        r"  three: computed from two \(pattern-down\); estimated [\d,]+, [\d,]+ by itself; measured [\d,]+ candidates, "
    )
    assert [line for line in lines if re.match(beside, line)]
