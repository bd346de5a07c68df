from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from tests.unit.cli.conftest import EVENTS, Call

AGAIN = "PATTERN SEQ(Login a, !(Logout b, b.user = a.user), Login c) WHERE a.user = c.user WITHIN 1 hour"
PAIRS = "PATTERN SEQ(Login a, Login c) WHERE a.user = c.user WITHIN 1 hour RETURN a, c.ts - a.ts AS gap"
LOCAL = ("--type", "kind", "--no-spark")

pytestmark = pytest.mark.usefixtures("folder")


def test_matches_are_shown_on_the_screen(call: Call) -> None:
    result = call("run", AGAIN, "events.csv", *LOCAL)
    assert result.exit_code == 0
    assert "2026-01-01 09:00:30" in result.stdout
    assert "user ann" in result.stdout
    assert "bob" not in result.stdout
    assert result.stderr.startswith("1 match in 5 events, ")


def test_the_screen_shows_the_first_and_counts_the_rest(call: Call, folder: Path) -> None:
    table = pa.table({"ts": range(100), "kind": ["A"] * 100})
    pq.write_table(table, folder / "many.parquet")
    result = call("run", "PATTERN SEQ(A a, A b) WITHIN 2 us RETURN a.ts AS a", "many.parquet", *LOCAL)
    assert "more; --out PATH writes all of them" in result.stdout
    assert "177 more" in result.stdout
    assert result.stderr.startswith("197 matches in 100 events")


def test_a_query_is_read_from_a_file(call: Call, folder: Path) -> None:
    (folder / "again.neel").write_text(AGAIN, encoding="utf-8")
    assert call("run", "again.neel", "events.csv", *LOCAL).stderr.startswith("1 match ")


def test_parquet_keeps_events_as_structs_with_start_and_end_first(call: Call, folder: Path) -> None:
    assert call("run", AGAIN, "events.csv", *LOCAL, "--out", "found/matches.parquet").exit_code == 0
    found = pq.read_table(folder / "found" / "matches.parquet")
    assert found.column_names == ["start", "end", "a", "c"]
    assert found["a"].to_pylist() == [{"ts": datetime(2026, 1, 1, 9), "kind": "Login", "user": "ann", "amount": 1.5}]


def test_csv_has_a_column_for_each_attribute_and_seconds_for_lengths_of_time(call: Call, folder: Path) -> None:
    assert call("run", PAIRS, "events.csv", *LOCAL, "--out", "matches.csv").exit_code == 0
    found = pa_csv.read_csv(folder / "matches.csv")
    assert found.column_names == ["start", "end", "a.ts", "a.kind", "a.user", "a.amount", "gap"]
    assert found["a.user"].to_pylist() == ["ann", "bob"]
    assert found["gap"].to_pylist() == [30, 30]


def test_json_lines_go_to_standard_output_without_a_place_for_them(call: Call) -> None:
    result = call("run", PAIRS, "events.csv", *LOCAL, "--format", "jsonl")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["gap"] for row in rows] == [30.0, 30.0]
    assert rows[0]["a"]["ts"] == "2026-01-01T09:00:00"


def test_variables_of_an_alternative_not_taken_are_empty(call: Call, folder: Path) -> None:
    query = "PATTERN SEQ(Login a, OR(Logout b, Gone g)) WHERE a.user = 'bob' WITHIN 1 hour RETURN b, g"
    arguments = ("run", query, "events.csv", *LOCAL, "--allow-missing-types")
    assert call(*arguments, "--out", "m.csv").exit_code == 0
    assert (folder / "m.csv").read_text().splitlines()[1].endswith('"Logout","bob",3.5,,,,')
    assert '"g": null' in call(*arguments, "--format", "jsonl").stdout


def test_the_summary_as_json(call: Call) -> None:
    result = call("run", AGAIN, "events.csv", *LOCAL, "--json", "--out", "m.parquet")
    summary = json.loads(result.stdout)
    assert (summary["events"], summary["matches"], summary["set_aside"]) == (5, 1, 0)
    assert summary["out"] == "m.parquet"
    assert result.stderr == ""


