from __future__ import annotations

import json
from itertools import count

import pytest
from tests.unit.cli.conftest import Call

from eventcube.cli import in_process, run_queries
from eventcube.cli.summary import RATED_EVENTS, RATED_EVENTS_ON_SPARK, Summary

QUERY = "PATTERN SEQ(Login a, Login c) WHERE a.user = c.user WITHIN 1 hour"


def test_the_rate_leaves_the_start_out() -> None:
    summary = Summary(20_000, 0, 3, seconds=2.0, start_seconds=6.0)
    assert summary.as_text() == "3 matches in 20,000 events, 2.0 s (10,000 events/s); started in 6.0 s"
    assert json.loads(summary.as_json())["events_per_second"] == 10_000


def test_a_small_run_has_no_rate() -> None:
    few = Summary(RATED_EVENTS - 1, 0, 1, seconds=0.1, start_seconds=0.5)
    assert few.as_text() == "1 match in 9,999 events, 0.1 s; started in 0.5 s"
    few = Summary(RATED_EVENTS_ON_SPARK - 1, 0, 1, seconds=2.0, start_seconds=4.0, on_spark=True)
    assert few.as_text() == "1 match in 999,999 events, 2.0 s; Spark started in 4.0 s"
    many = Summary(RATED_EVENTS_ON_SPARK, 0, 1, seconds=2.0, start_seconds=4.0, on_spark=True)
    assert many.as_text() == "1 match in 1,000,000 events, 2.0 s (500,000 events/s); Spark started in 4.0 s"


@pytest.mark.usefixtures("folder")
def test_a_run_tells_its_start_apart(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        """Each look at it is ten seconds later."""

        ticks = count(0, 10)

        def monotonic(self) -> float:
            return next(self.ticks)

    monkeypatch.setattr(run_queries, "clock", Clock())
    monkeypatch.setattr(in_process.InProcess, "start_seconds", 4.0)
    result = call("run", QUERY, "events.csv", "--type", "kind", "--no-spark", "--out", "m.parquet")
    # Looked at when the command begins, when libraries are loaded, and when all is written.
    assert result.stderr.splitlines()[0] == "2 matches in 5 events, 6.0 s; started in 14.0 s"
