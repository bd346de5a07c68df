"""What `eventcube stream` says of itself."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.unit.spark.test_metrics import session, tell
from tests.unit.spark.test_stream_progress import RECORDED

from eventcube.cli.stream_status import StatusLine, StreamSummary, seconds_text, status_text
from eventcube.spark.metrics import StreamMetrics, StreamTotals


@pytest.fixture
def totals() -> StreamTotals:
    metrics = StreamMetrics(session())
    tell(metrics, *RECORDED)
    found = metrics.of(RECORDED[0]["id"])
    assert found is not None
    return found


def test_a_status(totals: StreamTotals) -> None:
    assert [part.split()[-1] for part in status_text(totals).split(" · ")][:2] == ["rows/s", "matches"]
    assert "165 matches" in status_text(totals)
    assert "watermark 2026-01-05 08:03:14, 5.0 s behind the newest" in status_text(totals)
    assert status_text(totals).endswith("3 late")


def test_a_summary(totals: StreamTotals) -> None:
    summary = StreamSummary.of(totals, 1.23456, 2, stopped=False)
    assert json.loads(summary.as_json()) | {"seconds": 1.235, "watermark": "2026-01-05T08:03:14.805000+00:00"} == (
        json.loads(summary.as_json())
    )
    text = summary.as_text()
    assert text.startswith("165 matches in 403 rows, 4 micro-batches, 1.2 s; Spark started in 2.0 s\n")
    assert "3 rows skipped, 3 of them late: --late PATH writes them" in text
    assert "up to the watermark, 2026-01-05T08:03:14.805000+00:00" in text
    assert StreamSummary.of(None, 1, 2, stopped=True).as_text().startswith("0 matches in 0 rows, 0 micro-batches")


def test_a_summary_of_few_rows_most_of_them_late() -> None:
    summary = StreamSummary(9, 0, 1, 1, 1, 1, datetime(2026, 1, 5, tzinfo=UTC), 1.0, 1.0, stopped=False)
    assert "; 1 row waits" in summary.as_text()
    assert "11% of the rows came late" in summary.as_text()
    assert "came late" not in replace(summary, rows=10).as_text()
    assert "a value that does not fit its column" in replace(summary, late=0).as_text()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_line_makes_way_for_others(totals: StreamTotals, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("COLUMNS", "40")
    line = StatusLine(quiet=False)
    line.show(totals)
    with line.cleared():
        terminal.write("a match\n")
    line.end()
    shown = status_text(totals)[:39]
    assert terminal.getvalue() == f"\r\x1b[K{shown}\r\x1b[Ka match\n{shown}\r\x1b[K"


@pytest.mark.parametrize("live", [False, True])
def test_nothing_is_said_where_nobody_looks(live: bool, totals: StreamTotals, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal() if live else io.StringIO())
    line = StatusLine(quiet=live)
    for _ in range(3):
        line.show(totals)
    line.end()
    assert terminal.getvalue() == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0.04, "0.0 s"), (119, "119.0 s"), (120, "2 min"), (7_200, "2 h"), (4e5, "5 days")],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert seconds_text(seconds) == text
