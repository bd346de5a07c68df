from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.cli.conftest import Call

QUERY = "pattern seq(Login a, Login b) where a.user=b.user within 60 min"


def test_syntax_alone(call: Call) -> None:
    result = call("check", QUERY)
    assert result.exit_code == 0
    assert result.stdout == "PATTERN SEQ(Login a, Login b)\nWHERE a.user = b.user\nWITHIN 1 hour\n"
    assert result.stderr.startswith("ok (INPUT or --columns")


def test_variables_are_checked_without_columns(call: Call) -> None:
    query = "PATTERN SEQ(Login a, !Logout b, AND(Order o, !Reset r)) WHERE r.user = a.user AND c.user = 1 RETURN b"
    result = call("check", query)
    assert result.exit_code == 2
    assert [line[:13] for line in result.stderr.splitlines() if line.startswith("error")] == [
        "error[EC205]:",
        "error[EC201]:",
        "error[EC205]:",
    ]
    assert result.stdout == ""


def test_variables_are_told_once_with_columns(call: Call) -> None:
    result = call("check", "PATTERN A a WHERE b.x = 1", "--columns", "ts timestamp, x int")
    assert result.stderr.count("error[") == 1


def test_the_query_comes_back_as_it_was_written(call: Call) -> None:
    query = "PATTERN SEQ(Login a, !Logout b, Order o)\nWHERE a.user = b.user\nWITHIN 1 hour\n"
    assert call("check", query).stdout == query


@pytest.mark.usefixtures("folder")
def test_against_the_columns_of_files(call: Call) -> None:
    assert call("check", QUERY, "--schema", "events.csv", "--type", "kind").stderr == "ok\n"
    wrong = call("check", QUERY.replace("user", "usr"), "--schema", "events.csv", "--type", "kind")
    assert wrong.exit_code == 2
    assert wrong.stderr.count("error[EC203]") == 2


def test_against_columns_given_as_text(call: Call) -> None:
    columns = "ts timestamp, kind string, `user` varchar(20), price decimal(10, 2)"
    assert call("check", QUERY, "--columns", columns, "--type", "kind").exit_code == 0


def test_a_batch_may_have_no_window_but_is_warned(call: Call) -> None:
    result = call("check", "PATTERN SEQ(A a, B b)")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning[EC500]: the query has no WITHIN")
    assert "warning" not in call("check", "PATTERN A a").stderr


def test_a_time_without_a_zone_against_whole_numbers_is_warned_of(call: Call) -> None:
    query = "PATTERN Login a WHERE a.ts > '2024-01-31 12:00' WITHIN 1 hour"
    result = call("check", query, "--columns", "ts long, kind string", "--type", "kind")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning[EC520]: this time has no zone; it is taken for UTC")
    assert "warning" not in call("check", query, "--columns", "ts timestamp, kind string", "--type", "kind").stderr


@pytest.mark.usefixtures("folder")
class TestSlips:
    """What is probably not meant is told without Spark, and as `run` would tell it."""

    def test_of_the_query_alone(self, call: Call) -> None:
        result = call("check", "PATTERN SEQ(A a, B b) WHERE a.x = NULL AND a.ts - b.ts < 5 minutes WITHIN 1 hour")
        assert result.exit_code == 0
        assert "warning[EC510]: `a.x = NULL` never holds" in result.stderr
        assert "warning[EC512]: `a.ts - b.ts < 5 minutes` always holds: a comes before b" in result.stderr
        assert "hint: did you mean b.ts - a.ts < 5 minutes?" in result.stderr

    def test_of_scopes(self, call: Call) -> None:
        result = call("check", "PATTERN SEQ(A a, B b) WHERE z.x = 1 WITHIN 1 hour")
        assert result.exit_code == 2
        assert "error[EC201]: unknown variable 'z'" in result.stderr

    def test_a_type_that_no_event_has(self, call: Call) -> None:
        wrong = QUERY.replace("Login b", "Logn b")
        for named in (["events.csv"], ["--schema", "events.csv"]):
            result = call("check", wrong, *named, "--type", "kind")
            assert result.exit_code == 2
            assert "error[EC202]: unknown event type 'Logn'" in result.stderr
            assert "did you mean 'Login'?" in result.stderr

    def test_events_of_parquet_are_read_piece_by_piece(self, call: Call, folder: Path) -> None:
        times = [1_767_225_600 + i for i in range(300)]
        pq.write_table(pa.table({"ts": times, "kind": ["Login"] * 300, "user": ["x"] * 300}), folder / "e.parquet")
        result = call("check", QUERY, "e.parquet", "--type", "kind")
        assert result.exit_code == 0
        assert "warning[EC503]: with --time-unit us the times in ts are in early 1970" in result.stderr
        assert "with --time-unit s they would be in 2026" in result.stderr
        assert "hint: column 'kind' holds such types: --type kind" in call("check", QUERY, "e.parquet").stderr

    def test_from_another_input(self, call: Call) -> None:
        result = call("check", f"{QUERY} from trades", "events.csv", "--type", "kind")
        assert "warning[EC504]: the query is FROM trades, but the input is events.csv" in result.stderr
        for name in ("events", "`events.csv`", "lake.Events"):
            assert "EC504" not in call("check", f"{QUERY} from {name}", "events.csv", "--type", "kind").stderr
        result = call("run", f"{QUERY} from trades", "events.csv", "--type", "kind", "--no-spark")
        assert result.exit_code == 0
        assert "warning[EC504]" in result.stderr
