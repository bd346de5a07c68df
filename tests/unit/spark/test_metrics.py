"""Metrics of streams, from recorded progress and without a JVM."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from tests.unit.spark.test_stream_progress import RECORDED

from eventcube.errors import OptionError
from eventcube.spark.metrics import StreamMetrics
from eventcube.spark.prometheus import Metric, metrics_text

SAMPLE = re.compile(r'(\w+)\{query="((?:[^"\\]|\\.)*)",id="([^"]*)"(?:,stage="(\w+)")?\} (\S+)')


class Streams:
    """What the listeners of a session are added to."""

    def __init__(self) -> None:
        self.listeners: list[Any] = []

    def addListener(self, listener: Any) -> None:
        self.listeners.append(listener)

    def removeListener(self, listener: Any) -> None:
        self.listeners.remove(listener)


class Progress(dict[str, Any]):
    """Progress as Spark hands it to listeners."""

    @property
    def id(self) -> str:
        return str(self["id"])


def session() -> Any:
    return SimpleNamespace(streams=Streams())


def tell(metrics: StreamMetrics, *recorded: dict[str, Any]) -> None:
    for progress in recorded:
        metrics.onQueryProgress(SimpleNamespace(progress=Progress(progress)))  # type: ignore[arg-type]


def samples(text: str) -> dict[tuple[str, str | None], float]:
    """The samples of one query, by name and stage."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found = [SAMPLE.fullmatch(line) for line in lines]
    assert all(found)
    return {(m[1], m[4]): float(m[5]) for m in found if m is not None}


def test_counters_add_up_and_gauges_are_those_of_the_last_micro_batch() -> None:
    metrics = StreamMetrics(session())
    assert metrics.text() == ""
    tell(metrics, *RECORDED)
    values = samples(metrics.text())
    assert values["eventcube_batches_total", None] == 4
    assert values["eventcube_rows_total", None] == 403
    assert values["eventcube_late_total", None] == 3
    assert values["eventcube_matches_total", None] == 165
    assert values["eventcube_dropped_total", None] == 0
    assert values["eventcube_watermark_lag_seconds", None] == 5
    buckets = RECORDED[-1]["observedMetrics"]["eventcube"]["buckets"]
    assert values["eventcube_state_bytes", None] == sum(bucket["state_bytes"] for bucket in buckets)
    assert values["eventcube_last_batch", None] == 3
    planned = sum(progress["durationMs"]["queryPlanning"] for progress in RECORDED)
    assert values["eventcube_spark_seconds_total", "query_planning"] == pytest.approx(planned / 1000)
    assert values["eventcube_bucket_seconds_total", "match"] > 0


def test_types_are_those_of_the_names() -> None:
    metrics = StreamMetrics(session())
    tell(metrics, *RECORDED)
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", metrics.text(), re.MULTILINE))
    assert len(types) > 25
    assert all((kind == "counter") == name.endswith("_total") for name, kind in types.items())
    assert len(re.findall(r"^# HELP ", metrics.text(), re.MULTILINE)) == len(types)


def test_no_sample_of_what_is_not_known() -> None:
    metrics = StreamMetrics(session())
    tell(metrics, RECORDED[0])
    assert "eventcube_watermark" not in metrics.text()


def test_queries_are_told_apart_and_ended_ones_stay() -> None:
    metrics = StreamMetrics(session())
    tell(metrics, RECORDED[0], {**RECORDED[0], "id": "other", "name": 'a "b"\n\\c'})
    metrics.onQueryTerminated(SimpleNamespace(id=RECORDED[0]["id"]))  # type: ignore[arg-type]
    active = re.findall(r"eventcube_active\{(.*)\} (\d)", metrics.text())
    assert active == [(f'query="",id="{RECORDED[0]["id"]}"', "0"), (r'query="a \"b\"\n\\c",id="other"', "1")]


def test_a_line_for_each_micro_batch(tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_text("a line of an earlier run\n")
    metrics = StreamMetrics(session(), log=log)
    tell(metrics, *RECORDED[:2])
    # As a rotation of logs does.
    log.rename(tmp_path / "metrics.1")
    tell(metrics, *RECORDED[2:])
    assert [json.loads(line)["batch"] for line in log.read_text().splitlines()] == [2, 3]
    assert len((tmp_path / "metrics.1").read_text().splitlines()) == 3


def test_it_serves_on_loopback_until_it_is_closed() -> None:
    spark = session()
    metrics = StreamMetrics(spark, port=0)
    tell(metrics, *RECORDED)
    address = f"http://127.0.0.1:{metrics.port}"
    with urlopen(f"{address}/metrics") as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert answer.read().decode() == metrics.text()
    with pytest.raises(HTTPError, match="404") as refused:
        urlopen(f"{address}/other")
    refused.value.close()
    with pytest.raises(OptionError, match="EC600"):
        StreamMetrics(session(), port=metrics.port)
    metrics.close()
    assert spark.streams.listeners == []
    StreamMetrics(session(), port=metrics.port).close()


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="EC601"):
        StreamMetrics(session(), log=tmp_path)


def test_help_and_labels_are_escaped() -> None:
    text = metrics_text([Metric("m", "gauge", "a\\b\nc", [({"x": 'q"\\\n'}, 1)])])
    assert text == '# HELP m a\\\\b\\nc\n# TYPE m gauge\nm{x="q\\"\\\\\\n"} 1\n'
