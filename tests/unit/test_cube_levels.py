"""`Cube.counts` at every level: each cell is what its own query gives, and no event is counted for it again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import chain
from random import Random
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.cube.levels import levels_queries
from eventcube.engine import levels
from eventcube.errors import EventCubeError, EventCubeWarning
from eventcube.language.parse import parse

STOCKS = {"Stock": {"Computer": ["INTC", "MSFT"], "Finance": ["QQQ"], "IPIX": []}}
SIZE = 400
TYPES = ["Stock", "Computer", "INTC", "MSFT", "Finance", "QQQ", "IPIX"]
RNG = Random(5)
TRADES = pa.table(
    {
        "ts": pa.array(sorted(RNG.choices(range(SIZE), k=SIZE)), pa.timestamp("us")),
        "type": RNG.choices(TYPES, k=SIZE),
        "x": pa.array(RNG.choices([None, -3, 0, 1, 2, 9], k=SIZE), pa.int64()),
        "price": pa.array(RNG.choices([None, math.nan, 0.1, 0.25, -7.5, 1e9], k=SIZE), pa.float64()),
        "k": pa.array(RNG.choices([1, 2, None], k=SIZE), pa.int64()),
    }
)
AGG = (
    "AGG COUNT(*) AS n, COUNT(a.x) AS c, SUM(a.x) AS s, SUM(b.price) AS f, MIN(a.price) AS low, MAX(b.x) AS high, "
    "AVG(a.x) AS mean, AVG(b.ts - a.ts) AS delay, COUNT(DISTINCT b.x) AS different"
)
QUERIES = {
    "plain": "SEQ(Stock a, Stock b) WITHIN 9 us",
    "narrow": "SEQ(Computer a, Finance b) WITHIN 40 us",
    "negated": "SEQ(Stock a, !Computer n, Finance b) WITHIN 20 us",
    "three": "SEQ(Computer a, Finance m, Computer b) WITHIN 15 us",
    "keyed": "SEQ(Stock a, Computer b) WHERE a.k = b.k WITHIN 9 us",
    "partitioned": "SEQ(Computer a, !QQQ n, Stock b) PARTITION BY k WITHIN 6 events",
    "any order": "AND(Computer a, Finance b) WITHIN 9 us",
    "looks ahead": "SEQ(Computer a, Stock b, !Finance n) WITHIN 9 us",
    "compared": "SEQ(Stock a, Stock b) WHERE a.x < b.x WITHIN 5 us",
}


def rows_of(table: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def assert_alike(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """The same values; floats to nine digits, as sums are added up in another order."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, float):
            assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-9), name
        else:
            assert found[name] == value, name


def test_a_row_for_each_combination_of_types_in_the_order_of_the_hierarchy() -> None:
    trades = pa.table({"ts": range(5), "type": ["INTC", "Computer", "MSFT", "QQQ", "QQQ"]})
    cube = ec.Cube("PATTERN SEQ(Computer c, QQQ q) WITHIN 1 hour", concepts=STOCKS, type="type")
    assert rows_of(cube.counts(trades, levels=True)) == [
        {"query": "q1", "c": type_, "c_level": level, "q": "QQQ", "q_level": 3, "matches": matches}
        for type_, level, matches in [("Computer", 2, 6), ("Computer", 3, 2), ("INTC", 3, 2), ("MSFT", 3, 2)]
    ]


@pytest.mark.parametrize("aggregates", ["auto", "enumerate"])
@pytest.mark.parametrize("name", QUERIES)
def test_each_cell_is_what_its_own_query_gives(name: str, aggregates: str) -> None:
    pattern = QUERIES[name]
    if "AND" in pattern:
        pattern = pattern.replace("Stock", "Finance")
    cube = ec.Cube({"q": f"PATTERN {pattern} {AGG}"}, concepts=STOCKS, type="type", order_by="x")
    cells = rows_of(cube.counts(TRADES, levels=True, aggregates=aggregates))
    levels_of = {"Stock": 1, "Computer": 2, "Finance": 2, "IPIX": 2, "INTC": 3, "MSFT": 3, "QQQ": 3}
    variables = [column.removesuffix("_level") for column in cells[0] if column.endswith("_level")]
    checked = 0
    for cell in cells:
        if all(cell[f"{v}_level"] == levels_of[cell[v]] for v in variables):
            text = f"PATTERN {pattern} {AGG}"
            for variable in variables:
                top = pattern.split(f" {variable},")[0].split(f" {variable})")[0].split("(")[-1].split(" ")[-1]
                text = text.replace(f"{top} {variable}", f"{cell[variable]} {variable}")
            (alone,) = rows_of(
                ec.match(TRADES, text, concepts=STOCKS, type="type", order_by="x", aggregates=aggregates)
            )
            labels = {key: value for key, value in cell.items() if key not in alone}
            assert_alike(cell, {**labels, **alone})
            checked += 1
    assert checked > 5
    assert len(cells) > checked, "and cells of just a type that has others below it"


