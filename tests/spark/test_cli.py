"""The command line on Spark, in the session of these tests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from eventcube.cli import main
from eventcube.cli.on_spark import Spark

EVENTS = """\
ts,kind,user,amount
2026-01-01 09:00:00,Login,ann,1.5
2026-01-01 09:00:10,Login,bob,2.5
2026-01-01 09:00:20,Logout,bob,3.5
2026-01-01 09:00:30,Login,ann,4.5
2026-01-01 09:00:40,Login,bob,5.5
"""
AGAIN = "PATTERN SEQ(Login a, !(Logout b, b.user = a.user), Login c) WHERE a.user = c.user WITHIN 1 hour"
PAIRS = "PATTERN SEQ(Login a, Login c) WHERE a.user = c.user WITHIN 1 hour RETURN a, c.ts - a.ts AS gap"

Call = Callable[..., Result]


@pytest.fixture
def call(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """`eventcube …` in a folder with `events.csv`, in the session that runs, which it leaves running."""
    (tmp_path / "events.csv").write_text(EVENTS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Spark, "close", Spark._close_log)

    def invoke(*arguments: str) -> Result:
        result = CliRunner().invoke(main, [*arguments, "--master", "local[2]"])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


def test_matches_on_the_screen_and_rows_set_aside(call: Call, tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text(EVENTS + ",Login,cat,1\n2026-01-01 10:00:00,,cat,2\n", encoding="utf-8")
    result = call("run", AGAIN, "events.csv", "--type", "kind", "--set-aside", "aside.csv")
    assert result.exit_code == 0, result.stderr
    assert "user ann" in result.stdout
    assert "bob" not in result.stdout
    assert re.match(r"1 match in 7 events, \d+\.\d s; Spark started in \d+\.\d s\n", result.stderr)
    assert "2 rows skipped (the time is null: 1, the type is null: 1); in aside.csv" in result.stderr
    assert sorted(pa_csv.read_csv(tmp_path / "aside.csv")["amount"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("out", ["m.parquet", "m.csv", "m.jsonl"])
def test_one_file(out: str, call: Call, tmp_path: Path) -> None:
    result = call("run", PAIRS, "events.csv", "--type", "kind", "--out", out, "--json")
    assert json.loads(result.stdout)["matches"] == 2
    path = tmp_path / out
    match path.suffix:
        case ".parquet":
            assert {row["a"]["user"]: row["gap"].total_seconds() for row in pq.read_table(path).to_pylist()} == GAPS
        case ".csv":
            read = pa_csv.read_csv(path)
            assert read.column_names == ["start", "end", "a.ts", "a.kind", "a.user", "a.amount", "gap"]
            assert {row["a.user"]: row["gap"] for row in read.to_pylist()} == GAPS
        case _:
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            assert {row["a"]["user"]: row["gap"] for row in rows} == GAPS


@pytest.mark.parametrize("format_", ["parquet", "csv", "jsonl"])
def test_a_folder(format_: str, call: Call, tmp_path: Path) -> None:
    result = call("run", PAIRS, "events.csv", "--type", "kind", "--out", "found", "--format", format_)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.startswith("2 matches")
    parts = sorted((tmp_path / "found").glob("part-*"))
    match format_:
        case "parquet":
            # Spark writes durations as microseconds.
            assert {row["a"]["user"]: row["gap"] / 1e6 for row in pq.read_table(parts).to_pylist()} == GAPS
        case "csv":
            rows = [row for part in parts for row in pa_csv.read_csv(part).to_pylist()]
            assert {row["a.user"]: row["gap"] for row in rows} == GAPS
        case _:
            lines = [json.loads(line) for part in parts for line in part.read_text().splitlines()]
            assert {row["a"]["user"]: row["gap"] for row in lines} == GAPS


GAPS = {"ann": 30.0, "bob": 30.0}


def test_times_in_nanoseconds_as_pandas_writes_them(call: Call, tmp_path: Path) -> None:
    pd.read_csv(tmp_path / "events.csv", parse_dates=["ts"]).to_parquet(tmp_path / "events.parquet")
    result = call("run", AGAIN, "events.parquet", "--type", "kind")
    assert result.stderr.startswith("1 match in 5 events"), result.stderr


def test_a_line_that_is_not_json_is_set_aside_as_it_is(call: Call, tmp_path: Path) -> None:
    good = [json.dumps({"ts": f"2026-01-01T09:00:0{i}", "kind": kind}) for i, kind in enumerate("AB")]
    (tmp_path / "e.jsonl").write_text("\n".join([good[0], '{"ts": oops', good[1]]))
    query = "PATTERN SEQ(A a, B b) WITHIN 5 s"
    result = call("run", query, "e.jsonl", "--type", "kind", "--set-aside", "aside.jsonl", "--format", "jsonl")
    assert result.exit_code == 0, result.stderr
    assert sorted(json.loads(result.stdout)["a"]) == ["kind", "ts"]
    assert json.loads((tmp_path / "aside.jsonl").read_text())["_corrupt_record"] == '{"ts": oops'


def test_groups_are_shown_in_order(call: Call) -> None:
    query = "PATTERN Login a GROUPBY a.user AS who AGG COUNT(*) AS n, AVG(a.amount) AS mean"
    result = call("run", query, "events.csv", "--type", "kind")
    assert result.exit_code == 0, result.stderr
    assert [line.split()[1] for line in result.stdout.splitlines() if line.startswith("│")] == ["ann", "bob"]
    assert result.stderr.startswith("2 groups ")


def test_a_type_that_no_event_has(call: Call) -> None:
    result = call("run", AGAIN.replace("Logout", "Logot"), "events.csv", "--type", "kind")
    assert result.exit_code == 2
    assert "did you mean 'Logout'? the input has: Login, Logout" in result.stderr


def test_a_type_column_that_was_not_named_is_told_once_by_what_it_holds(call: Call) -> None:
    result = call("run", "PATTERN SEQ(Login a, Logout b) WITHIN 1 hour", "events.csv")
    assert result.stderr.count("EC505") == 1
    assert "hint: column 'kind' holds such types: --type kind\n" in result.stderr


def test_what_spark_cannot_do_is_told_without_its_trace(call: Call, tmp_path: Path) -> None:
    whole = tmp_path / "whole.parquet"
    pd.read_csv(tmp_path / "events.csv", parse_dates=["ts"], dtype={"amount": "float64"}).to_parquet(whole)
    content = bytearray(whole.read_bytes())
    # The footer can be read, what it speaks of cannot.
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    whole.write_bytes(content)
    result = call("run", AGAIN, "whole.parquet", "--type", "kind")
    assert result.exit_code == 2
    assert result.stderr.startswith("error[EC3")
    assert "\tat " not in result.stderr
    assert len(result.stderr.splitlines()) <= 3


def test_the_demo_finds_what_was_planted(call: Call, tmp_path: Path) -> None:
    result = call("demo", "--events", "5000", "--out", "demo")
    assert result.exit_code == 0, result.output
    assert "Every planted violation was found, and nothing else." in result.stdout
    assert pq.read_table(tmp_path / "demo" / "matches").num_rows == 100


WORKLOAD = """\
concepts: {Session: [Login, Logout]}
within: 1 hour
queries:
  any: PATTERN SEQ(Session a, Session c)
  twice: PATTERN SEQ(Login a, Login c)
  again: PATTERN SEQ(Login a, !Logout b, Login c)
