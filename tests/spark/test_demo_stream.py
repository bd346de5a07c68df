"""`eventcube demo --stream`: what was planted is found while the day arrives."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from eventcube.cli import demo_stream, main
from eventcube.cli.on_spark import Spark
from eventcube.spark.settings import PARTITIONS


def test_the_day_arrives_and_what_was_planted_is_found(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Spark, "close", Spark._close_log)
    monkeypatch.setattr(demo_stream, "ARRIVAL_SECONDS", 2)
    spark.conf.set(PARTITIONS, "2")
    try:
        done = CliRunner().invoke(main, ["demo", "--stream", "--events", "2000", "--out", str(tmp_path)])
    finally:
        spark.conf.unset(PARTITIONS)
    assert done.exit_code == 0, (done.output, done.exception)
    assert "Every planted violation was found, and nothing else." in done.stdout
    assert "40 matches in 2,001 rows" in done.stdout
    assert "only sharpened" in done.stdout.partition("Violations")[0]
    # All files arrived, none is half written.
    assert sorted(path.name for path in (tmp_path / "incoming").iterdir()) == [f"{n:04}.parquet" for n in range(5)]


def test_two_demos_at_once() -> None:
    refused = CliRunner().invoke(main, ["demo", "--stream", "--cube"])
    assert refused.exit_code == 2
    assert "EC422" in refused.stderr