def test_cells_are_drill_downs_of_the_cube() -> None:
    cube = ec.Cube({"q": "PATTERN SEQ(Computer a, !IPIX n, Finance b) WITHIN 20 us"}, concepts=STOCKS, type="type")
    cells = {
        (row["a"], row["a_level"], row["b"]): row["matches"]
        for row in reversed(rows_of(cube.counts(TRADES, levels="q")))
        if (row["b"], row["b_level"]) != ("Finance", 3)
    }
    for type_ in ("INTC", "MSFT"):
        cube.concept_drill_down("q", [("Computer", type_, 1), ("Finance", "QQQ", 3)], name=type_)
    counts = {row["query"]: row["matches"] for row in rows_of(cube.counts(TRADES))}
    assert counts == {"q": cells["Computer", 2, "Finance"], **{t: cells[t, 3, "QQQ"] for t in ("INTC", "MSFT")}}
    parts = cells["INTC", 3, "Finance"] + cells["MSFT", 3, "Finance"] + cells["Computer", 3, "Finance"]
    assert parts == counts["q"]


def test_coarser_cells_are_not_counted_again() -> None:
    """As many events are counted as for the groups by the finest types, however many levels there are above them."""
    pattern = "SEQ(Top a, Top b, Top c) WITHIN 9 us"
    leaves = ["INTC", "MSFT", "QQQ"]
    trades = TRADES.filter([type_ in leaves for type_ in TRADES.column("type").to_pylist()])
    counted, cells = [], []
    for hierarchy in ({"Top": leaves}, {"Top": {"One": {"Two": {"Three": leaves[:2]}}, "Other": leaves[2:]}}):
        counters = ec.Counts()
        cube = ec.Cube(f"PATTERN {pattern}", concepts=hierarchy, type="type")
        cells.append(len(cube.counts(trades, levels=True, counters=counters)))
        counted.append(counters["events_counted"])
    finest = ec.Counts()
    ec.match(
        trades,
        f"PATTERN {pattern} GROUPBY a, b, c AGG COUNT(*)",
        concepts={"Top": leaves},
        type="type",
        counters=finest,
    )
    assert counted == [finest["events_counted"]] * 2
    assert finest["made"] == 0
    assert cells == [4**3, 8**3]


def test_keys_and_having() -> None:
    query = "PATTERN SEQ(Stock a, Finance b) WITHIN 9 us GROUPBY a.k AS key, b.x AS x AGG COUNT(*) AS n HAVING n > 30"
    cube = ec.Cube({"q": query}, concepts=STOCKS, type="type")
    cells = cube.counts(TRADES, levels=True)
    assert cells.column_names == ["query", "a", "a_level", "b", "b_level", "key", "x", "n"]
    top = [row for row in rows_of(cells) if (row["a"], row["a_level"], row["b_level"]) == ("Stock", 1, 2)]
    alone = rows_of(ec.match(TRADES, query, concepts=STOCKS, type="type"))
    assert {(r["key"], r["x"]): r["n"] for r in top} == {(r["key"], r["x"]): r["n"] for r in alone}
    assert len(top) == len(alone) > 3
    assert None in {row["key"] for row in top}
    assert None in {row["x"] for row in top}
    assert all(row["n"] > 30 for row in rows_of(cells))