settings: {type: kind, partition_by: user}
"""


@pytest.mark.parametrize("source", ["events.csv", "events.jsonl"])
def test_a_cube_finds_and_counts_as_without_spark(source: str, call: Call, tmp_path: Path) -> None:
    _as_json(tmp_path)
    (tmp_path / "w.yaml").write_text(WORKLOAD, encoding="utf-8")
    for more in ((), ("--no-spark",)):
        result = call("cube", "w.yaml", source, "--counts", "--json", *more)
        assert json.loads(result.stdout)["counts"] == {"any": 4, "twice": 2, "again": 1}, result.stderr
        assert json.loads(result.stdout)["events"] == 5
    result = call("cube", "w.yaml", source, "--out", "found", "--limit", "3")
    assert result.stderr.startswith("6 matches of 3 queries in 5 events, "), result.stderr
    names = pq.read_table(tmp_path / "found")["query"].to_pylist()
    assert {name: names.count(name) for name in names} == {"any": 3, "twice": 2, "again": 1}
    # Spark orders the columns of JSON by name.
    shown = call("cube", "w.yaml", source).stdout
    assert "c: ts 2026-01-01 09:00:40, kind Login, user bob" in shown or "c: amount 5.5, kind Login, ts" in shown


TEXT = """\
ts,zoned,day,n,x,yes,kind
2026-01-01 09:00:00,2026-01-01T09:00:00Z,2026-01-01,1,1.5,true,"say ""hi"", you"
2026-01-01 09:00:01.25,2026-01-01T09:00:01+02:00,2026-01-02,,NaN,FALSE,A
"""


def test_text_is_read_as_without_spark(call: Call, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text(TEXT)
    lines = ['{"kind":"A","n":1,"ts":"2026-01-01T09:00:00","z":"2026-01-01T09:00:00Z"}', '{"kind":"B","x":1.5}']
    (tmp_path / "e.jsonl").write_text("\n".join(lines))
    for source in ("e.csv", "e.jsonl"):
        arguments = ("run", "PATTERN a WITHIN 1 hour", source, "--overwrite", "--quiet", "--out")
        assert call(*arguments, "there.parquet").exit_code == 0
        assert call(*arguments, "here.parquet", "--no-spark").exit_code == 0
        there, here = (pq.read_table(tmp_path / f"{name}.parquet").sort_by("start") for name in ("there", "here"))
        assert there.schema.equals(here.schema)
        assert str(there.to_pylist()) == str(here.to_pylist())


@pytest.mark.parametrize("row", ["2026-01-01 09:00:50,Login", "2026-01-01 09:00:50,Login,ann,1,2"])
def test_a_ragged_row_is_refused(row: str, call: Call, tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text(EVENTS + row + "\n")
    for more in ((), ("--no-spark",)):
        result = call("run", AGAIN, "events.csv", "--type", "kind", *more)
        assert result.exit_code == 2
        assert "events.csv as CSV: CSV parse error: Row #7: Expected 4 columns" in result.stderr


def test_a_reader_that_goes_away_ends_it_quietly(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_one(batches: Iterator[pa.RecordBatch], *_: object) -> int:
        next(batches)
        raise BrokenPipeError

    monkeypatch.setattr("eventcube.cli.on_spark.write_batches", read_one)
    result = call("run", PAIRS, "events.csv", "--type", "kind", "--format", "csv")
    assert (result.exit_code, result.stdout, result.stderr) == (141, "", "")


def test_columns_that_differ_only_in_case_are_told(call: Call, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("ts,x,X\n1,2,3\n")
    result = call("run", "PATTERN a WHERE a.x = 2 WITHIN 1 s", "e.csv")
    assert result.exit_code == 2
    assert result.stderr.startswith("error[EC301]: Spark takes 'x' and another column")


def _stages_that_read(spark: SparkSession) -> int:
    """How many stages of the session have read anything so far."""
    context = spark.sparkContext
    arguments = (
        None,
        False,
        False,
        context._gateway.new_array(context._jvm.double, 0),
        context._jvm.java.util.ArrayList(),
    )
    stages = context._jsc.sc().statusStore().stageList(*arguments)
    return sum(stages.apply(i).inputBytes() > 0 for i in range(stages.size()))


def _as_json(path: Path) -> str:
    rows = pd.read_csv(path / "events.csv").to_dict("records")
    (path / "events.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return "events.jsonl"


@pytest.mark.parametrize(("source", "reads"), [("events.csv", 1), ("events.jsonl", 2)])
def test_text_is_parsed_once_for_its_columns_and_once_for_matching(
    source: str, reads: int, call: Call, spark: SparkSession, tmp_path: Path
) -> None:
    """Spark does both for JSON; the columns of CSV files are found without it."""
    _as_json(tmp_path)
    before = _stages_that_read(spark)
    result = call("run", AGAIN, source, "--type", "kind")
    assert result.stderr.startswith("1 match in 5 events"), result.stderr
    assert _stages_that_read(spark) - before == reads


@pytest.mark.parametrize("out", [("--out", "m.parquet"), ("--out", "m"), ("--format", "csv"), ()])
def test_json_that_is_refused_leaves_nothing_behind(out: tuple[str, ...], call: Call, tmp_path: Path) -> None:
    source = _as_json(tmp_path)
    before = sorted(p.name for p in tmp_path.iterdir())
    result = call("run", AGAIN.replace("Logout", "Logot"), source, "--type", "kind", *out)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "did you mean 'Logout'? the input has: Login, Logout" in result.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_rows_of_json_set_aside_are_counted_by_reason(call: Call, tmp_path: Path) -> None:
    rows = [{"ts": 1, "kind": "A"}, {"ts": 2, "kind": "B"}, {"kind": "A"}, {"ts": 3}, {"ts": 2**62, "kind": "A"}]
    (tmp_path / "e.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for more in ((), ("--no-spark",)):
        result = call(
            "run",
            "PATTERN SEQ(A a, B b) WITHIN 1 s",
            "e.jsonl",
            "--type",
            "kind",
            "--json",
            "--out",
            "m",
            "--overwrite",
            *more,
        )
        assert json.loads(result.stdout)["set_aside_reasons"] == {
            "the time cannot be read": 1,
            "the time is null": 1,
            "the type is null": 1,
        }


def test_times_of_json_that_are_text_are_read(call: Call, tmp_path: Path) -> None:
    rows = [{"ts": "2026-01-01", "kind": "A"}, {"ts": "noon", "kind": "B"}, {"ts": "2026-01-02", "kind": "B"}]
    (tmp_path / "e.jsonl").write_text("\n".join(map(json.dumps, rows)))
    result = call("run", "PATTERN SEQ(A a, B b) WITHIN 2 days", "e.jsonl", "--type", "kind")
    assert result.stderr.startswith("1 match in 3 events"), result.stderr
    assert "1 row skipped (the time cannot be read: 1)" in result.stderr


@pytest.mark.parametrize("more", [(), ("--no-spark",)])
@pytest.mark.parametrize("out", ["m.parquet", "m.csv", "m.jsonl", "folder"])
def test_a_flat_table(out: str, more: tuple[str, ...], call: Call, tmp_path: Path) -> None:
    result = call("run", PAIRS, "events.csv", "--type", "kind", "--flat", "--out", out, *more)
    assert result.exit_code == 0, result.stderr
    match Path(out).suffix:
        case ".csv":
            names = pa_csv.read_csv(tmp_path / out).column_names
        case ".jsonl":
            names = list(json.loads((tmp_path / out).read_text().splitlines()[0]))
        case _:
            names = pq.read_table(tmp_path / out).column_names
    assert names == ["start", "end", "a_ts", "a_kind", "a_user", "a_amount", "gap"]


def test_a_flat_table_whose_names_clash(call: Call) -> None:
    query = AGAIN + " RETURN a, c.user AS a_user"
    for more in ((), ("--no-spark",)):
        result = call("run", query, "events.csv", "--type", "kind", "--flat", *more)
        assert result.exit_code == 2
        assert "error[EC433]: in a flat table a.user and a_user would both be called 'a_user'" in result.stderr