def test_quiet_says_nothing(call: Call) -> None:
    result = call("run", AGAIN, "events.csv", *LOCAL, "--quiet", "--out", "m.parquet")
    assert result.output == ""


def test_rows_without_time_or_type_are_counted_and_written(call: Call, folder: Path) -> None:
    (folder / "events.csv").write_text(EVENTS + ",Login,cat,1\n2026-01-01 10:00:00,,cat,2\n", encoding="utf-8")
    result = call("run", AGAIN, "events.csv", *LOCAL, "--set-aside", "aside.jsonl")
    assert "2 rows skipped (the time is null: 1, the type is null: 1); in aside.jsonl" in result.stderr
    rows = [json.loads(line) for line in (folder / "aside.jsonl").read_text().splitlines()]
    assert [(r["user"], r["set_aside_reason"]) for r in rows] == [
        ("cat", "the time is null"),
        ("cat", "the type is null"),
    ]


def test_a_folder_is_written_for_a_name_without_an_ending(call: Call, folder: Path) -> None:
    assert call("run", AGAIN, "events.csv", *LOCAL, "--out", "found").exit_code == 0
    assert pq.read_table(folder / "found").num_rows == 1


def test_a_result_is_replaced_only_if_asked_and_only_when_the_new_one_is_there(call: Call, folder: Path) -> None:
    out = folder / "m.csv"
    out.write_text("old")
    assert call("run", AGAIN, "events.csv", *LOCAL, "--out", "m.csv").exit_code == 2
    wrong = AGAIN.replace("Logout", "Logot")
    assert call("run", wrong, "events.csv", *LOCAL, "--out", "m.csv", "--overwrite").exit_code == 2
    assert out.read_text() == "old"
    assert call("run", AGAIN, "events.csv", *LOCAL, "--out", "m.csv", "--overwrite").exit_code == 0
    assert out.read_text().startswith('"start"')


def test_nothing_but_results_is_ever_replaced(call: Call, folder: Path) -> None:
    events = (folder / "events.csv").read_text()
    (folder / "lake").mkdir()
    (folder / "lake" / "part-1.csv").write_text(events)
    (folder / "precious").mkdir()
    (folder / "precious" / "thesis.md").write_text("years of work")
    for source, *wanted in [
        ("events.csv", "--out", "events.csv"),
        ("lake", "--out", "lake", "--format", "csv"),
        ("lake/part-1.csv", "--out", "lake", "--format", "csv"),
        ("events.csv", "--out", "m.csv", "--set-aside", "events.csv"),
        ("events.csv", "--out", "m.csv", "--set-aside", "m.csv"),
        ("events.csv", "--out", "precious"),
    ]:
        result = call("run", AGAIN, source, *LOCAL, *wanted, "--overwrite")
        assert (result.exit_code, result.stderr.startswith("error[EC42")) == (2, True), result.stderr
    assert (folder / "events.csv").read_text() == events == (folder / "lake" / "part-1.csv").read_text()
    assert (folder / "precious" / "thesis.md").exists()


def test_a_type_that_no_event_has_can_be_allowed(call: Call) -> None:
    result = call("run", AGAIN.replace("Logout", "Reset"), "events.csv", *LOCAL, "--allow-missing-types")
    assert result.stderr.startswith("2 matches")


def test_a_hierarchy_of_types(call: Call, folder: Path) -> None:
    (folder / "concepts.yaml").write_text("Session: [Login, Logout]\n")
    query = "PATTERN SEQ(Session a, Logout b) WHERE a.user = b.user WITHIN 1 hour"
    assert call("run", query, "events.csv", *LOCAL, "--concepts", "concepts.yaml").stderr.startswith("1 match")


