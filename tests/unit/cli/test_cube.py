"""`eventcube cube`: a workload file over events; what it says of bad files is in tests/golden/bad_workloads.txt."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from tests.unit.cli.conftest import Call

from eventcube.cli.cube import cube
from eventcube.workload_files.workload import read_workload

READINGS = """\
ts,place,person
2026-01-01 09:00:00,DallasBus,ann
2026-01-01 09:10:00,DallasShelter,bob
2026-01-01 09:20:00,Austin,bob
2026-01-01 09:30:00,Tulsa,ann
2026-01-01 09:40:00,Tulsa,bob
2026-01-01 09:50:00,Tulsa,ann
"""
WORKLOAD = """\
concepts:
  Texas: {Dallas: [DallasBus, DallasShelter], Austin: []}
  Oklahoma: [Tulsa]
within: 1 hour
queries:
  north: PATTERN SEQ(Texas a, Oklahoma b)
  dallas: PATTERN SEQ(Dallas a, Tulsa b) WITHIN 60 minutes   # the same window
  straight: |
    PATTERN SEQ(Dallas a, !Austin x, Tulsa b)
    PARTITION BY person;
settings:
  type: place
  partition_by: person
"""
FOUND = {"north": 4, "dallas": 3, "straight": 2}
GRAPH = """\
north: SEQ(Texas a, Oklahoma b) WITHIN 1 hour
  concept → dallas: SEQ(Dallas a, Tulsa b) WITHIN 1 hour
    pattern → straight: SEQ(Dallas a, !Austin x, Tulsa b) WITHIN 1 hour
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "readings.csv").write_text(READINGS, encoding="utf-8")
    (tmp_path / "moves.yaml").write_text(WORKLOAD, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ask(call: Call) -> Call:
    """`eventcube cube moves.yaml readings.csv --no-spark …`, which must work."""

    def invoke(*arguments: str) -> Any:
        result = call("cube", "moves.yaml", "readings.csv", "--no-spark", *arguments)
        assert result.exit_code == 0, result.stderr
        return result

    return invoke


def test_counts_of_every_query_with_its_text(ask: Call) -> None:
    result = ask("--counts")
    rows = [line.replace("│", " ").split(maxsplit=2) for line in result.stdout.splitlines() if line.startswith("│")]
    assert {name: int(count) for name, count, _ in rows} == FOUND
    assert "SEQ(Dallas a, !Austin x, Tulsa b) WITHIN 1 hour" in result.stdout
    assert result.stderr.startswith("9 matches of 3 queries in 6 events, ")
    assert "partial matches made" in result.stderr


def test_counts_as_csv_and_in_files(ask: Call, here: Path) -> None:
    assert (
        ask("--counts", "--format", "csv", "-q").stdout.splitlines()[1]
        == '"north",4,"SEQ(Texas a, Oklahoma b) WITHIN 1 hour"'
    )
    ask("--counts", "--out", "counts.parquet")
    assert pq.read_table(here / "counts.parquet").select(["query", "matches"]).to_pylist() == [
        {"query": name, "matches": count} for name, count in FOUND.items()
    ]
    ask("--counts", "--out", "counts", "--format", "csv")
    assert pa_csv.read_csv(here / "counts" / "part-00000.csv")["matches"].to_pylist() == list(FOUND.values())


def test_counts_at_every_level(ask: Call, here: Path) -> None:
    result = ask("--levels")
    assert result.stdout.count("Texas") == 2
    assert result.stderr.startswith("15 groups of 3 queries in 6 events, ")
    lines = ask("--counts", "--levels", "--format", "csv", "-q").stdout.splitlines()
    assert lines[:3] == [
        '"query","a","a_level","b","b_level","matches"',
        '"north","Texas",1,"Oklahoma",1,4',
        '"north","Texas",1,"Tulsa",2,4',
    ]
    assert len(lines) == 16
    ask("--levels", "--out", "cells.parquet")
    cells = pq.read_table(here / "cells.parquet").to_pylist()
    top = {row["query"]: row["matches"] for row in reversed(cells)}
    assert top == FOUND
    ask("--levels", "--out", "limited.parquet", "--limit", "2")
    assert max(pq.read_table(here / "limited.parquet")["matches"].to_pylist()) == 2
    plan = ask("--levels", "--explain").stdout
    assert "GROUPBY a AT EVERY LEVEL, b AT EVERY LEVEL AGG COUNT(*) AS matches" in plan


def test_levels_need_a_hierarchy_and_events(call: Call, here: Path) -> None:
    (here / "flat.yaml").write_text(
        "queries:\n  q: PATTERN SEQ(DallasBus a, Tulsa b) WITHIN 1 hour\n", encoding="utf-8"
    )
    result = call("cube", "flat.yaml", "readings.csv", "--no-spark", "--type", "place", "--levels")
    assert "EC458]: there is no hierarchy of types" in result.stderr
    result = call("cube", "moves.yaml", "--levels", "--graph", "-")
    assert "EC475]: --levels needs events" in result.stderr


def test_counts_are_part_of_the_summary_as_json(ask: Call) -> None:
    summary = json.loads(ask("--counts", "--json").stdout)
    assert summary["counts"] == FOUND
    assert (summary["matches"], summary["queries"], summary["events"]) == (9, 3, 6)
    assert summary["work"].keys() == {"candidates", "made"}


def test_a_limit_bounds_counts_and_matches(ask: Call) -> None:
    assert json.loads(ask("--counts", "--json", "--limit", "2").stdout)["counts"] == dict.fromkeys(FOUND, 2)
    assert ask("--limit", "2", "--out", "m.csv").stderr.startswith("6 matches ")


def test_matches_of_all_queries_are_one_table(ask: Call, here: Path) -> None:
    shown = ask()
    assert "a: ts 2026-01-01 09:10:00, place DallasShelter, person bob" in shown.stdout
    assert shown.stderr.startswith("9 matches of 3 queries in 6 events, ")
    ask("--out", "m.parquet")
    matches = pq.read_table(here / "m.parquet")
    assert matches.schema.names == ["query", "start", "end", "events"]
    names = matches["query"].to_pylist()
    assert {name: names.count(name) for name in FOUND} == FOUND
    ask("--out", "found", "--format", "jsonl")
    assert len((here / "found" / "part-00000.jsonl").read_text().splitlines()) == 9


def test_options_win_over_the_settings_of_the_file(ask: Call, here: Path) -> None:
    text = WORKLOAD.replace("type: place", "type: kind\n  time: when\n  sharing: independent")
    (here / "moves.yaml").write_text(text.replace("PARTITION BY person;", ""), encoding="utf-8")
    arguments = ("--counts", "--json", "--type", "place", "--time", "ts")
    assert json.loads(ask(*arguments).stdout)["counts"] == FOUND
    # Bob comes by Austin, but Ann does not.
    together = json.loads(ask(*arguments, "--partition-by", "").stdout)["counts"]
    assert together["north"] > FOUND["north"]
    assert read_workload("moves.yaml", {}).options.sharing == "independent"
    assert read_workload("moves.yaml", {"sharing": "chase"}).options.sharing == "chase"


def test_a_partition_on_the_command_line_must_agree_with_the_queries(call: Call) -> None:
    result = call("cube", "moves.yaml", "readings.csv", "--no-spark", "--partition-by", "place")
    assert result.exit_code == 2
    assert (
        "error[EC474]: query straight says PARTITION BY person, and the setting partition_by says place"
        in result.stderr
    )


@pytest.mark.parametrize("name", ["states.yaml", "states.json"])
def test_a_hierarchy_in_a_file_beside_the_workload(name: str, ask: Call, here: Path) -> None:
    (here / "of").mkdir()
    states = '{"Texas": ["DallasBus", "DallasShelter", "Austin"], "Oklahoma": ["Tulsa"]}'
    (here / "of" / name).write_text(states, encoding="utf-8")
    text = f"concepts: {name}\nqueries: {{north: 'PATTERN SEQ(Texas a, Oklahoma b) WITHIN 1 hour'}}\n"
    (here / "of" / "moves.yaml").write_text(text, encoding="utf-8")
    workload = read_workload("of/moves.yaml", {})
    assert workload.options.concepts is not None
    assert workload.options.concepts.closure("Oklahoma") == {"Oklahoma", "Tulsa"}
    (here / "flat.yaml").write_text("Texas: [Austin]\nDallas: [DallasBus, DallasShelter]\n", encoding="utf-8")
    counts = json.loads(ask("--counts", "--json", "--concepts", "flat.yaml", "--allow-missing-types").stdout)["counts"]
    assert counts == {"north": 0, "dallas": 3, "straight": 2}


def test_settings_are_read_as_on_the_command_line(here: Path) -> None:
    (here / "all.yaml").write_text(
        "queries: {q: PATTERN A a}\n"
        "settings: {partition_by: 'a, b', order_by: [c], limit: 5, strategy: {b: passive}, time_unit: ms, type: NO}\n",
        encoding="utf-8",
    )
    options = read_workload("all.yaml", {}).options
    assert (options.partition_by, options.order_by) == (("a", "b"), ("c",))
    assert (options.limit, options.time_unit, options.type) == (5, "ms", "NO")
    assert options.strategy.parts == {"b": "passive"}


def test_the_graph_needs_no_events(call: Call, here: Path) -> None:
    assert call("cube", "moves.yaml", "--graph", "-").stdout == GRAPH
    assert [edge["finer"] for edge in json.loads(call("cube", "moves.yaml", "--graph", "-", "--json").stdout)["edges"]]
    result = call("cube", "moves.yaml", "--graph", "moves.mmd")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "graph written to moves.mmd\n")
    mermaid = (here / "moves.mmd").read_text("utf-8")
    assert mermaid.startswith("flowchart TD\n")
    assert "n0 -->|concept| n1" in mermaid
    assert call("cube", "moves.yaml", "--graph", "of/moves.json", "-q").stderr == ""
    edges = json.loads((here / "of" / "moves.json").read_text("utf-8"))["edges"]
    assert [(edge["coarser"], edge["finer"]) for edge in edges] == [("north", "dallas"), ("dallas", "straight")]
    assert "error[EC421]: moves.mmd exists" in call("cube", "moves.yaml", "--graph", "moves.mmd").stderr
    assert call("cube", "moves.yaml", "--graph", "moves.mmd", "--overwrite").exit_code == 0


