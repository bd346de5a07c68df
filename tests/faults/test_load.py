"""Bursts and skewed keys: the matches are those of a batch, and the state shrinks again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from tests.faults.session_stream import SessionStream
from tests.faults.workloads import Feed


def test_a_burst_of_ten_times_the_rate(spark: SparkSession, tmp_path: Path) -> None:
    stream = SessionStream(spark, tmp_path, "keyed")
    usual = Feed(4)
    burst = Feed(1, rows=10 * usual.rows, begin=4 * usual.seconds, first=4 * usual.rows, seed=18)
    after = Feed(4, begin=5 * usual.seconds, first=14 * usual.rows, seed=19)
    for feed in (usual, burst, after):
        stream.run(*feed.tables())
    stream.check()
    before, peak = (max(stream.retained[i] for i in batches) for batches in ((1, 2, 3), (4, 5)))
    assert peak > 4 * before
    assert stream.retained[-2] < 2 * before


def test_a_key_with_nine_of_ten_events(spark: SparkSession, tmp_path: Path) -> None:
    stream = SessionStream(spark, tmp_path, "keyed")
    pieces = Feed(5, rows=400, skew=0.9).tables()
    assert pa.concat_tables(pieces).column("k").to_pylist().count(0) > 0.89 * 5 * 400
    stream.run(*pieces)
    stream.check()