def test_no_within_is_warned_of(call: Call) -> None:
    result = call("run", "PATTERN SEQ(Login a, Logout b) WHERE a.user = b.user", "events.csv", *LOCAL)
    assert result.exit_code == 0
    assert result.stderr.startswith("warning[EC500]: the query has no WITHIN")


def test_no_type_column_is_warned_of_as_in_the_library(call: Call) -> None:
    result = call("run", "PATTERN SEQ(Login a, Logout b) WITHIN 5 s", "events.csv", "--no-spark")
    assert (
        "warning[EC505]: no type column is named, so every event matches Login\n"
        "hint: column 'kind' holds such types: --type kind\n"
    ) in result.stderr


def test_aggregates_are_shown(call: Call) -> None:
    result = call(
        "run", "PATTERN Login a GROUPBY a.user AS who AGG COUNT(*) AS n, SUM(a.amount) AS s", "events.csv", *LOCAL
    )
    assert "ann" in result.stdout
    assert "8.0" in result.stdout
    assert result.stderr.startswith("2 groups in 5 events")


def test_rows_of_events_are_shown_by_their_time(call: Call, folder: Path) -> None:
    table = pa.table({"ts": range(100), "kind": ["A"] * 100})
    pq.write_table(table, folder / "many.parquet")
    query = "PATTERN SEQ(A a, A b) WITHIN 9 us AGG COUNT(*) AS n PER b"
    result = call("run", query, "many.parquet", *LOCAL)
    assert result.stdout.index("ts 1 ") < result.stdout.index("ts 2 ")
    assert result.stderr.startswith("99 groups in 100 events")
    assert call("run", query, "many.parquet", *LOCAL, "--out", "rows.csv").exit_code == 0
    assert pa_csv.read_csv(folder / "rows.csv").column_names == ["b.ts", "b.kind", "n"]
    assert (
        call(
            "run", query, "many.parquet", *LOCAL, "--until", "1970-01-01 00:00:00.00005", "--out", "rows.parquet"
        ).exit_code
        == 0
    )
    assert len(pq.read_table(folder / "rows.parquet")) == 49


def test_groups_by_time_are_shown(call: Call) -> None:
    query = "PATTERN Login a WITHIN 1 s GROUPBY a.ts EVERY 1 hour AS hour AGG COUNT(*) AS n"
    assert "2026-01-01 09:00:00" in call("run", query, "events.csv", *LOCAL).stdout


def test_events_that_pandas_wrote(call: Call, folder: Path) -> None:
    frame = pd.read_csv(folder / "events.csv", parse_dates=["ts"])
    frame.to_parquet(folder / "events.parquet")
    assert call("run", AGAIN, "events.parquet", *LOCAL).stderr.startswith("1 match ")


def test_all_files_of_a_folder_are_one_input(call: Call, folder: Path) -> None:
    lines = EVENTS.splitlines(keepends=True)
    (folder / "day").mkdir()
    (folder / "day" / "1.csv").write_text("".join(lines[:3]))
    (folder / "day" / "2.csv").write_text("".join([lines[0], *lines[3:]]))
    (folder / "day" / "_notes.csv").write_text("not, events")
    for named in ("day", "day/?.csv"):
        assert call("run", AGAIN, named, *LOCAL).stderr.startswith("1 match in 5 events")


def test_the_type_column_is_guessed_by_what_it_holds(call: Call, folder: Path) -> None:
    lines = ["user,ts,what", "ann,2026-01-01 09:00:00,Login", "bob,2026-01-01 09:00:01,Logout"]
    (folder / "e.csv").write_text("\n".join(lines))
    result = call("run", "PATTERN SEQ(Login a, Logout b) WITHIN 5 s", "e.csv", "--no-spark")
    assert "hint: column 'what' holds such types: --type what\n" in result.stderr
    result = call("run", "PATTERN SEQ(Enter a, Leave b) WITHIN 5 s", "e.csv", "--no-spark")
    assert "warning[EC505]: no type column is named, so every event matches Enter\nhint: name the type" in result.stderr


