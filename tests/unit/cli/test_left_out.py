"""`--less`: rows that a replay leaves out."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.unit.cli.conftest import Call

from eventcube.cli.left_out import without_rows

QUERY = "PATTERN SEQ(Login a, Login b) WITHIN 1 hour"


def test_each_row_takes_one_event_away_whatever_type_text_was_taken_for() -> None:
    events = pa.table({"ts": [1, 1, 1, 2, 3], "amount": ["3", "3.0", "many", "many", None], "n": [1, 1, 1, 1, 2]})
    rows = pa.table({"ts": [1, 2, 3], "amount": pa.array([3.0, None, None])})
    assert without_rows(events, rows, "ts").to_pylist() == [
        {"ts": 1, "amount": "3.0"},
        {"ts": 1, "amount": "many"},
        {"ts": 2, "amount": "many"},
    ]


def test_nan_is_equal_to_itself() -> None:
    events = pa.table({"ts": [1, 2], "x": [float("nan"), 1.0]})
    assert without_rows(events, events.slice(0, 1), "ts").num_rows == 1


def test_the_summary_counts_what_was_left_out(call: Call, folder: Path) -> None:
    late = pa.table({"ts": ["2026-01-01 09:00:00", "2026-01-01 09:00:01"], "kind": ["Login"] * 2})
    (folder / "late").mkdir()
    pq.write_table(late.set_column(0, "ts", late["ts"].cast(pa.timestamp("us"))), folder / "late" / "1.parquet")
    arguments = ("run", QUERY, "events.csv", "--type", "kind", "--no-spark", "--less", "late", "--out", "m.parquet")
    result = call(*arguments, "--json")
    summary = json.loads(result.stdout)
    assert (summary["events"], summary["left_out"], summary["matches"]) == (5, 1, 3)
    assert result.stderr.startswith("warning[EC507]: 1 of 2 rows to leave out not found among the events\n")
    assert "\n1 event left out: --less\n" in call(*arguments, "--overwrite").stderr