def test_groups_by_time_are_whole_cells() -> None:
    """Groups leave as time moves on; their cells have all of them."""
    query = "PATTERN SEQ(Computer a, Finance b) WITHIN 80 ms GROUPBY b.ts EVERY 1 second AS second AGG COUNT(*) AS n"
    trades = TRADES.set_column(0, "ts", pa.array(range(0, 7 * SIZE, 7), pa.timestamp("ms")))
    runtime = ec.Runtime(levels_queries({"q": parse(query)}), concepts=STOCKS, type="type", separate=True)
    pushed = [list(runtime.push(trades.slice(at, 50))) for at in range(0, SIZE, 50)]
    assert sum(map(bool, pushed)) == 2, "before the end"
    results = [*chain.from_iterable(pushed), *runtime.finish()]
    rows = [{"query": name, **row} for name, batch in results for row in rows_of(batch)]
    whole = rows_of(ec.Cube({"q": query}, concepts=STOCKS, type="type").counts(trades, levels=True))
    assert sorted(rows, key=repr) == sorted(whole, key=repr)
    total = {row["second"]: row["n"] for row in rows if (row["a_level"], row["b_level"]) == (2, 2)}
    assert total == {r["second"]: r["n"] for r in rows_of(ec.match(trades, query, concepts=STOCKS, type="type"))}


def test_an_alternative_that_is_not_taken_has_no_type() -> None:
    trades = pa.table({"ts": range(4), "type": ["INTC", "QQQ", "IPIX", "MSFT"]})
    cube = ec.Cube("PATTERN SEQ(OR(Computer c, Finance f), IPIX i) WITHIN 9 us", concepts=STOCKS, type="type")
    found = [
        (row["c"], row["c_level"], row["f"], row["f_level"], row["matches"])
        for row in rows_of(cube.counts(trades, levels=True))
    ]
    assert found == [
        ("Computer", 2, None, None, 1),
        ("INTC", 3, None, None, 1),
        (None, None, "Finance", 2, 1),
        (None, None, "QQQ", 3, 1),
    ]


def test_an_event_of_any_type_has_no_levels() -> None:
    cube = ec.Cube("PATTERN SEQ(Computer c, ANY b) WITHIN 5 us", concepts=STOCKS, type="type")
    cells = cube.counts(TRADES, levels=True)
    assert cells.column_names == ["query", "c", "c_level", "matches"]
    every = ec.Cube("PATTERN SEQ(ANY a, ANY b) WITHIN 5 us", concepts=STOCKS, type="type")
    assert every.counts(TRADES, levels=True).equals(every.counts(TRADES).cast(every.counts(TRADES, levels=True).schema))


def test_types_outside_of_the_hierarchy_are_roots() -> None:
    trades = pa.table({"ts": range(2), "type": ["Bond", "QQQ"]})
    cube = ec.Cube("PATTERN SEQ(Bond b, QQQ q) WITHIN 5 us", concepts=STOCKS, type="type", advise=False)
    (row,) = rows_of(cube.counts(trades, levels=True))
    assert (row["b"], row["b_level"], row["q"], row["q_level"], row["matches"]) == ("Bond", 1, "QQQ", 3, 1)


def test_sums_that_do_not_fit_64_bits() -> None:
    """A cell is null where its sum does not fit, whatever its parts; one whose parts cancel out is right."""
    large = 2**62
    trades = pa.table(
        {
            "ts": range(7),
            "type": ["INTC"] * 2 + ["MSFT"] * 2 + ["QQQ"] * 3,
            "x": [large, large, -large, -large, large, large, 1],
        }
    )
    cube = ec.Cube("PATTERN Stock a AGG SUM(a.x) AS s, AVG(a.x) AS mean", concepts=STOCKS, type="type")
    with pytest.warns(EventCubeWarning, match="EC526") as told:
        cells = rows_of(cube.counts(trades, levels=True))
    assert {(row["a"], row["s"]) for row in cells} == {
        ("Stock", None),
        ("Computer", 0),
        ("INTC", None),
        ("MSFT", -(2**63)),
        ("Finance", None),
        ("QQQ", None),
    }
    assert {row["a"]: row["mean"] for row in cells}["Computer"] == 0.0
    assert {row["a"]: row["mean"] for row in cells}["INTC"] == float(large)
    assert len([w for w in told if "EC526" in str(w.message)]) == 1