@pytest.mark.parametrize(
    ("times", "unit", "told"),
    [
        ([1_767_225_600, 1_767_225_601], "us", "--time-unit s they would be in 2026"),
        ([1_767_225_600_000], "us", "--time-unit ms they would be in 2026"),
        ([1_767_225_600], "ms", "--time-unit s they would be in 2026"),
        ([1_767_225_600_000_000_000], "us", "--time-unit ns they would be in 2026"),
        ([1_767_225_600_000], "s", "--time-unit ms they would be in 2026"),
        ([1_767_225_600], "s", None),
        ([1, 2, 3], "us", None),
    ],
)
def test_a_wrong_unit_of_time_is_warned_of(
    times: list[int], unit: str, told: str | None, call: Call, folder: Path
) -> None:
    pq.write_table(pa.table({"ts": times}), folder / "e.parquet")
    result = call("run", "PATTERN a WITHIN 1 s", "e.parquet", "--no-spark", "--time-unit", unit)
    assert result.exit_code == 0
    assert ("EC503" in result.stderr) == (told is not None)
    assert told is None or told in result.stderr


def test_the_summary_tells_the_work_of_nested_parts(call: Call, folder: Path) -> None:
    pq.write_table(pa.table({"ts": range(40), "kind": ["A", "B", "C", "D"] * 10}), folder / "nested.parquet")
    query = "PATTERN SEQ(A a, SEQ(B b, C c), D d) WITHIN 20 us RETURN a.ts AS a"
    result = call("run", query, "nested.parquet", *LOCAL, "--strategy", "b=balanced")
    assert "nested parts: " in result.stderr
    assert "0 never used" in result.stderr
    result = call("run", query, "nested.parquet", *LOCAL, "--strategy", "b=balancd")
    assert result.exit_code == 2
    assert "did you mean 'balanced'?" in result.stderr


def test_explain_can_run_the_query(call: Call, folder: Path) -> None:
    pq.write_table(pa.table({"ts": range(40), "kind": ["A", "B", "C", "D"] * 10}), folder / "nested.parquet")
    query = "PATTERN SEQ(A a, SEQ(B b, C c), D d) WITHIN 20 us"
    result = call("explain", query, "nested.parquet", "--type", "kind", "--analyze")
    assert "inner_computed" in result.stdout
    assert call("explain", query, "--type", "kind", "--analyze").exit_code == 2


def test_parquet_with_a_zone_is_in_that_zone(call: Call, folder: Path) -> None:
    times = pa.array([datetime(2026, 1, 1, 3), datetime(2026, 1, 1, 4), datetime(2026, 1, 1, 5)])
    pq.write_table(pa.table({"ts": times.cast(pa.timestamp("us", "America/New_York"))}), folder / "zoned.parquet")
    query = "PATTERN ANY a WHERE a.ts >= '2025-12-31 23:00' WITHIN 1 s"
    result = call("run", query, "zoned.parquet", "--no-spark")
    assert "2 matches in 3 events" in result.stderr
    assert "2025-12-31 23:00:00" in result.stdout
    assert "a.ts >= TIMESTAMP '2026-01-01 04:00:00Z'" in call("explain", query, "zoned.parquet").stdout


def test_a_partition_in_the_text_must_agree_with_the_option(call: Call) -> None:
    query = "PATTERN SEQ(Login a, ANY b) PARTITION BY user WITHIN 2 events RETURN a.user AS user, HOUR(b.ts) AS hour"
    result = call("run", query, "events.csv", *LOCAL, "--format", "csv")
    assert result.exit_code == 0
    assert result.stderr.startswith("2 matches in 5 events")
    assert sorted(line.split(",", 2)[2] for line in result.stdout.splitlines()[1:]) == ['"ann",9', '"bob",9']
    assert call("run", query, "events.csv", *LOCAL, "--partition-by", "user").exit_code == 0
    other = call("run", query, "events.csv", *LOCAL, "--partition-by", "amount")
    assert other.exit_code == 2
    assert "error[EC220]" in other.stderr


