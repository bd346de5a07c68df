"""GROUPBY and AGG: every function over every kind of value, groups of every kind, and nothing at all."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import eventcube as ec
from eventcube.engine import aggregate
from eventcube.errors import EventCubeWarning

EVENTS = pa.table(
    {
        "ts": pa.array([1, 2, 3, 4, 5], pa.timestamp("s")),
        "type": pa.array(["A", "B", "A", "A", "B"]).dictionary_encode(),
        "i": pa.array([1, 2, None, 4, -7], pa.int32()),
        "u": pa.array([2**64 - 1, 1, None, 0, 3], pa.uint64()),
        "f": [0.5, float("nan"), None, 2.5, -0.0],
        "h": pa.array([0.5, None, 1.0, 2.5, -0.0], pa.float16()),
        "m": pa.array([Decimal("1.50"), Decimal("2.25"), None, Decimal("-1.00"), Decimal("0.00")]),
        "s": ["b", "a", None, "é", "a"],
        "c": pa.array(["b", "a", None, "é", "a"]).dictionary_encode(),
        "b": [True, None, False, True, True],
        "d": [date(2024, 1, 2), None, date(1969, 12, 31), date(2024, 1, 1), date(2024, 1, 1)],
        "l": pa.array([60, None, 30, 90, 0], pa.duration("s")),
        "w": pa.array([1000, None, 3000, 4000, 5000], pa.timestamp("ns", "UTC")),
        "z": pa.nulls(5),
    }
)


def rows(query: str, **settings: Any) -> list[tuple[Any, ...]]:
    result = ec.match(EVENTS, f"PATTERN {query}", **({"type": "type"} | settings))
    return [tuple(r.values()) for r in result.to_pylist()]


@pytest.mark.parametrize(
    ("aggregates", "expected"),
    [
        pytest.param("COUNT(*), COUNT AS n", (5, 5), id="matches"),
        pytest.param("COUNT(e.i), COUNT(e.f), COUNT(e.s), COUNT(e.z)", (4, 3, 4, 0), id="values that are not null"),
        pytest.param("SUM(e.i), AVG(e.i), MIN(e.i), MAX(e.i)", (0, 0.0, -7, 4), id="whole numbers"),
        pytest.param("SUM(e.i * e.i), AVG(e.i + 1)", (70, 1.0), id="computed whole numbers"),
        pytest.param("SUM(e.f), AVG(e.f), MIN(e.f), MAX(e.f)", (3.0, 1.0, 0.0, 2.5), id="numbers, NaN is null"),
        pytest.param("SUM(e.h), AVG(e.h), MIN(e.h), MAX(e.h)", (4.0, 1.0, 0.0, 2.5), id="small floats"),
        pytest.param("SUM(e.u), MIN(e.u), MAX(e.u)", (float(2**64 + 3), 0, 2**64 - 1), id="large whole numbers"),
        pytest.param(
            "SUM(e.m), AVG(e.m), MIN(e.m), MAX(e.m)",
            (2.75, 0.6875, Decimal("-1.00"), Decimal("2.25")),
            id="decimals",
        ),
        pytest.param("MIN(e.s), MAX(e.s), MIN(e.c), MAX(e.c)", ("a", "é", "a", "é"), id="text"),
        pytest.param("MIN(e.b), MAX(e.b)", (False, True), id="truth"),
        pytest.param("MIN(e.d), MAX(e.d)", (date(1969, 12, 31), date(2024, 1, 2)), id="dates"),
        pytest.param(
            "MIN(e.ts), MAX(e.ts)", (datetime(1970, 1, 1, 0, 0, 1), datetime(1970, 1, 1, 0, 0, 5)), id="times"
        ),
        pytest.param(
            "SUM(e.l), AVG(e.l), MIN(e.l), MAX(e.l)",
            (timedelta(minutes=3), timedelta(seconds=45), timedelta(0), timedelta(seconds=90)),
            id="durations",
        ),
        pytest.param(
            "SUM(e.l / 2), MAX(e.l * 2)", (timedelta(seconds=90), timedelta(minutes=3)), id="computed lengths"
        ),
        pytest.param("SUM(e.z), AVG(e.z), MIN(e.z), MAX(e.z)", (None,) * 4, id="a column of nulls"),
        pytest.param("SUM(2), MAX('x'), COUNT(NULL)", (10, "x", 0), id="constants"),
    ],
)
def test_functions(aggregates: str, expected: tuple[Any, ...]) -> None:
    assert rows(f"e AGG {aggregates}", type=None) == [expected]


@pytest.mark.parametrize("column", ["ts", "i", "u", "f", "h", "m", "s", "c", "b", "d", "l", "w", "z"])
def test_an_attribute_keeps_its_type_in_groups_and_extremes(column: str) -> None:
    own = EVENTS.schema.field(column).type
    plain = own.value_type if pa.types.is_dictionary(own) else own
    result = ec.match(EVENTS, f"PATTERN e GROUPBY e.{column} AS g AGG MIN(e.{column}) AS low, COUNT(*) AS n")
    assert result.schema.field("g").type == result.schema.field("low").type == plain
    groups = dict(zip(result.column("g").to_pylist(), result.column("n").to_pylist(), strict=True))
    values = [None if v != v else v for v in EVENTS.column(column).to_pylist()]
    assert groups == {v: values.count(v) for v in set(values)}, "null is a group, NaN is null"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("e GROUPBY e AGG COUNT(*)", {("A", 3), ("B", 2)}, id="by the event's own type"),
        pytest.param(
            "SEQ(e, g) WITHIN 9 s GROUPBY e, g AGG COUNT(*)",
            {("A", "A", 3), ("A", "B", 4), ("B", "A", 2), ("B", "B", 1)},
            id="by two types",
        ),
        pytest.param("e GROUPBY e.i % 2 AGG COUNT(*)", {(1, 1), (0, 2), (None, 1), (-1, 1)}, id="by a value"),
        pytest.param(
            "e GROUPBY e.s, e.b AGG COUNT(*)",
            {("b", True, 1), ("a", None, 1), (None, False, 1)} | {("é", True, 1), ("a", True, 1)},
            id="by two columns, nulls in both",
        ),
        pytest.param("e GROUPBY NULL AGG COUNT(*)", {(None, 5)}, id="by nothing"),
    ],
)
def test_groups(query: str, expected: set[tuple[Any, ...]]) -> None:
    concepts = {"Any": ["A", "B"]}
    typed = (
        query.replace("e,", "Any e,", 1).replace("g)", "Any g)") if "SEQ" in query else query.replace("e ", "Any e ", 1)
    )
    found = rows(typed, concepts=concepts)
    assert (set(found), len(found)) == (expected, len(expected))


def test_an_alternative_not_taken_is_null() -> None:
    found = rows("OR(A a, B b) WITHIN 1 s GROUPBY a, b.s AGG COUNT(*), SUM(b.i), MAX(a.i + 1)")
    assert set(found) == {("A", None, 3, None, 5), (None, "a", 2, -5, None)}


def test_means_of_large_whole_numbers() -> None:
    events = pa.table({"ts": range(20), "x": [2**60 + i for i in range(4)] * 5})
    found = ec.match(events, "PATTERN e WHERE e.ts < 4 AGG AVG(e.x) AS m, SUM(e.x) AS s")
    assert found.to_pylist() == [{"m": float(2**60), "s": 2**62 + 6}]


def test_without_matches_there_is_one_row_or_none() -> None:
    with pytest.warns(ec.EventCubeWarning, match="EC501"):
        assert rows("C c AGG COUNT(*), SUM(c.i), AVG(c.i), MIN(c.s), COUNT(c.i)") == [(0, None, None, None, 0)]
    with pytest.warns(ec.EventCubeWarning, match="EC501"):
        assert rows("C c GROUPBY c AGG COUNT(*)") == []


def test_columns_are_named_as_they_are_written() -> None:
    result = ec.match(EVENTS, "PATTERN A a GROUPBY a, a.s AS text AGG COUNT, SUM(a.i) AS total, MAX(a.i)", type="type")
    assert result.schema.names == ["a", "text", "COUNT(*)", "total", "MAX(a.i)"]


def test_groups_are_folded_before_they_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregate, "_FOLD_ROWS", 8)
    events = pa.table({"ts": range(1000), "x": [i % 7 for i in range(1000)]})
    runtime = ec.Runtime("PATTERN SEQ(a, b) WITHIN 2 us GROUPBY a.x AGG COUNT(*) AS n, AVG(b.x) AS m, MAX(b.ts) AS t")
    for start in range(0, 1000, 10):
        assert list(runtime.push(events.slice(start, 10))) == []
    (batch,) = runtime.finish()
    expected = {x: [(j % 7, j) for i in range(x, 1000, 7) for j in (i + 1, i + 2) if j < 1000] for x in range(7)}
    assert {tuple(r.values()) for r in batch.to_pylist()} == {
        (x, len(found), sum(v for v, _ in found) / len(found), max(t for _, t in found))
        for x, found in expected.items()
    }


@pytest.mark.filterwarnings("ignore:.*EC526")
@pytest.mark.parametrize(
    ("column", "aggregates", "expected"),
    [
        pytest.param(
            pa.array([2**62, 2**62, 2**62], pa.int64()),
            "SUM(e.n), AVG(e.n)",
            (None, float(2**62)),
            id="a sum beyond 64 bits is null, the mean is not",
        ),
        pytest.param(
            pa.array([2**63 - 1, 1, -1], pa.int64()), "SUM(e.n)", (2**63 - 1,), id="a sum may go beyond and come back"
        ),
        pytest.param(pa.array([-(2**63), 0, 0], pa.int64()), "SUM(e.n)", (-(2**63),), id="the least sum"),
        pytest.param(pa.array([2**62, 2**62, 0], pa.duration("us")), "SUM(e.n)", (None,), id="too long a time"),
        pytest.param(
            pa.array([2**62, 5, None], pa.duration("s")),
            "SUM(e.n), AVG(e.n)",
            (timedelta(seconds=5),) * 2,
            id="a length that microseconds cannot hold is null",
        ),
        pytest.param(
            pa.array([float("inf"), float("-inf"), 1.0]), "SUM(e.n), AVG(e.n)", (None, None), id="infinities that meet"
        ),
        *(
            pytest.param(
                pa.array([Decimal("1.5"), Decimal("-2.5"), None], type_),
                "SUM(e.n), MIN(e.n), MAX(e.n)",
                (-1.0, Decimal("-2.5"), Decimal("1.5")),
                id=str(type_),
            )
            for type_ in (pa.decimal32(5, 1), pa.decimal64(12, 1), pa.decimal128(38, 1), pa.decimal256(60, 1))
        ),
        pytest.param(
            pa.RunEndEncodedArray.from_arrays([2, 3], [7, 8]), "SUM(e.n), MIN(e.n)", (22, 7), id="run-end-encoded"
        ),
    ],
)
def test_the_ends_of_a_type(column: pa.Array, aggregates: str, expected: tuple[Any, ...]) -> None:
    events = pa.table({"ts": [1, 2, 3], "n": column})
    assert tuple(ec.match(events, f"PATTERN e AGG {aggregates}").to_pylist()[0].values()) == expected


def test_groups_of_an_extension_type() -> None:
    events = pa.table({"ts": [1, 2, 3], "n": pa.array([b"a" * 16, b"b" * 16, b"a" * 16], pa.uuid())})
    found = ec.match(events, "PATTERN e GROUPBY e.n AS n AGG COUNT(*) AS c")
    assert found.schema.field("n").type == pa.uuid()
    assert sorted(found.column("c").to_pylist()) == [1, 2]


def test_different_values_are_counted_once_as_equality_has_them() -> None:
    table = pa.table(
        {
            "ts": range(6),
            "k": [1, 1, 1, 2, 2, 2],
            "y": [0.0, -0.0, float("nan"), None, 1.0, 1.0],
            "n": pa.array([5, 6, 1000, None, 1, 2], pa.timestamp("ns")),
            "d": pa.array([1, 1, 2, 3, 3, None], pa.decimal128(30, 2)),
            "s": ["a", "A", "a", None, None, None],
        }
    )
    query = (
        "PATTERN Event a GROUPBY a.k AS k "
        "AGG COUNT(DISTINCT a.y) AS y, COUNT(DISTINCT a.n) AS n, COUNT(DISTINCT a.d) AS d, "
        "COUNT(DISTINCT a.s) AS s, COUNT(DISTINCT LOWER(a.s)) AS l, COUNT(*) AS c, SUM(a.y) AS t"
    )
    found = sorted(ec.match(table, query).to_pylist(), key=str)
    assert found == [
        {"k": 1, "y": 1, "n": 2, "d": 2, "s": 2, "l": 1, "c": 3, "t": 0.0},
        {"k": 2, "y": 1, "n": 1, "d": 1, "s": 0, "l": 0, "c": 3, "t": 2.0},
    ]


def test_different_values_are_kept_once_however_many_matches_there_are() -> None:
    table = pa.table({"ts": range(300), "x": [i % 3 for i in range(300)]})
    runtime = ec.Runtime("PATTERN SEQ(A a, B b) WITHIN 1 s AGG COUNT(DISTINCT a.x) AS n", schema=table.schema)
    assert list(runtime.push(table)) == []
    assert runtime.workload is not None
    partial = runtime.workload.engine.queries["q1"].sink.changes(added=False).tables["groups"]
    assert sorted(partial.column("d0").to_pylist()) == [0, 1, 2]
    assert [b.to_pylist() for b in runtime.finish()] == [[{"n": 3}]]


@pytest.mark.parametrize(
    ("having", "expected"),
    [
        ("n > 1", [1, 2]),
        ("COUNT > 2", [2]),
        ("COUNT(*) > 1 AND k = 2", [2]),
        ("a.k = 1 OR SUM(a.x) > 100", [1]),
        ("MAX(a.x) IS NULL", [None]),
        ("MAX(a.x) > 0", [1, 2]),
        ("NOT (MAX(a.x) > 5)", [1]),
        ("AVG(a.x) * 2 BETWEEN 2 AND 10 AND COUNT(DISTINCT a.x) = n", [1]),
        ("MIN(a.s) < 'b' AND UPPER(MAX(a.s)) LIKE 'B%'", [1]),
        ("LENGTH(COALESCE(MIN(a.s), '-')) = 1 AND MIN(a.ts) < '2020-01-01'", [1, 2, None]),
        ("COUNT(DISTINCT HOUR(a.ts)) = 1 AND MAX(MINUTE(a.ts)) = 0 AND k = 1", [1]),
        ("COUNT(*) < 0", []),
    ],
)
def test_having_keeps_groups(having: str, expected: list[int | None]) -> None:
    table = pa.table(
        {
            "ts": pa.array(range(6), pa.timestamp("us")),
            "k": [1, 1, 2, 2, 2, None],
            "x": [1, 2, 3, 9, 9, None],
            "s": ["a", "b", "c", "c", "c", None],
        }
    )
    found = ec.match(table, f"PATTERN A a GROUPBY a.k AS k AGG COUNT(*) AS n, COUNT(a.x) AS m HAVING {having}")
    assert found.schema.names == ["k", "n", "m"]
    assert sorted(found.column("k").to_pylist(), key=lambda k: k or 9) == expected


def test_having_without_groups_gives_one_row_or_none() -> None:
    table = pa.table({"ts": [1, 2], "x": [1, 2]})
    assert ec.match(table, "PATTERN A a AGG SUM(a.x) AS t HAVING t = 3 AND COUNT(*) = 2").to_pylist() == [{"t": 3}]
    assert ec.match(table, "PATTERN A a AGG SUM(a.x) AS t HAVING t > 3").num_rows == 0
    nothing = "PATTERN A a WHERE a.x > 9 AGG SUM(a.x) AS t HAVING"
    assert ec.match(table, f"{nothing} COUNT(*) = 0 AND t IS NULL").to_pylist() == [{"t": None}]
    assert ec.match(table, f"{nothing} COUNT(DISTINCT a.x) > 0").num_rows == 0


def test_long_numbers_of_groups_are_compared_exactly() -> None:
    table = pa.table({"ts": [1, 2], "u": pa.array([2**63 + 1, 2**63 + 2], pa.uint64())})
    query = "PATTERN A a GROUPBY a.u AS u AGG MAX(a.u) AS m HAVING m = u AND MIN(a.u) < m + 0 OR u != m"
    assert ec.match(table, query).num_rows == 0
    assert ec.match(table, "PATTERN A a AGG MIN(a.u) AS l, MAX(a.u) AS m HAVING l != m").num_rows == 1


def test_groups_by_a_level_of_the_hierarchy() -> None:
    concepts = {"Shop": {"Online": ["Amazon"], "Street": ["Corner"]}, "Bank": ["Piggy"]}
    table = pa.table({"ts": range(6), "type": ["Amazon", "Corner", "Online", "Piggy", "Other", "Shop"]})

    def groups(level: int) -> dict[str, int]:
        query = f"PATTERN ANY a GROUPBY a AT LEVEL {level} AS sort AGG COUNT(*) AS n"
        return {r["sort"]: r["n"] for r in ec.match(table, query, type="type", concepts=concepts).to_pylist()}

    assert groups(1) == {"Shop": 4, "Bank": 1, "Other": 1}
    assert groups(2) == {"Online": 2, "Street": 1, "Piggy": 1, "Other": 1, "Shop": 1}
    assert groups(3) == groups(9) == dict.fromkeys(table.column("type").to_pylist(), 1)
    taken = "PATTERN OR(Bank a, Shop b) WITHIN 1 s RETURN a AT LEVEL 1 AS a, b AT LEVEL 1, b"
    found = ec.match(table, taken, type="type", concepts=concepts)
    assert found.column("a").to_pylist().count("Bank") == 1
    assert found.column("b AT LEVEL 1").to_pylist().count("Shop") == 4


def test_times_are_microseconds_in_groups_and_aggregates_as_in_conditions() -> None:
    near = pa.table({"ts": [1, 2, 3], "t": pa.array([5, 6, 1007], pa.timestamp("ns"))})
    grouped = ec.match(near, "PATTERN a WITHIN 1 us GROUPBY a.t AS t AGG COUNT(*) AS n")
    assert sorted(grouped.column("n").to_pylist()) == [1, 2]
    assert ec.match(near, "PATTERN SEQ(a, b) WHERE a.t = b.t WITHIN 9 us").num_rows == 1
    largest = ec.match(near, "PATTERN a WITHIN 1 us AGG MAX(a.t) AS l").column("l")
    assert largest.cast(pa.int64()).to_pylist() == [1000]


@pytest.mark.parametrize("type_", [pa.timestamp("s"), pa.duration("s"), pa.date32()])
def test_times_too_far_for_microseconds_are_null_in_groups_and_aggregates(type_: pa.DataType) -> None:
    far = 2**50 if type_ != pa.date32() else 2**30
    whole = pa.int32() if type_ == pa.date32() else pa.int64()
    events = pa.table({"ts": [1, 2, 3, 4], "t": pa.array([1, far, -far, None], whole).cast(type_)})
    aggregates = "COUNT(a.t) AS n, MAX(a.t) AS l, MIN(a.t) AS s"
    counted = ec.match(events, f"PATTERN a WITHIN 1 us AGG {aggregates}")
    assert [c.cast(whole).to_pylist() if c.type == type_ else c.to_pylist() for c in counted.columns] == [[1], [1], [1]]
    assert ec.match(events, "PATTERN a WITHIN 1 us GROUPBY a.t AS t AGG COUNT(*) AS n").num_rows == 2
    assert ec.match(events, "PATTERN a WHERE a.t IS NULL WITHIN 1 us").num_rows == 3
    assert ec.match(events, "PATTERN SEQ(a, b) WITHIN 2 events", partition_by="t").num_rows == 2


def test_the_earliest_nanoseconds_are_grouped_within_their_range() -> None:
    events = pa.table({"ts": [1], "t": pa.array([-(2**63 - 1)], pa.timestamp("ns"))})
    found = ec.match(events, "PATTERN a WITHIN 1 us GROUPBY a.t AS t AGG COUNT(*) AS n").column("t")
    assert found.cast(pa.int64()).to_pylist() == [-9223372036854775000]


def test_a_sum_beyond_64_bits_is_warned_of() -> None:
    table = pa.table({"ts": [1, 2], "n": pa.array([2**62, 2**62])})
    with pytest.warns(EventCubeWarning, match="SUM.e.n. does not fit 64 bits in some group"):
        (row,) = ec.match(table, "PATTERN ANY e WITHIN 1 s AGG SUM(e.n), AVG(e.n)").to_pylist()
    assert row == {"SUM(e.n)": None, "AVG(e.n)": float(2**62)}