def test_counts_that_do_not_fit_64_bits() -> None:
    many = pa.table({"ts": range(3000), "type": ["INTC", "QQQ", "QQQ"] * 1000})
    variables = "abcdefghij"
    stocks = ", ".join(f"Computer {v}" for v in variables)
    cube = ec.Cube(f"PATTERN SEQ({stocks}, QQQ z) WITHIN 1 hour", concepts={"Computer": ["INTC"]}, type="type")
    with pytest.warns(EventCubeWarning, match="EC526"):
        cells = rows_of(cube.counts(many, levels=True))
    assert len(cells) == 2 ** len(variables)
    assert {row["matches"] for row in cells} == {None}


def test_values_that_are_null_or_nan() -> None:
    trades = pa.table(
        {"ts": range(4), "type": ["INTC", "MSFT", "MSFT", "QQQ"], "y": [None, math.nan, 2.5, None]},
        schema=pa.schema({"ts": pa.int64(), "type": pa.string(), "y": pa.float64()}),
    )
    cube = ec.Cube(
        "PATTERN Stock a "
        "AGG COUNT(a.y) AS c, SUM(a.y) AS s, MIN(a.y) AS low, AVG(a.y) AS mean, COUNT(DISTINCT a.y) AS d",
        concepts=STOCKS,
        type="type",
    )
    found = {
        row["a"]: (row["c"], row["s"], row["low"], row["mean"], row["d"])
        for row in rows_of(cube.counts(trades, levels=True))
    }
    none, one = (0, None, None, None, 0), (1, 2.5, 2.5, 2.5, 1)
    assert found == {"Stock": one, "Computer": one, "INTC": none, "MSFT": one, "Finance": none, "QQQ": none}


def test_several_queries_are_rows_of_one_table() -> None:
    cube = ec.Cube(
        {
            "wide": "PATTERN SEQ(Stock a, Finance b) WITHIN 9 us",
            "few": "PATTERN SEQ(Computer a, Finance c) WITHIN 9 us LIMIT 5",
            "own": "PATTERN Computer a GROUPBY a.k AS k AGG MAX(a.x) AS top",
        },
        concepts=STOCKS,
        type="type",
    )
    every = cube.counts(TRADES, levels=True)
    assert every.column_names == ["query", "a", "a_level", "b", "b_level", "c", "c_level", "matches", "k", "top"]
    assert list(dict.fromkeys(every["query"].to_pylist())) == ["wide", "few", "own"]
    for name in cube:
        alone = cube.counts(TRADES, levels=name)
        rows = [{c: row[c] for c in alone.column_names} for row in rows_of(every) if row["query"] == name]
        assert rows == rows_of(alone) != []
        others = set(every.column_names) - set(alone.column_names)
        assert all(row[c] is None for row in rows_of(every) if row["query"] == name for c in others)
    assert max(row["matches"] for row in rows_of(cube.counts(TRADES, levels=["few"]))) == 5
    limited = cube.counts(TRADES, levels=["wide", "few"], limit=3)
    assert max(limited["matches"].to_pylist()) == 3


@pytest.mark.parametrize(
    ("make", "kind"),
    [(lambda t: t, pa.Table), (lambda t: t.to_pandas(), pd.DataFrame), (pl.from_arrow, pl.DataFrame)],
    ids=["Arrow", "pandas", "polars"],
)
def test_every_kind_of_frame(make: Callable[[pa.Table], Any], kind: type) -> None:
    cube = ec.Cube({"q": f"PATTERN {QUERIES['narrow']}"}, concepts=STOCKS, type="type")
    cells = cube.counts(make(TRADES), levels=True)
    assert isinstance(cells, kind)
    assert (
        list(cells["matches"].to_pylist() if kind is pa.Table else cells["matches"])
        == cube.counts(TRADES, levels=True)["matches"].to_pylist()
    )


def test_without_a_match_there_are_no_rows() -> None:
    cube = ec.Cube({"q": f"PATTERN {QUERIES['narrow']}"}, concepts=STOCKS, type="type")
    cells = cube.counts(TRADES.slice(0, 0), levels=True)
    assert (cells.num_rows, cells.column_names) == (0, ["query", "a", "a_level", "b", "b_level", "matches"])


def test_cells_are_rolled_up_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    cube = ec.Cube({"q": f"PATTERN {QUERIES['three']} {AGG}"}, concepts=STOCKS, type="type")
    whole = cube.counts(TRADES, levels=True)
    monkeypatch.setattr(levels, "_PIECE_ROWS", 2)
    for found, expected in zip(rows_of(cube.counts(TRADES, levels=True)), rows_of(whole), strict=True):
        assert_alike(found, expected)


