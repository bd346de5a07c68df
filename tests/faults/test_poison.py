"""Rows that cannot be read, in mid-stream: they are set aside and counted, and the stream goes on."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import eventcube as ec
from tests.faults.answers import answer, ids_of
from tests.faults.checkpoint import Checkpoint
from tests.faults.workloads import LATENESS, SETTINGS, Feed, queries_of
from tests.spark.streams import Sink

COLUMNS = "ts string, kind string, k long, v double, id long"
POISON = [
    '{"ts": "2026-01-05T08:01:00Z", "kind": "A", "k"',
    "no JSON at all",
    "\x00\x01\x02",
    '{"ts": null, "kind": "A", "k": 1, "id": -1}',
    '{"kind": "A", "k": 1, "id": -2}',
    '{"ts": "soon", "kind": "A", "k": 1, "id": -3}',
    '{"ts": "2026-02-30T00:00:00Z", "kind": "A", "k": 1, "id": -4}',
    '{"ts": "2026-01-05T08:01:00Z", "kind": null, "k": 1, "id": -5}',
    '{"ts": "+300000-01-01T00:00:00Z", "kind": "A", "k": 1, "id": -6}',
    '{"ts": {"day": 1}, "kind": "A", "k": 1, "id": -7}',
]


def test_it_is_set_aside_and_counted(spark: SparkSession, tmp_path: Path) -> None:
    pieces = Feed(5, jitter=LATENESS - 1, behind=0).tables()
    (tmp_path / "in").mkdir()
    for number, piece in enumerate(pieces):
        lines = [json.dumps({**row, "ts": row["ts"].isoformat()}) for row in piece.to_pylist()]
        if number in (1, 3):
            lines[100:100] = POISON
        file = tmp_path / "in" / f"{number}.json"
        file.write_text("\n".join(lines) + "\n")
        os.utime(file, (1e9 + number, 1e9 + number))
    stream = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    counts, sink = ec.Counts(), Sink(tmp_path / "checkpoint")
    settings = {**SETTINGS, "lateness": f"{LATENESS} seconds", "counters": counts}
    found = sink.run(ec.match(stream, queries_of("keyed"), **settings))
    watermark = Checkpoint(sink.checkpoint).watermark()
    assert ids_of(found) == ids_of(answer("keyed", pa.concat_tables(pieces), watermark))
    assert counts["late"] == 0
    assert counts["set_aside"] == 2 * len(POISON)