def test_the_graph_beside_the_answer(ask: Call, here: Path) -> None:
    result = ask("--counts", "--graph", "-")
    assert result.stdout.startswith(GRAPH)
    assert "matches" in result.stdout
    ask("--counts", "--json", "--graph", "moves.json")
    assert (here / "moves.json").is_file()


def test_a_graph_whose_columns_cannot_be_guessed(call: Call, here: Path) -> None:
    text = "queries: {odd: \"PATTERN SEQ(Dallas a, Tulsa b, a.person = 'x', b.person > a.n) WITHIN 1 hour\"}\n"
    (here / "odd.yaml").write_text(text + "settings: {type: place}\n", encoding="utf-8")
    (here / "numbered.csv").write_text("ts,place,person,n\n2026-01-01 09:00:00,Dallas,ann,text\n", encoding="utf-8")
    (here / "clash.yaml").write_text(text.replace("b.person > a.n", "b.person > 1"), encoding="utf-8")
    result = call("cube", "clash.yaml", "--graph", "-")
    assert result.exit_code == 2
    assert result.stderr.startswith("error[EC468]: the kinds of columns cannot be guessed: cannot compare")
    assert "\n --> odd:1:" in result.stderr
    assert "\nhint: name an INPUT; " in result.stderr
    told = call("cube", "clash.yaml", "numbered.csv", "--graph", "-", "--explain")
    assert "error[EC210]: cannot compare" in told.stderr
    assert call("cube", "odd.yaml", "numbered.csv", "--graph", "-", "--explain").exit_code == 0