def test_events_of_any_type_need_no_type_to_be_there(call: Call) -> None:
    assert call("run", "PATTERN ANY a", "events.csv", *LOCAL).stderr.startswith("5 matches in 5 events")
    assert "EC505" not in call("run", "PATTERN ANY a", "events.csv", "--no-spark").stderr


def test_nearly_all_rows_skipped_is_warned_of(call: Call, folder: Path) -> None:
    times = ["noon"] * 19 + ["2026-01-01 09:00:00"]
    pq.write_table(pa.table({"ts": times, "kind": ["Login"] * 20}), folder / "e.parquet")
    result = call("run", "PATTERN Login a WITHIN 1 s", "e.parquet", *LOCAL)
    assert result.exit_code == 0
    assert "warning[EC502]: 19 of 20 rows are skipped" in result.stderr
    assert "(19, as in 'noon')" in result.stderr


def test_a_hierarchy_that_misses_the_types_of_the_events(call: Call, folder: Path) -> None:
    (folder / "concepts.yaml").write_text("Session: [Logins]\n")
    query = "PATTERN SEQ(Session a, Logout b) WITHIN 1 hour"
    for command in (["run", query, "events.csv", *LOCAL], ["check", query, "events.csv", "--type", "kind"]):
        result = call(*command, "--concepts", "concepts.yaml")
        assert result.exit_code == 2
        assert "error[EC202]: no event has type 'Session' or one below it: Logins" in result.stderr
        assert "did you mean 'Login'?" in result.stderr


def test_two_thirds_of_the_rows_skipped_is_told(call: Call, folder: Path) -> None:
    times = ["noon"] * 20 + ["2026-01-01 09:00:00"] * 10
    pq.write_table(pa.table({"ts": times, "kind": ["Login"] * 30}), folder / "e.parquet")
    for command in (
        ["run", "PATTERN Login a WITHIN 1 s", "e.parquet", *LOCAL],
        ["check", "PATTERN Login a", "e.parquet"],
    ):
        result = call(*command)
        assert result.exit_code == 0
        assert "warning[EC502]: 20 of 30 rows are skipped" in result.stderr


def test_a_type_of_which_all_rows_are_skipped(call: Call, folder: Path) -> None:
    times = ["noon", *["2026-01-01 09:00:00"] * 40]
    pq.write_table(pa.table({"ts": times, "kind": ["Logout", *["Login"] * 40]}), folder / "e.parquet")
    query = "PATTERN SEQ(Login a, Logout b) WITHIN 1 s"
    for command in (["run", query, "e.parquet", *LOCAL], ["check", query, "e.parquet", "--type", "kind"]):
        result = call(*command)
        assert result.exit_code == 0
        told = "warning[EC502]: the only row of type 'Logout' is skipped: the time cannot be read (as in 'noon')"
        assert told in result.stderr


def test_the_clock_of_text_with_zones_is_warned_of(call: Call, folder: Path) -> None:
    pq.write_table(pa.table({"ts": ["2026-01-01 09:00:00+02:00"], "kind": ["Login"]}), folder / "e.parquet")
    query = "PATTERN Login a RETURN HOUR(a.ts) AS h"
    for command in (["run", query, "e.parquet", *LOCAL], ["check", query, "e.parquet", "--type", "kind"]):
        result = call(*command)
        assert "warning[EC524]: HOUR reads the clock in UTC" in result.stderr


def test_a_condition_that_never_holds_is_warned_of_once(call: Call) -> None:
    result = call("run", "PATTERN SEQ(Login a, Login b) WHERE a.ts > b.ts WITHIN 1 hour", "events.csv", *LOCAL)
    assert result.exit_code == 0
    assert result.stderr.count("warning[EC511]") == 1
