"""What is read from Spark's progress, recorded from a stream with a keyed and an unkeyed query."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from eventcube.spark.stream_progress import StreamProgress, progress_of

RECORDED = [json.loads(line) for line in Path(__file__).with_name("stream_progress.jsonl").read_text().splitlines()]


@pytest.fixture
def recorded() -> list[dict[str, Any]]:
    return copy.deepcopy(RECORDED)


def test_what_a_micro_batch_did(recorded: list[dict[str, Any]]) -> None:
    first, *_, last = progress_of(recorded)
    # Two operators read each row: the queries have different keys.
    assert [recorded[0]["numInputRows"], first.input_rows, first.rows] == [266, 133, 133]
    assert (first.batch, first.matches, first.buckets, first.watermark) == (0, 0, 4, None)
    assert (last.rows, last.late, last.set_aside, last.dropped) == (3, 3, 3, 0)
    assert sum(p.matches for p in progress_of(recorded)) == 165
    assert last.match_seconds >= last.largest_match_seconds > 0


def test_the_watermark_and_the_newest_event_so_far(recorded: list[dict[str, Any]]) -> None:
    *_, before, last = progress_of(recorded)
    assert last.watermark == datetime(2026, 1, 5, 8, 3, 14, 805000, UTC)
    # All rows of the last micro-batch are late: the newest came before it.
    assert last.newest == before.newest == datetime(2026, 1, 5, 8, 3, 19, 805000, UTC)
    assert last.lag_seconds == 5


def test_buckets_that_did_not_run_have_what_they_had(recorded: list[dict[str, Any]]) -> None:
    observed = recorded[1]["observedMetrics"]["eventcube"]
    gone = observed["buckets"].pop()
    first, second = progress_of(recorded[:2])
    kept = first.sizes[("eventcube", gone["bucket"])]
    assert second.held == kept["held"] + sum(bucket["held"] for bucket in observed["buckets"])
    assert second.buckets == 4
    recorded[1]["observedMetrics"] = {}
    assert list(progress_of(recorded[:2]))[1].state_bytes == first.state_bytes


def test_several_results_in_one_query_and_observations_of_others(recorded: list[dict[str, Any]]) -> None:
    observed = recorded[1]["observedMetrics"]
    observed |= {"eventcube-2": observed["eventcube"], "eventcubes": {"rows": 5}}
    (progress,) = progress_of(recorded[1:2])
    assert (progress.matches, progress.buckets) == (2 * observed["eventcube"]["matches"], 8)


def test_a_query_without_buckets(recorded: list[dict[str, Any]]) -> None:
    recorded[0]["observedMetrics"] = {"other": {"rows": 3}}
    assert StreamProgress.of(recorded[0]) is None


def test_figures_as_json(recorded: list[dict[str, Any]]) -> None:
    (progress,) = progress_of(recorded[1:2])
    read = json.loads(json.dumps(progress.as_dict()))
    assert read["watermark"] == "2026-01-05T08:00:56.793000+00:00"
    assert read["spark_seconds"].keys() >= {"add_batch", "query_planning", "wal_commit", "state_commit"}
    assert "trigger_execution" not in read["spark_seconds"]
    assert read["lag_seconds"] == pytest.approx(71.073)