def test_explain_tells_what_is_computed_from_what(ask: Call) -> None:
    result = ask("--explain", "--sharing", "top-down")
    assert "dallas: computed from north (concept-down)" in result.stdout
    assert "straight: computed from dallas (pattern-down)" in result.stdout
    assert result.stderr == ""
    assert "no query is computed from the matches of another" in ask("--explain", "--sharing", "independent").stdout
    both = ask("--explain", "--counts", "--sharing", "bottom-up", "--aggregates", "enumerate")
    assert "north: computed from dallas" in both.stdout
    assert "AGG COUNT(*)" in both.stdout
    assert both.stderr.startswith("9 matches of 3 queries")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "error[EC475]: there are no events\nhint: name an INPUT; without one, --graph"),
        (("--counts",), "error[EC475]: --counts needs events"),
        (("--graph", "-", "--out", "m.csv"), "error[EC475]: --out needs events"),
        (("readings.csv", "--graph", "moves.png"), "error[EC420]: --graph moves.png is neither Mermaid nor JSON"),
        (("readings.csv", "--graph", "-", "--counts", "--json"), "error[EC422]: --graph - and --json would both go"),
        (("readings.csv", "--explain", "--format", "csv"), "error[EC422]: --explain and --format csv would both go"),
        (("readings.csv", "--graph", "m.json", "--out", "./m.json"), "error[EC422]: --graph m.json would write over"),
        (
            ("events.json", "--graph", "events.json", "--overwrite"),
            "error[EC422]: --graph events.json would write over",
        ),
        (("readings.csv", "--json"), "error[EC420]: --json prints the summary, so matches need --out"),
    ],
)
def test_options_that_do_not_fit(arguments: tuple[str, ...], told: str, call: Call) -> None:
    result = call("cube", "moves.yaml", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(told)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("PATTERN A a", "error[EC320]: there is no workload file PATTERN A a\nhint: give the path of a YAML file"),
        ("binary.yaml", "error[EC321]: binary.yaml is not text in UTF-8\nhint: is it really a workload file?"),
        (".", "error[EC321]: cannot read .: Is a directory"),
    ],
)
def test_files_that_are_no_workload(name: str, told: str, call: Call, here: Path) -> None:
    (here / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    assert call("cube", name, "readings.csv").stderr.startswith(told)


def test_the_example_of_the_help_works(call: Call, here: Path) -> None:
    text = cube.help or ""
    example = text.partition("moves.yaml:\n")[2].partition("\n\n")[0]
    (here / "moves.yaml").write_text(textwrap.dedent(example), encoding="utf-8")
    result = call("cube", "moves.yaml", "readings.csv", "--counts", "--no-spark", "--json")
    assert json.loads(result.stdout)["counts"] == {"north": 4, "by_bus": 2}


def test_a_workload_of_one_query(call: Call, here: Path) -> None:
    (here / "one.yaml").write_text("queries: {one: PATTERN Tulsa a WITHIN 1 s}\nsettings: {type: place}\n")
    result = call("cube", "one.yaml", "readings.csv", "--no-spark")
    assert result.stderr.startswith("3 matches in 6 events, ")
    assert "│ one " in result.stdout


def test_values_are_counted_though_they_fit_no_shared_table(call: Call, here: Path) -> None:
    text = "queries: {one: PATTERN Tulsa a WITHIN 1 s RETURN a.person AS who, two: PATTERN Tulsa a WITHIN 1 s LIMIT 1}"
    (here / "values.yaml").write_text(text + "\nsettings: {type: place}\n", encoding="utf-8")
    result = call("cube", "values.yaml", "readings.csv", "--no-spark", "--counts", "--json")
    assert json.loads(result.stdout)["counts"] == {"one": 3, "two": 1}


def test_the_demo_counts_what_was_planted_and_shows_what_was_saved(call: Call, here: Path) -> None:
    result = call("demo", "--cube", "--events", "20000", "--out", "demo")
    assert result.exit_code == 0, result.output
    for words in ("austin_dallas: SEQ(Galveston", "What sharing saves", "What the drill-down costs", "Try next:"):
        assert words in result.stdout
    assert pq.read_table(here / "demo" / "transit.parquet").num_rows == 20_000
    again = call("cube", "demo/transit.yaml", "demo/transit.parquet", "--counts", "--no-spark", "--json")
    shown = [line.replace("│", " ").split() for line in result.stdout.splitlines() if line.startswith("│ ")]
    found = {name: int(words[-1].replace(",", "")) for name, *words in shown if "SEQ(" in " ".join(words)}
    counts = json.loads(again.stdout)["counts"]
    assert {name: found[name] for name in counts} == counts
