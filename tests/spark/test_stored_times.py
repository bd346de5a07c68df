"""Parquet files on the command line: the zone that they keep holds on Spark, without it, and in pandas."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import eventcube as ec
from eventcube.cli import main
from eventcube.cli.on_spark import Spark
from eventcube.spark.columns import ZONE_SETTING

# Clocks in Berlin go forward at 2 in the morning, after the fifth of these.
TIMES = pd.Series(pd.date_range("2026-03-28 21:30", periods=12, freq="1h", tz="Europe/Berlin"))
QUERY = """
PATTERN SEQ(A a, B b) WHERE a.ts >= '2026-03-28 23:00' AND b.ts < TIMESTAMP '2026-03-29 06:00:00' AND HOUR(b.ts) != 4
WITHIN 3 hours
RETURN a, a.ts AS t, HOUR(a.ts) AS hour, DAY(b.ts) AS day, DATE(b.ts) AS date
"""

Rows = list[dict[str, Any]]
Run = Callable[..., Rows]


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The matches of `eventcube run` as JSON, sorted; in the session that runs, which it leaves running."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Spark, "close", Spark._close_log)

    def rows(query: str, file: str, *arguments: str) -> Rows:
        command = ["run", query, file, "--type", "kind", "--format", "jsonl", "--master", "local[2]", *arguments]
        result = CliRunner().invoke(main, command)
        assert result.exit_code == 0, result.stderr
        return in_order(json.loads(line) for line in result.stdout.splitlines())

    return rows


def in_order(rows: Any) -> Rows:
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def frame(unit: str) -> pd.DataFrame:
    return pd.DataFrame({"ts": TIMES.dt.as_unit(unit), "kind": list("ABAABABBABAB"), "id": range(12)})  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_a_file_gives_the_same_in_pandas_and_both_ways_on_the_command_line(unit: str, run: Run, tmp_path: Path) -> None:
    frame(unit).to_parquet(tmp_path / "events.parquet")
    found = ec.match(pd.read_parquet(tmp_path / "events.parquet"), QUERY, type="kind")
    expected = in_order(
        json.loads(json.dumps(row, default=lambda value: value.isoformat())) for row in found.to_dict("records")
    )
    assert {row["hour"] for row in expected} == {0, 3, 23}
    assert {row["start"][-6:] for row in expected} == {"+01:00", "+02:00"}
    assert run(QUERY, "events.parquet", "--no-spark") == expected
    assert run(QUERY, "events.parquet") == expected
    if unit == "us":
        assert run(QUERY, (tmp_path / "events.parquet").as_uri()) == expected, "by its address"


def test_all_times_with_a_zone_are_in_that_of_the_time_column(run: Run, tmp_path: Path) -> None:
    first = pa.array([datetime(2026, 3, 29, 0, 30, tzinfo=UTC)], pa.timestamp("us", "Asia/Tokyo"))
    columns = {
        "sent": first,
        "ts": first.cast(pa.timestamp("ns", "Europe/Berlin")),
        "clock": first.cast(pa.timestamp("ns")),
        "place": pa.StructArray.from_arrays([first], ["since"]),
        "kind": ["A"],
    }
    pq.write_table(pa.table(columns), tmp_path / "events.parquet")
    query = "PATTERN A a WHERE a.sent >= '2026-03-29 01:30' AND a.clock = '2026-03-29 00:30' WITHIN 1 s RETURN a"
    for time, zoned in (("ts", "2026-03-29T01:30:00+01:00"), ("clock", "2026-03-29T09:30:00+09:00")):
        here, there = (run(query, "events.parquet", "--time", time, *more) for more in ([], ["--no-spark"]))
        assert here == there
        (row,) = here
        event = row["a"]
        assert (event["sent"], event["ts"], event["place"]["since"]) == (zoned, zoned, zoned), "as of the first column"
        assert event["clock"] == "2026-03-29T00:30:00"


@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS"])
def test_what_spark_wrote_is_in_utc(kind: str, run: Run, spark: SparkSession, tmp_path: Path) -> None:
    setting = "spark.sql.parquet.outputTimestampType"
    before = spark.conf.get(setting)
    spark.conf.set(setting, kind)
    spark.createDataFrame(frame("us")).write.parquet(str(tmp_path / "events"))
    spark.conf.set(setting, before)
    query = "PATTERN A a WHERE a.ts >= '2026-03-28 22:00' WITHIN 1 s RETURN a.ts AS ts, HOUR(a.ts) AS hour"
    found = run(query, "events", "--no-spark")
    assert run(query, "events") == found
    assert [(row["ts"], row["hour"]) for row in found][:2] == [
        ("2026-03-28T22:30:00+00:00", 22),
        ("2026-03-28T23:30:00+00:00", 23),
    ]
    folder = ["--out", "found", "--format", "parquet"]
    run(query, "events", *folder)
    assert pq.read_table(tmp_path / "found")["start"].type == pa.timestamp("us", "UTC")


def test_a_zone_that_is_said_goes_before_the_files_own(run: Run, tmp_path: Path) -> None:
    frame("us").to_parquet(tmp_path / "events.parquet")
    query = "PATTERN A a WITHIN 1 s RETURN HOUR(a.ts) AS hour LIMIT 1"
    assert run(query, "events.parquet")[0]["hour"] == 21
    assert run(query, "events.parquet", "--conf", f"{ZONE_SETTING}=UTC")[0]["hour"] == 20


def test_a_zone_that_spark_does_not_know(run: Run, tmp_path: Path) -> None:
    mars = pa.table({"ts": pa.array([0], pa.timestamp("us", "Mars/Olympus")), "kind": ["A"]})
    pq.write_table(mars, tmp_path / "mars.parquet")
    command = ["run", "PATTERN A a WITHIN 1 s", "mars.parquet", "--type", "kind", "--master", "local[2]"]
    refused = CliRunner().invoke(main, command)
    assert refused.exit_code == 2
    assert refused.stderr == (
        "error[EC309]: the times are in the zone 'Mars/Olympus', which Spark does not know\n"
        f"hint: --conf {ZONE_SETTING}=UTC has them in UTC\n"
    )
    assert CliRunner().invoke(main, [*command, "--conf", f"{ZONE_SETTING}=UTC"]).exit_code == 0
