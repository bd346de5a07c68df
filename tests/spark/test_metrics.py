"""Metrics of a stream that runs: the lines of the log and what Prometheus reads agree with the stream's results."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import eventcube as ec
from eventcube.spark.metrics import StreamMetrics
from eventcube.spark.settings import PARTITIONS
from tests.spark.streams import Folder, Sink

WAIT_SECONDS = 60
QUERY = "PATTERN SEQ(A a, B b, a.k = b.k) WITHIN 20 seconds"


def events(*seconds: float) -> pa.Table:
    """Events of two kinds in turn."""
    micros = (np.array(seconds) * 1e6).astype(np.int64) + 1_767_600_000_000_000
    kinds = ["AB"[i % 2] for i in range(len(seconds))]
    return pa.table({"ts": pa.array(micros, pa.timestamp("us", "UTC")), "kind": kinds, "k": [1] * len(seconds)})


def test_metrics_of_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set(PARTITIONS, "2")
    folder, sink, log = Folder(spark, tmp_path / "in"), Sink(tmp_path / "checkpoint"), tmp_path / "metrics.jsonl"
    folder.write(events(1, 2, 3, 4), events(30, 31), events(5, 6, 40), events(60))
    metrics = StreamMetrics(spark, log=log, port=0)
    try:
        found = sink.run(ec.match(folder.stream, QUERY, time="ts", type="kind", lateness="5 seconds"))
        expected = len(sink.progress)
        # Listeners are told in a thread of their own.
        end = time.monotonic() + WAIT_SECONDS
        while len(log.read_text().splitlines()) < expected and time.monotonic() < end:
            time.sleep(0.05)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        with urlopen(f"http://127.0.0.1:{metrics.port}/metrics") as answer:
            text = answer.read().decode()
    finally:
        metrics.close()
        spark.conf.unset(PARTITIONS)
    assert [line["batch"] for line in lines] == list(range(expected))
    assert [line["id"] for line in lines] == [str(sink.progress[0]["id"])] * expected
    assert sum(line["matches"] for line in lines) == found.num_rows == 4
    assert sum(line["input_rows"] for line in lines) == sum(line["rows"] for line in lines) == 10
    assert [line["late"] for line in lines][2:4] == [2, 0]
    assert lines[-1]["lag_seconds"] == 5
    assert lines[-1]["held"] == 1
    assert all(line["state_bytes"] > 0 and line["match_seconds"] > 0 and line["dropped"] == 0 for line in lines)
    totals = dict(re.findall(r"^(eventcube_\w+_total)\{query=\"\",id=\"[\w-]+\"\} (\S+)$", text, re.MULTILINE))
    assert totals["eventcube_matches_total"] == "4"
    assert totals["eventcube_late_total"] == "2"
    assert totals["eventcube_batches_total"] == str(expected)