def test_too_many_cells_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cube = ec.Cube({"q": f"PATTERN {QUERIES['plain']}"}, concepts=STOCKS, type="type")
    cells = cube.counts(TRADES, levels=True).num_rows
    monkeypatch.setattr(levels, "MOST_CELLS", cells)
    assert cube.counts(TRADES, levels=True).num_rows == cells
    for piece in (2, 1 << 16):
        monkeypatch.setattr(levels, "_PIECE_ROWS", piece)
        for most in (3, cells - 1):
            monkeypatch.setattr(levels, "MOST_CELLS", most)
            with pytest.raises(ec.OptionError, match=f"EC479.*more than {most:,} "):
                cube.counts(TRADES, levels=True)


def test_matches_are_kept_for_finer_queries() -> None:
    cube = ec.Cube({"q": f"PATTERN {QUERIES['narrow']}"}, concepts=STOCKS, type="type")
    assert cube.counts(TRADES, levels=True, keep=100_000).equals(cube.counts(TRADES, levels=True))
    cube.concept_drill_down("q", ("Computer", "INTC", 1), name="fine")
    answer = cube.answer("fine")
    (row,) = (r for r in rows_of(cube.counts(TRADES, levels="q")) if (r["a"], r["b_level"]) == ("INTC", 2))
    assert answer.matches.num_rows == row["matches"]


def test_the_plan_is_explained() -> None:
    cube = ec.Cube({"q": f"PATTERN {QUERIES['three']}"}, concepts=STOCKS, type="type")
    plan = cube.explain(TRADES, levels=True)
    assert "a AT EVERY LEVEL" in plan
    analyzed = cube.explain(TRADES, levels="q", analyze=True)
    assert "events_counted" in analyzed


def told(call: Callable[[], object]) -> str:
    with pytest.raises(EventCubeError) as caught:
        call()
    return str(caught.value)


def test_bad_input_is_told_in_one_message_each() -> None:
    narrow = {"q": f"PATTERN {QUERIES['narrow']}"}
    cube = ec.Cube(narrow, concepts=STOCKS, type="type")

    def counts(query: str, **settings: Any) -> Callable[[], object]:
        return lambda: ec.Cube({"q": f"PATTERN {query}"}, concepts=STOCKS, type="type").counts(
            TRADES, levels=True, **settings
        )

    cases: list[tuple[Callable[[], object], str, str]] = [
        (lambda: cube.counts(TRADES, levels=3), "EC414", "levels cannot be 3"),  # type: ignore[arg-type]
        (lambda: cube.counts(TRADES, levels=[]), "EC414", "levels cannot be []"),
        (lambda: cube.counts(TRADES, levels="r"), "EC467", "the cube has no query 'r'"),
        (lambda: ec.Cube(narrow, type="type").counts(TRADES, levels=True), "EC458", "there is no hierarchy"),
        (lambda: ec.Cube(narrow, concepts=STOCKS).counts(TRADES, levels=True), "EC206", "no type to roll up"),
        (counts("SEQ(Computer a, QQQ b) AGG COUNT(*) PER b"), "EC478", "query 'q' has rows PER b"),
        (counts("SEQ(Computer a, QQQ b) GROUPBY a AGG COUNT(*)"), "EC476", "two columns 'a'"),
        (counts("SEQ(Computer a, QQQ b) AGG COUNT(*) AS a_level"), "EC476", "two columns 'a_level'"),
        (counts("SEQ(Computer query, QQQ b)"), "EC476", "two columns 'query'"),
        (counts("SEQ(Computer a, QQQ b) AGG COUNT(*)", limit=5), "EC416", "limit picks matches"),
    ]
    for call, code, message in cases:
        assert f"{code}]: " in (text := told(call)), text
        assert message in text
    both = ec.Cube(
        {"one": "PATTERN Stock a AGG MAX(a.x) AS top", "two": "PATTERN Stock a AGG MAX(a.price) AS top"},
        concepts=STOCKS,
        type="type",
    )
    assert "EC477]: column 'top' would be int64 and, in query 'two', double" in told(
        lambda: both.counts(TRADES, levels=True)
    )
    assert both.counts(TRADES, levels="two").num_rows == both.counts(TRADES, levels="one").num_rows
